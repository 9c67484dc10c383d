"""The mechanisms that parties can run together: how an encoder is published, and how a party releases with it.

``horizontal``  the initiator publishes an ``ars`` encoder, and every party protects its own records with it
``vertical``    every party has its own columns, and an ``ars`` encoder that it keeps to itself
``filter``      the initiator publishes the encoder of a ``vae``, and every party trains its own ``filter`` on it
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sfumato.core.dataset import Dataset
from sfumato.core.errors import DataError, UsageError, unknown
from sfumato.core.release import Release
from sfumato.core.run_folder import write_json, write_tensors
from sfumato.core.schema import Schema
from sfumato.mechanisms.ars.mechanism import ARS, Published
from sfumato.mechanisms.ars.published_encoder import public_schema
from sfumato.mechanisms.filter.mechanism import Filter
from sfumato.mechanisms.filter.vae import VAE
from sfumato.parties.digests import schema_digest
from sfumato.parties.party_folder import PartyFolder

MODES = ("horizontal", "vertical", "filter")
OWN = ("seed", "parties", "split", "keyed")
"""Settings of ``ars`` that each party decides for itself, so that nobody can make it draw fresh noise in every run."""
VAE_PARAMS = ("latent", "architecture", "likelihood", "gamma", "kappa", "lipschitz", "epochs")
"""Settings of the published autoencoder in mode ``filter``; all others belong to the filter."""

PIPELINE = "mechanism"
"""Folder where a party keeps its fitted pipeline, for later records."""
Releaser = Callable[[Dataset], Release]


def check_mode(mode: str) -> None:
    """Raise ``UsageError`` for an unknown mode."""
    if mode not in MODES:
        raise unknown("mode", mode, MODES)


def settings(mode: str) -> dict[str, Any]:
    """Return the hyper-parameters of a mode with their defaults."""
    if mode != "filter":
        return {name: value for name, value in ARS.parameters().items() if name not in OWN}
    own = {name: value for name, value in VAE.parameters().items() if name in VAE_PARAMS}
    rest = {name: value for name, value in Filter.parameters().items() if name not in ("seed", "base", "output")}
    return {**own, **rest}


def check_params(mode: str, params: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` for settings that the mechanism would reject, before anything is trained or shared."""
    known = settings(mode)
    for name in params:
        if name not in known:
            raise unknown(f"parameter of mode {mode}", name, known)
    if mode != "filter":
        ARS(**params)._check_params()
        return
    vae, own = _filter_params(params)
    VAE(**vae)._check_params()
    Filter(**own)._check_params()


def check_choices(mode: str, params: Mapping[str, Any], party: PartyFolder) -> None:
    """Raise ``UsageError`` for terms that this party does not agree to, or for invalid choices of its own."""
    if mode == "filter":
        return
    offered = {**ARS.parameters(), **params}
    epsilon, variant = float(offered["epsilon"]), offered["variant"]
    if epsilon < party.least_epsilon:
        raise UsageError(f"epsilon={epsilon:g} is below least_epsilon={party.least_epsilon:g} of {party.name}.")
    if not offered["keyed"]:
        raise UsageError(f"keyed=false: {party.name} does not share with noise that is drawn afresh in every run.")
    if variant != party.choices.get("variant", variant):
        raise UsageError(f"variant={variant} is not the one that {party.name} requires in its party.toml.")
    own = ARS(lam=weights_of(params, party))
    own._check_params()
    own._weights(party.schema)


def publish(mode: str, params: Mapping[str, Any], data: Dataset, seed: int) -> Published:
    """Train on the initiator's records and return what the other parties may have."""
    if mode == "filter":
        vae, own = _filter_params(params)
        fitted = VAE(**vae, seed=seed).fit(data)
        tensors = {name: tensor.detach().numpy() for name, tensor in fitted.encoder_.state_dict().items()}
        return Published({"vae": vae, "filter": own}, public_schema(data.schema), tensors)
    return ARS(**params, seed=seed).fit(data).publish()


def releaser(
    mode: str, encoder: Published | None, params: Mapping[str, Any], data: Dataset, party: PartyFolder
) -> Releaser:
    """Build this party's pipeline on the published encoder (vertical: on its own), and store it in its folder."""
    if mode == "vertical":
        own = ARS(**params, seed=party.seed_for("vertical")).fit(data).publish()
        return _ars_releaser(own, params, data, party)
    if encoder is None:
        raise UsageError(f"mode {mode} needs a published encoder.")
    _check_schema(encoder, data.schema)
    if mode == "filter":
        return _filter_releaser(encoder, data, party)
    return _ars_releaser(encoder, params, data, party)


def _check_schema(encoder: Published, schema: Schema) -> None:
    if schema_digest(Schema.from_json(encoder.schema)) != schema_digest(schema):
        raise DataError("the published encoder was made for another schema: records or labels differ.")


def weights_of(params: Mapping[str, Any], party: PartyFolder) -> str:
    """Return λ of Eq. 15: the party's own choice, or else the run's."""
    return str(party.choices.get("lam", params.get("lam", "")))


def _ars_releaser(published: Published, params: Mapping[str, Any], data: Dataset, party: PartyFolder) -> Releaser:
    lam = weights_of(params, party)
    member = ARS.join(published, data, lam=lam, seed=party.seed_for("join"))
    member.save(party.out / PIPELINE)
    if party.seed is None:
        return member.hold_secret(party.secret()).release
    seed = party.seed_for("release")  # one seed for all parts, because the mask belongs to the party
    return lambda records: member.release(records, seed=seed)


def _filter_releaser(encoder: Published, data: Dataset, party: PartyFolder) -> Releaser:
    import torch

    parts = {name: encoder.params.get(name) for name in ("vae", "filter")}
    if set(encoder.params) != set(parts) or not all(isinstance(part, Mapping) for part in parts.values()):
        raise DataError("the published encoder lacks the settings of a vae and a filter.")
    check_params("filter", {**encoder.params["vae"], **encoder.params["filter"]})
    with tempfile.TemporaryDirectory() as name:  # a device folder with the encoder alone
        folder = Path(name)
        (folder / "checkpoint").mkdir()
        tensors = {key: torch.from_numpy(value.copy()) for key, value in encoder.tensors.items()}
        write_tensors(folder / "checkpoint" / "encoder.safetensors", tensors)
        write_json(folder / "schema.json", dict(encoder.schema))
        write_json(folder / "mechanism.json", {"mechanism": "vae", "params": {**encoder.params["vae"], "seed": 0}})
        base = VAE.load(folder)
    fitted = Filter(**encoder.params["filter"], base=base, seed=party.seed_for("filter")).fit(data)
    fitted.save(party.out / PIPELINE)

    def release(records: Dataset) -> Release:
        return fitted.release(records, seed=None if party.seed is None else party.seed_for("release", records.digest))

    return release


def _filter_params(params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    vae = {name: value for name, value in params.items() if name in VAE_PARAMS}
    return vae, {name: value for name, value in params.items() if name not in VAE_PARAMS}

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
from sfumato.mechanisms.device_secret import derived
from sfumato.mechanisms.filter.mechanism import Filter
from sfumato.mechanisms.filter.vae import VAE
from sfumato.parties.digests import schema_digest
from sfumato.parties.party_folder import PartyFolder
from sfumato.parties.party_limits import signal, spend, tested_once

MODES = ("horizontal", "vertical", "filter")
OWN = ("seed", "parties", "split", "together", "keyed", "lam")
"""Settings of ``ars`` that each party decides for itself: nobody can make it draw fresh noise in every run, or learn
from its answer how many private labels λ has to weigh."""
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
    rest = {
        name: value
        for name, value in Filter.parameters().items()
        if name not in ("seed", "base", "components", "output")
    }
    return {**own, **rest}


def check_params(mode: str, params: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` for settings that the mechanism would reject, before anything is trained or shared."""
    known = settings(mode)
    if "lam" in params and mode != "filter":
        raise UsageError(
            "lam is no setting of a run: each party weighs its own private labels (lam in its party.toml)."
        )
    for name in params:
        if name not in known:
            raise unknown(f"parameter of mode {mode}", name, known)
    if mode != "filter":
        ARS(**params)._check_params()
        return
    vae, own = _filter_params(params)
    VAE(**vae)._check_params()
    Filter(**own)._check_params()


def offered(mode: str, encoder: Published) -> Mapping[str, Any]:
    """Return the settings that come with an encoder; ``DataError`` unless they are those of its mode."""
    if mode != "filter":
        return ARS.published_params(encoder.params)
    parts = [encoder.params.get(name) for name in ("vae", "filter")]
    if len(encoder.params) != len(parts) or not all(isinstance(part, Mapping) for part in parts):
        raise DataError("the published encoder lacks the settings of a vae and a filter.")
    flat = {name: value for part in parts for name, value in dict(part or {}).items()}
    check_params(mode, flat)
    return flat


def check_choices(mode: str, params: Mapping[str, Any], party: PartyFolder) -> None:
    """Raise ``UsageError`` for terms that this party does not agree to, or for invalid choices of its own.

    The server's part of the answer depends on the party's limits alone, never on its records or private labels.
    """
    if mode == "filter":
        party.limits.check({**settings(mode), **params}, party.name)
        return
    asked = ARS(**params)
    asked._check_params()
    party.limits.check_noise(asked.epsilon, asked.width, asked.variant, party.name)
    party.limits.check(asked.get_params(), party.name)
    check_weights(party.lam, party.schema)


def check_weights(lam: str, schema: Schema) -> None:
    """Raise ``UsageError`` unless λ has a weight for the record and one for each private label of the schema."""
    own = ARS(lam=lam)
    own._check_params()
    own._weights(schema)


def publish(mode: str, params: Mapping[str, Any], data: Dataset, party: PartyFolder) -> Published:
    """Train on the initiator's records and return what the other parties may have."""
    seed = party.seed_for("publish")
    if mode == "filter":
        vae, own = _filter_params(params)
        fitted = VAE(**vae, seed=seed).fit(data)
        tensors = {name: tensor.detach().numpy() for name, tensor in fitted.encoder_.state_dict().items()}
        return Published({"vae": vae, "filter": own}, public_schema(data.schema), tensors)
    return ARS(**params, lam=party.lam, seed=seed).fit(data).publish()


def releaser(
    mode: str, encoder: Published | None, params: Mapping[str, Any], data: Dataset, party: PartyFolder
) -> Releaser:
    """Build this party's pipeline on the published encoder (vertical: on its own), and store it in its folder."""
    if mode == "vertical":
        own = ARS(**params, lam=party.lam, seed=party.seed_for("vertical")).fit(data).publish()
        return _ars_releaser(own, data, party)
    if encoder is None:
        raise UsageError(f"mode {mode} needs a published encoder.")
    _check_schema(encoder, data.schema)
    if mode == "filter":
        return _filter_releaser(encoder, data, party)
    return _ars_releaser(encoder, data, party)


def _check_schema(encoder: Published, schema: Schema) -> None:
    if schema_digest(Schema.from_json(encoder.schema)) != schema_digest(schema):
        raise DataError("the published encoder was made for another schema: records or labels differ.")


def _ars_releaser(published: Published, data: Dataset, party: PartyFolder) -> Releaser:
    member = ARS.join(published, data, lam=party.lam, seed=party.seed_for("join"))
    member.save(party.out / PIPELINE)
    if party.seed is None:
        secret = party.secret()
        spend(
            party.folder,
            _release_name(secret, published.digest),
            signal(member.width, member.epsilon),
            party.limits,
            party.name,
        )
        return member.hold_secret(secret).release
    seed = party.seed_for("release")  # one seed for all parts, because the mask belongs to the party
    return lambda records: member.release(records, seed=seed)


def check_test(mode: str, encoder: str, party: PartyFolder) -> None:
    """Raise ``UsageError`` if this party was tested under this encoder before: a run under it costs no signal.

    In mode ``vertical`` every run has an encoder of its own, which does.
    """
    if mode == "horizontal" and party.seed is None:
        tested_once(party.folder, _release_name(party.secret(), encoder), party.name)


def _release_name(secret: bytes, encoder: str) -> str:
    """What names an encoder and a secret, and tells neither."""
    return derived(secret, "sent", encoder).hex()


def _filter_releaser(encoder: Published, data: Dataset, party: PartyFolder) -> Releaser:
    import torch

    with tempfile.TemporaryDirectory() as name:  # a device folder with the encoder alone
        folder = Path(name)
        (folder / "checkpoint").mkdir()
        tensors = {key: torch.as_tensor(value.copy()) for key, value in encoder.tensors.items()}
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

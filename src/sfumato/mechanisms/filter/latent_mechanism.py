"""What ``filter`` and its Gaussian comparator share: they perturb the latent of a fixed autoencoder within a budget."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from torch import Tensor, nn

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.randomness import Randomness
from sfumato.core.run_folder import RunFolder, read_json, write_json
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.filter.vae import VAE
from sfumato.mechanisms.parameters import anything, choice, number
from sfumato.privacy.divergence import DIVERGENCES, Divergence

OUTPUTS = ("latent", "data")
BASE = "base"
"""The autoencoder's folder inside the run folder of a mechanism that trained its own."""

SMALLEST_BUDGET = 1e-3


class LatentMechanism(Mechanism):
    """Perturbs the latent of ``base``, an autoencoder of the user's; without one it trains its own first."""

    spare = ("classifier",)
    knob = "budget"

    base: str | VAE = anything(default="", builds_on=True, help="a fitted vae or its run folder; empty: train one")
    budget: float = number(default=300.0, low=0.0, high=1e9, above_low=True, help="b: mean divergence from the latent")
    divergence: str = choice(default="kl", options=DIVERGENCES, help="the unit of the budget")
    output: str = choice(default="latent", options=OUTPUTS, help="what leaves: the latent, or data decoded from it")

    @property
    def traits(self) -> Traits:
        return Traits(randomised=True, gives_records=self.output == "data")

    def _check_params(self) -> None:
        super()._check_params()
        if self.budget < SMALLEST_BUDGET:
            raise UsageError(
                f"{self.name}: budget={self.budget:g} is out of reach: below {SMALLEST_BUDGET:g} a perturbation could "
                "not be told from rounding, and would hide nothing. Give a larger budget."
            )

    def stored_params(self) -> dict[str, Any]:
        return {**super().stored_params(), "base": self.base if isinstance(self.base, str) else ""}

    def _build(self, schema: Schema) -> None:
        if self.base == "":
            self.base_: VAE = VAE(seed=self.seed)
            self.base_.schema_ = schema
            self.base_._build(schema)
            return
        self.base_ = self.base if isinstance(self.base, VAE) else _fitted(Path(self.base))
        self.base_._check_fitted()
        theirs = self.base_.schema_
        if (theirs.shape, theirs.columns) != (schema.shape, schema.columns):
            raise DataError(
                f"the autoencoder was made for records of shape {theirs.shape}, these have {schema.shape} (or other "
                "columns): fit a vae on data of this kind and give it as base."
            )

    def _copies(self) -> int:
        return 0

    def _fit_base(self, data: Dataset, run: RunFolder | None, start: Mechanism | None) -> None:
        """Train the autoencoder if none was given; a run that is taken up again finds it finished."""
        if self.base != "":
            return
        if isinstance(start, LatentMechanism):
            self.base_ = start.base_
        elif run is not None and (run.path / BASE / "mechanism.json").exists():
            self.base_ = VAE.load(run.path / BASE)
        else:
            self.base_.fit(data)
        if run is not None:
            self.base_.save(run.path / BASE)

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        mean, variance = self.base_.posterior(x)
        latent = self._perturb(mean, variance, private, randomness)
        return latent if self.output == "latent" else self.base_.decode(latent)

    @abstractmethod
    def _perturb(
        self, mean: Tensor, variance: Tensor, private: Mapping[str, IntArray], randomness: Randomness
    ) -> FloatArray:
        """z̃ (N, d) for posteriors (N, d)."""

    def decode(self, payload: FloatArray) -> FloatArray:
        return payload if self.output == "data" else self.base_.decode(payload)

    def public_encoder(self) -> nn.Module:
        return self.base_.encoder_

    def _divergence(self) -> Divergence:
        return next(kind for kind in DIVERGENCES if kind == self.divergence)

    def _unit(self) -> str:
        units = {"norm": "half a squared norm", "mahalanobis": "squared norm in the latent's own spread", "chi2": "χ²"}
        return units.get(self.divergence, f"nats of {self.divergence}")

    def _measured(self) -> dict[str, Any]:
        """What was found while fitting and is stored beside the weights."""
        return {}

    def save(self, folder: Path) -> None:
        super().save(folder)
        if not isinstance(self.base, str) or self.base == "":
            self.base_.save(folder / BASE)
        place = BASE if not self.base or isinstance(self.base, VAE) else os.path.relpath(self.base, folder)
        write_json(folder / "base.json", {"digest": self.base_.digest, "folder": place, **self._measured()})

    @classmethod
    def load(cls, folder: Path, **overrides: Any) -> Self:
        stored, given = read_json(folder / "base.json"), read_json(folder / "mechanism.json")["params"]["base"]
        base = overrides.pop("base", None) or _find(folder, given, stored)
        base = base if isinstance(base, VAE) else _fitted(Path(base))
        if stored["digest"] != base.digest:
            raise DataError(
                f"the {cls.name} in {folder} was made for another autoencoder (digest {stored['digest'][:12]}, the one "
                f"found has {base.digest[:12]}): restore the right one, or fit again."
            )
        loaded = super().load(folder, base=base, **overrides)
        loaded.base = given
        loaded._remember(stored)
        return loaded

    def _remember(self, stored: Mapping[str, Any]) -> None:
        """The inverse of ``_measured``."""


def _fitted(folder: Path) -> VAE:
    if not (folder / "mechanism.json").is_file():
        raise DataError(f"base={folder} holds no fitted autoencoder: give the run folder of 'sfumato fit vae'.")
    return VAE.load(folder)


def _find(folder: Path, given: str, stored: Mapping[str, Any]) -> VAE:
    """The autoencoder of the mechanism in ``folder``: where it lies from there, or where the fit was told."""
    beside = folder / str(stored["folder"])
    return _fitted(beside if (beside / "mechanism.json").is_file() or not given else Path(given))

"""What ``filter`` and its Gaussian comparator share: they perturb the latent of a fixed base within a budget."""

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
from sfumato.mechanisms.filter import bases
from sfumato.mechanisms.filter.base_probe import Kept, kept_by
from sfumato.mechanisms.filter.bases import OWN, Base
from sfumato.mechanisms.filter.fixed_encoder import FIXED, FixedEncoder
from sfumato.mechanisms.filter.label_choices import follows
from sfumato.mechanisms.parameters import anything, choice, number, whole
from sfumato.privacy.divergence import DIVERGENCES, Divergence

OUTPUTS = ("latent", "data")
BASE = "base"
"""The base's folder inside the run folder of a mechanism that made its own."""

SMALLEST_BUDGET = 1e-3


class LatentMechanism(Mechanism):
    """Perturbs the latent of ``base``; without one it makes the base that serves the data (``bases.default_base``).

    What the base keeps of the first utility label is measured before anything is built on it (``kept_``).
    """

    spare = ("classifier",)
    knob = "budget"

    base: str | Base | Mechanism | nn.Module = anything(
        default="",
        builds_on=True,
        help=f"{', '.join(OWN)}, a run folder, a fitted mechanism or network (Python); empty: by kind and size of data",
    )
    components: int = whole(default=64, low=1, high=4096, help="numbers in a latent of base=pca, or of a wide encoder")
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
        """A base that is given is checked at once; one that is made or scaled by the records waits for the fit."""
        self.__dict__.pop("base_", None)  # of an earlier fit
        if isinstance(self.base, str) and (self.base == "" or self.base in OWN):
            return
        found = bases.stored(Path(self.base)) if isinstance(self.base, str) else self.base
        if isinstance(found, nn.Module):
            self._given: Base | Mechanism | nn.Module = found
            return
        if isinstance(found, (Base, Mechanism)):
            found._check_fitted()
            bases.same_records(found, schema)
        self._given = found
        if isinstance(found, Base):
            self._take(found)

    def _take(self, base: Base) -> None:
        """From here on the base is known; what depends on the size of its latents is built."""
        if self.output == "data" and not base.decodes:
            raise UsageError(
                f"{self.name}: output=data takes a base with a way back, and this one is an encoder alone: leave it "
                "out, or take base=pca, base=raw or a vae."
            )
        self.base_ = base

    def _copies(self) -> int:
        return 0

    def _fit_base(self, data: Dataset, run: RunFolder | None, start: Mechanism | None) -> None:
        """Make the base if none was given; a run that is taken up again finds it finished. Then see what it keeps."""
        if hasattr(self, "base_"):
            self._probe(data)
            return
        inside = None if run is None else run.path / BASE
        if isinstance(start, LatentMechanism) and (self.base, self.components) == (start.base, start.components):
            base = start.base_
        elif inside is not None and bases.is_stored(inside) and not isinstance(self.base, nn.Module):
            found = bases.stored(inside)
            assert isinstance(found, Base)  # written below
            base = found
        elif isinstance(self.base, str) and (self.base == "" or self.base in OWN):
            name = next((own for own in OWN if own == self.base), None)
            base = bases.made(name or bases.default_base(data.schema, len(data)), data, self.seed, self.components)
        else:
            base = bases.given(self._given, data, self.components)
        self._take(base)
        if inside is not None:
            base.save(inside)
        self._probe(data)

    def _probe(self, data: Dataset) -> None:
        """Stop if the base lost what the release is for, say so if it lost a part of it."""
        self.kept_: Kept | None = None
        if not data.utility or self._tells(data):
            return
        self.kept_ = kept_by(self.base_, data, self.seed)
        if self.kept_ is None:
            return
        if self.kept_.nothing:
            raise UsageError(f"{self.name}: {self.kept_}")
        if self.kept_.lost:
            self._warn(f"{self.name}: {self.kept_}")

    def _tells(self, data: Dataset) -> bool:
        """Whether a release can serve the utility label without the base: it follows from what is read beside it."""
        served = next(iter(data.utility.values()))
        return self.traits.reads_private and any(follows(served, codes) for codes in data.private.values())

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        mean, variance = self.base_.posterior(x)
        latent = self._perturb(mean, variance, private, randomness)
        return latent if self.output == "latent" else self.base_.decode(latent)

    @abstractmethod
    def _perturb(
        self, mean: Tensor, variance: Tensor, private: Mapping[str, IntArray], randomness: Randomness
    ) -> FloatArray:
        """z̃ (N, d) for posteriors (N, d)."""

    def decode(self, payload: FloatArray) -> FloatArray | None:
        """Records of latents; None where the base has no way back."""
        if self.output == "data":
            return payload
        return self.base_.decode(payload) if self.base_.decodes else None

    def public_encoder(self) -> nn.Module:
        return self.base_.public_encoder()

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
        known = isinstance(self.base, str) and self.base not in ("", *OWN) and isinstance(self._given, Base)
        if not known:
            self.base_.save(folder / BASE)
        place = os.path.relpath(str(self.base), folder) if known else BASE
        kept = None if getattr(self, "kept_", None) is None else vars(self.kept_)
        stored = {"digest": self.base_.digest, "folder": place, "kept": kept}
        write_json(folder / "base.json", {**stored, **self._measured()})

    @classmethod
    def load(cls, folder: Path, **overrides: Any) -> Self:
        stored, given = read_json(folder / "base.json"), read_json(folder / "mechanism.json")["params"]["base"]
        base = _found(folder, given, stored, overrides.pop("base", None))
        if stored["digest"] != base.digest:
            raise DataError(
                f"the {cls.name} in {folder} was made for another base (digest {stored['digest'][:12]}, the one found "
                f"has {base.digest[:12]}): restore the right one, or fit again."
            )
        loaded = super().load(folder, base=base, **overrides)
        loaded.base = given
        loaded.kept_ = None if stored.get("kept") is None else Kept.from_json(stored["kept"])
        loaded._remember(stored)
        return loaded

    def _remember(self, stored: Mapping[str, Any]) -> None:
        """The inverse of ``_measured``."""


def _found(folder: Path, given: str, stored: Mapping[str, Any], override: object) -> Base:
    """The base of the mechanism in ``folder``: the one handed over, or where it lies from there, or where the fit was
    told."""
    beside = folder / str(stored["folder"])
    if isinstance(override, nn.Module):
        return FixedEncoder.load(beside, override)
    if isinstance(override, Base):
        return override
    place = Path(str(override)) if override else beside if bases.is_stored(beside) or not given else Path(given)
    found = bases.stored(place)
    if not isinstance(found, Base):
        raise DataError(f"{place} holds a {found.name} and no base: restore {beside / FIXED}, or fit again.")
    return found

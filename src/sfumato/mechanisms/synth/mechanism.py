"""`synth`: a synthetic data set with (ε, δ)-differential privacy for every record, or every person, behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError, RuleBroken, UsageError, unknown
from sfumato.core.extras import require
from sfumato.core.guarantee import Condition, Covers, Guarantee, Unit
from sfumato.core.randomness import Randomness, Seeded, fresh_seed
from sfumato.core.run_folder import RunFolder, read_json, write_json
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.halves import Halves
from sfumato.mechanisms.parameters import choice, number, text, whole
from sfumato.mechanisms.search_space import SearchSpace
from sfumato.mechanisms.synth.smooth_warps import BEND
from sfumato.nets.training_loop import as_tensor
from sfumato.privacy.ledger import PERSON, Ledger, calibrated, check_target, pld_epsilon

if TYPE_CHECKING:
    from torch import nn

    from sfumato.mechanisms.synth.methods.method import Method
    from sfumato.privacy.discrete_gaussian import Noise
    from sfumato.privacy.ledger import Plan
    from sfumato.privacy.query_counter import Records

BUDGET = "budget.json"
ANSWERS = "answers"
LABELS = ("data", "noisy", "public", "none")
MOST_CLASSES = 256
_HOME = {
    "mixture": ("mixture", "Mixture"),
    "tree": ("tree", "Tree"),
    "marginals": ("marginals", "Marginals"),
    "embedding": ("embedding", "Embedding"),
    "dpsgd-gan": ("dpsgd_gan", "DPSGDGan"),
    "frozen-front": ("noise_layer", "FrozenFront"),
    "noise-layer": ("noise_layer", "NoiseLayer"),
}
_DEFAULT = {"image": "mixture", "audio": "mixture", "table": "tree", "signal": "mixture"}
_WITHOUT_LABELS = {"table": "marginals"}


def method_class(name: str) -> type[Method]:
    """The class of a method of `synth`."""
    if name not in _HOME:
        raise unknown("method of synth", name, ("auto", *_HOME))
    module, attribute = _HOME[name]
    cls: type[Method] = getattr(import_module(f"sfumato.mechanisms.synth.methods.{module}"), attribute)
    return cls


class Synth(Mechanism):
    """Learns a model of the owner's records from noisy answers, and releases samples of the model.

    The budget is spent by ``fit``, once; ``release`` and ``sample`` are free. The noise comes from the operating
    system, so two fits with one seed differ: the seed is of initial weights only.

    Where subjects are named, the promise is for a person with all records that person has. With n records each of them
    weighs min(1/n, 1/``per_person``), so that a person weighs 1 at most and the noise is the same as for records
    (``privacy.query_counter.Records``). At ``per_person`` = 1 every person counts the same; a larger value lets people
    with up to so many records count by their number, and makes everything smaller beside the noise.
    """

    name = "synth"
    knob = "epsilon"
    owner_share = 0.9
    searched = (
        SearchSpace(
            "rows",
            against=(
                *("attribute", "reconstruction", "singling-out", "linkability", "inference", "copies", "membership"),
                "differential-privacy",
            ),
            promise="dp",
        ),
    )

    method: str = text(
        default="auto",
        help=f"{', '.join(_HOME)} (the paper's), or auto: mixture for pictures; for tables tree where a "
        "label is told, else marginals",
    )
    epsilon: float = number(default=1.0, low=0.0, high=1e6, above_low=True, help="ε of the whole run")
    delta: float = number(default=1e-5, low=0.0, high=1.0, above_low=True, help="δ of the run, below 1/records")
    labels: str = choice(
        default="data",
        options=LABELS,
        help="data: part of the record; noisy: Theorem 3; public: known anyway; none: no labels",
    )
    steps: int = whole(default=0, low=0, high=10_000_000, help="steps of training; 0: the method's own")
    per_person: int = whole(
        default=1, low=1, high=1_000_000, help="with --id: a person's records count by their number up to so many"
    )
    bend: float = number(default=BEND, low=0.0, high=0.5, help="how far mixture bends drawn pictures, in sides")

    @property
    def traits(self) -> Traits:
        return Traits(randomised=True, needs_labels=self.labels != "none", synthetic=True, gives_records=True)

    def spends(self) -> tuple[float, float]:
        return self.epsilon, self.delta

    def _check_params(self) -> None:
        super()._check_params()
        require("synth", "synth", "dp_accounting", "opendp")
        check_target(self.epsilon, self.delta)
        if self.method != "auto":
            able = method_class(self.method).labels
            if self.labels not in able:
                raise UsageError(f"synth: {self.method} handles labels={' or '.join(able)}, got {self.labels}.")

    def _build(self, schema: Schema) -> None:
        from sfumato.mechanisms.synth.methods.method import Task

        usual = _DEFAULT[schema.kind]
        if self.labels == "none" or not schema.utility or schema.rules:
            usual = _WITHOUT_LABELS.get(schema.kind, usual)
        cls = method_class(usual if self.method == "auto" else self.method)
        if schema.kind not in cls.kinds:
            raise UsageError(f"synth: {cls.name} makes {' or '.join(cls.kinds)} records, these are {schema.kind}s.")
        if self.labels not in cls.labels:
            raise UsageError(f"synth: {cls.name} handles labels={' or '.join(cls.labels)}, got {self.labels}.")
        self.sizes_ = tuple(len(names) for names in schema.utility.values()) if self.traits.needs_labels else ()
        classes = math.prod(self.sizes_)
        if classes > MOST_CLASSES:
            raise UsageError(
                f"synth: the utility labels make {classes} joint classes, at most {MOST_CLASSES} are possible."
            )
        self.method_ = cls(
            Task(schema, classes, self.epsilon, self.delta, self.labels, self.steps, self.seed, self.bend)
        )

    def _copies(self) -> int:
        """None where a counter goes over the records in chunks; DP-SGD copies its samples."""
        return 0 if self.method == "auto" or method_class(self.method).doubt is None else 3

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        from sfumato.privacy.query_counter import QueryCounter

        if start is not None:
            raise UsageError("synth cannot start from another run: its records would be paid for twice.")
        records = self.records(data)
        plan = self._checked_plan(data, records)
        self.ledger_ = Ledger(plan, self.epsilon, self.delta, people=data.named)
        kept = self._begin(run)
        counter = QueryCounter(records, self.ledger_, noise=self.noise(), kept=kept)
        self.method_.learn(counter, progress)
        if not self.ledger_.complete:
            raise RuleBroken(f"{self.method_.name} asked less than it planned: {self.ledger_.asked}.")
        self.spent_ = self.ledger_.to_json()

    def noise(self) -> Noise:
        """The generator of the noise that protects the run; an auditor draws from the same."""
        from sfumato.privacy.discrete_gaussian import ExactNoise

        return ExactNoise()

    def records(self, data: Dataset) -> Records:
        """The records as the counter holds them, with weights where people are named."""
        from sfumato.privacy.query_counter import Records

        x, y = as_tensor(data.x), torch.as_tensor(self._codes(data))
        if not data.named:
            return Records(x, y)
        _, who, each = np.unique(data.ids, return_inverse=True, return_counts=True)
        weight = 1.0 / np.maximum(each, self.per_person)
        return Records(x, y, torch.as_tensor(weight[who]), torch.as_tensor(who.astype(np.int64)))

    def _codes(self, data: Dataset) -> IntArray:
        """The joint class of each record; 0 without labels."""
        if not self.sizes_:
            return np.zeros(len(data), dtype=np.int64)
        labels = tuple(data.utility[name] for name in data.schema.utility)
        return np.ravel_multi_index(labels, self.sizes_).astype(np.int64)

    def _checked_plan(self, data: Dataset, records: Records) -> Plan:
        """The calibrated plan, after everything that can be refused has been: nothing is spent before."""
        from sfumato.mechanisms.synth.methods.method import public_number

        people, unit = (len(np.unique(data.ids)), "person") if data.named else (len(data), "record")
        if self.delta >= 1.0 / people:
            raise UsageError(
                f"synth: delta {self.delta:g} is not below 1/{people}, the share of one {unit} in {data.name}: "
                f"such a promise allows to publish a {unit} outright. Lower delta."
            )
        if data.named and self.labels == "noisy":
            raise UsageError("synth: labels=noisy answers for every record by itself, not for people: use labels=data.")
        check_domain(data)
        plan = calibrated(self.method_.plan(public_number(people)), self.epsilon, self.delta)
        if not math.isfinite(pld_epsilon(plan, self.delta)):
            raise UsageError(f"synth: no ε can be computed at delta {self.delta:g}: give 1e-14 or more.")
        least = self.method_.least(plan)
        counts = np.bincount(records.y.numpy(), records.weight, minlength=math.prod(self.sizes_))
        if counts.min() < least:
            code = int(counts.argmin())
            raise DataError(
                f"{data.name}: class {self._class_text(code)} has {counts[code]:g} records and the noise at "
                f"ε = {self.epsilon:g} hides up to {math.ceil(least)}: raise epsilon, merge classes or use labels=none."
            )
        return plan

    def _class_text(self, code: int) -> str:
        if not self.sizes_:
            return "'all'"
        places = np.unravel_index(code, self.sizes_)
        named = zip(self.schema_.utility.items(), places, strict=True)
        return ", ".join(f"{label} = {names[int(place)]}" for (label, names), place in named)

    def _begin(self, run: RunFolder | None) -> Path | None:
        """The ledger goes to disk before the first question; an interrupted run must not ask again."""
        if run is None:
            return None
        kept = run.path / ANSWERS
        if (run.path / BUDGET).exists():
            begun = Ledger.from_json(read_json(run.path / BUDGET))
            if begun.plan != self.ledger_.plan:
                raise DataError(f"{run.path} was begun with another plan: fit into another --out; both runs count.")
            if not self.method_.resumable:
                raise DataError(
                    f"{run.path} was interrupted while it spent its budget, and {self.method_.name} keeps no answers "
                    "to go on from. Fit into another --out; the privacy loss of both runs adds up."
                )
        else:
            run.write_json(BUDGET, self.ledger_.to_json())
        kept.mkdir(exist_ok=True)
        return kept

    def sample(self, rows: int, *, given: Mapping[str, str] | None = None, seed: int | None = None) -> Dataset:
        """So many synthetic records with their labels; ``given`` fixes a class: {"digit": "3"}, or a category of x."""
        self._check_fitted()
        if rows < 1:
            raise UsageError(f"synth: rows must be at least 1, got {rows}.")
        generator = torch.Generator().manual_seed(fresh_seed() if seed is None else seed)
        x, y = self._draw(rows, generator, given or {})
        utility = self._labels(y)
        schema = self.schema_ if utility else replace(self.schema_, utility={})
        return Dataset(x, schema, utility, name="synthetic")

    def _draw(self, rows: int, generator: torch.Generator, given: Mapping[str, str]) -> tuple[FloatArray, IntArray]:
        columns = {column.name: column for column in self.schema_.columns if column.kind == "categorical"}
        values = {name: value for name, value in given.items() if name in columns}
        for name, value in values.items():
            known = (*columns[name].categories, *((columns[name].MISSING,) if columns[name].nullable else ()))
            if value not in known:
                raise unknown(f"category of '{name}'", value, known)
        wanted = self._wanted({name: value for name, value in given.items() if name not in values})
        pieces = []
        if wanted is None or len(wanted) == 1:
            only = None if wanted is None else wanted[0]
            pieces.append(self.method_.sample_given(rows, generator, values, only))
        else:  # several joint classes carry the wanted label: draw from all, keep those
            while sum(len(y) for _, y in pieces) < rows:
                x, y = self.method_.sample_given(max(256, rows), generator, values)
                keep = torch.isin(y, torch.tensor(wanted))
                pieces.append((x[keep], y[keep]))
                if len(pieces) > 1000:
                    raise DataError(f"the model makes no records with {dict(given)}.")
        x, y = (torch.cat([piece[side] for piece in pieces])[:rows] for side in (0, 1))
        return np.ascontiguousarray(x.numpy(), dtype=np.float32), y.numpy().astype(np.int64)

    def _wanted(self, given: Mapping[str, str]) -> list[int] | None:
        """The joint classes in which the given labels have their values; None for all."""
        if not given:
            return None
        if not self.sizes_:
            able = [column.name for column in self.schema_.columns if column.kind == "categorical"]
            listed = f" Categories can be: {', '.join(able)}." if able else ""
            raise UsageError(f"synth: this run has no labels, so no class can be asked for.{listed}")
        places = np.indices(self.sizes_).reshape(len(self.sizes_), -1)
        fits = np.ones(places.shape[1], dtype=bool)
        for label, value in given.items():
            if label not in self.schema_.utility:
                raise unknown("label of this run", label, self.schema_.utility)
            names = self.schema_.utility[label]
            if value not in names:
                raise unknown(f"class of '{label}'", value, names)
            fits &= places[list(self.schema_.utility).index(label)] == names.index(value)
        return [int(code) for code in np.flatnonzero(fits)]

    def _labels(self, codes: IntArray) -> dict[str, IntArray]:
        if not self.sizes_:
            return {}
        places = np.unravel_index(codes, self.sizes_)
        return {name: place.astype(np.int64) for name, place in zip(self.schema_.utility, places, strict=True)}

    def _released(self, data: Dataset, seed: int | None) -> tuple[FloatArray, Mapping[str, IntArray]]:
        """As many synthetic records as ``data`` has; nothing else of ``data`` is used."""
        drawn = self.sample(len(data), seed=seed)
        return drawn.x, drawn.utility

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        seed = int(randomness.uniform((1,))[0] * 2**52) if isinstance(randomness, Seeded) else None
        return self.sample(len(x), seed=seed).x

    def spent(self) -> Mapping[str, Any]:
        """The ledger, as it stands in ``budget.json``."""
        return self.spent_

    def halves(self) -> Halves:
        """No device half: nothing of it runs on a record. A generator network can be shipped as a sampler."""
        from sfumato.mechanisms.synth.shipped_generator import generator_halves

        return generator_halves(self.method_.name, self.method_.modules(), self.schema_, self.method_.task.classes)

    def guarantee(self) -> Guarantee:
        self._check_fitted()
        doubt = self.method_.doubt
        spent, relation = self.spent_["spent"], str(self.spent_["relation"])
        unit: Unit = "person" if relation == PERSON else "record"
        conditions = (
            Condition("ledger", "The ledger is complete and its events compose to the stated ε.", checked=True),
            Condition(
                "one-run",
                f"The promise is for each {unit} in the file that the run was fitted on, once; another run on the same "
                "records adds its own loss.",
            ),
            Condition(
                "public-domain",
                "Ranges, categories, class names, the shape of a record, and the number of "
                f"{'people' if unit == 'person' else 'records'} and of rows rounded up to a power of two are taken as "
                "public.",
            ),
            Condition(
                "refusals",
                "fit refuses on exact checks (1/delta records or more, a class that drowns in the noise, a constant "
                "column, a value outside the domain, a part without records or of one class): its refusals are for the "
                "owner only, and a release tells that the checks passed.",
            ),
            Condition("unit", _UNIT_SAYS[unit]),
            Condition("labels", _LABELS_SAY[self.labels]),
            *(Condition(f"method-{number}", said) for number, said in enumerate(self.method_.about(), 1)),
        )
        counted = self.labels in ("noisy", "public")  # as many labels as records are told, or known
        covers = Covers(labels=self.labels in ("data", "noisy"), count=not counted, unit=unit, repeats=True)
        if doubt is not None:
            return Guarantee(
                "as-published",
                doubt,
                epsilon=spent["epsilon"],
                delta=self.delta,
                conditions=conditions,
                covers=covers,
            )
        return Guarantee(
            "dp",
            f"({spent['epsilon']:.4g}, {self.delta:g})-differential privacy for {relation}, "
            f"by Gaussian noise on {sum(event['count'] for event in self.spent_['events'])} planned sums.",
            epsilon=spent["epsilon"],
            delta=self.delta,
            relation=relation,
            event={"composed": self.spent_["events"], "accountant": "dp_accounting PLD"},
            conditions=conditions,
            covers=covers,
        )

    def _modules(self) -> dict[str, nn.Module]:
        return self.method_.modules()

    def save(self, folder: Path) -> None:
        super().save(folder)
        write_json(folder / BUDGET, self.spent_)

    @classmethod
    def load(cls, folder: Path, **overrides: Any) -> Self:
        mechanism = super().load(folder, **overrides)
        mechanism.spent_ = read_json(folder / BUDGET)
        mechanism.ledger_ = Ledger.from_json(mechanism.spent_)
        if not mechanism.ledger_.complete:
            raise DataError(f"{folder / BUDGET} says that the run is not complete: fit it anew.")
        found = pld_epsilon(mechanism.ledger_.plan, mechanism.delta)
        if abs(found - mechanism.spent_["spent"]["epsilon"]) > 1e-3:
            raise DataError(f"{folder / BUDGET}: its events compose to ε = {found:.4f}, which is not what it says.")
        return mechanism


_UNIT_SAYS: dict[Unit, str] = {
    "record": "One row is protected at a time, whoever's it is: somebody with k rows loses up to k times as much. If "
    "people have several rows, name their column with --id.",
    "person": "All rows of a person are protected together, as far as the named column tells people apart.",
}
_LABELS_SAY = {
    "data": "A record is (x, y): its labels are protected with it.",
    "noisy": "Labels pass through randomised response of their own; both losses are added (Theorem 3).",
    "public": "Labels are taken as public: the promise is for x alone.",
    "none": "No labels were used.",
}


def check_domain(data: Dataset) -> None:
    """Raise ``DataError`` unless ranges and categories were declared, and every column has something to say."""
    schema = data.schema
    if schema.kind in ("table", "signal") and not schema.declared:
        raise DataError(
            f"{data.name}: its ranges and categories were read from the records, which would leak them. Declare them: "
            "sfumato data domain FILE > domain.toml, correct it from what is publicly known, delete its line "
            "draft = true, and give it with --domain domain.toml."
        )
    place = 0
    for column in schema.columns:
        values = data.x[:, place : place + column.width]
        place += column.width
        missing = values[:, -1] == 1.0 if column.nullable else np.zeros(len(values), dtype=bool)
        if missing.all():
            raise DataError(f"{data.name}: every value of column '{column.name}' is missing: leave it out (--x).")
        if (values[~missing] == values[~missing][0]).all():
            raise DataError(f"{data.name}: column '{column.name}' is constant: leave it out (--x).")

"""Releases of Adult in the order that one expects: ``synth`` at two ε, three models without privacy, the owner's rows.

Two models without privacy are written here: a Gaussian copula, which keeps the columns and their correlations, and
trees column by column, which draw each value from the records in the same leaf (as synthpop does by default). The third
is CTGAN, in an environment of its own; where that cannot be made, its row is left out and the reason said.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato import audit_release, load
from sfumato.auditing import CPU, SMOKE, Effort
from sfumato.core.dataset import Dataset
from sfumato.core.errors import SfumatoError
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.studies.peers import run_peer
from sfumato.workflow.releasing import as_table

PEOPLE = 6000
_PARTS = ("train", "test")
PRIVATE = ("occupation", "marital-status", "age")
QUESTIONS = ("singling-out", "linkability", "inference", "membership", "copies")
_LEAF = 5
"""Records in a leaf, synthpop's default."""
_PASSES = 100
"""Of CTGAN over the records, a third of its default: it is to end within minutes on one thread."""
_MOST_SECONDS = 1200.0

Columns = dict[str, npt.NDArray[Any]]
Codes = dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.int64]]]


def run(small: bool = False) -> dict[str, Any]:
    """Each release is as large as the owner's records and audited at the default effort (small: ``smoke``)."""
    claim = "of Adult synth (ε = 1, 10) and CTGAN show nothing, trees more, the owner's own rows everything"
    people, effort = (600, SMOKE) if small else (PEOPLE, CPU)
    try:
        train, test = (load("adult", utility="income", private=(), part=part, limit=people) for part in _PARTS)
    except SfumatoError as error:
        return {"claim": claim, "holds": None, "skipped": str(error)}
    owner, holdout = columns(train), columns(test)
    makers: Mapping[str, Callable[[], Columns]] = {
        "synth, ε = 1": lambda: columns(Synth(epsilon=1.0).fit(train).sample(len(train))),
        "synth, ε = 10": lambda: columns(Synth(epsilon=10.0).fit(train).sample(len(train))),
        "CTGAN": lambda: ctgan(train, passes=2 if small else _PASSES),
        "Gaussian copula": lambda: copula(owner, np.random.default_rng(0)),
        "trees": lambda: trees(owner, np.random.default_rng(0)),
        "the owner's rows": lambda: owner,
    }
    figures: dict[str, dict[str, Any]] = {}
    missing: dict[str, str] = {}
    for name, made in makers.items():
        try:
            release = made()
        except PeerFailed as reason:
            missing[name] = str(reason)
            continue
        found = audit_release(release, owner=owner, holdout=holdout, private=PRIVATE, effort=effort, name=name)
        area = max(score["value"] for score in found["attacks"] if score["metric"] == "auroc")
        worst = {question: found["worst"][question] for question in QUESTIONS}
        figures[name] = {
            **{question: [_round(one["leakage"]), *map(_round, one["leakage_ci"])] for question, one in worst.items()},
            "auroc": round(area, 3),
        }
    called = {"Gaussian copula": copula, "trees": trees}
    for name, maker in called.items():
        figures[f"{name}, maker called"] = _by_shadows(owner, holdout, maker, effort)
    told = {"not run": missing} if missing else {}
    return {"claim": claim, "holds": None if small else _ordered(figures), "figures": figures, **told}


def _by_shadows(
    owner: Columns, holdout: Columns, maker: Callable[[Columns, np.random.Generator], Columns], effort: Effort
) -> dict[str, Any]:
    """Membership where the attacker can run the maker on other people, as often as the effort says."""
    noise = np.random.default_rng(1)
    found = audit_release(
        maker(owner, np.random.default_rng(0)),
        owner=owner,
        holdout=holdout,
        pipeline=lambda records: maker(records, noise),
        effort=replace(effort, threats=("membership",)),
    )
    worst = found["worst"]["membership"]
    of = {one["metric"]: round(one["value"], 4) for one in found["attacks"] if one["attack"] == worst["attack"]}
    return {"membership": [_round(worst["leakage"]), *map(_round, worst["leakage_ci"])], "by": worst["attack"], **of}


def _ordered(figures: Mapping[str, Mapping[str, Any]]) -> bool:
    synth = [figures[name] for name in ("synth, ε = 1", "synth, ε = 10", "CTGAN") if name in figures]
    trees, own = figures["trees"], figures["the owner's rows"]
    nothing = all(one[question][1] == 0.0 for one in synth for question in QUESTIONS)
    less = all(one[question][0] <= trees[question][0] for one in synth for question in ("membership", "copies"))
    return nothing and less and trees["membership"][1] > 0.0 and all(own[q][0] >= 0.95 for q in QUESTIONS)


class PeerFailed(Exception):
    """Another maker's program could not be run; the message says why."""


def ctgan(train: Dataset, passes: int) -> Columns:
    """As many records as ``train`` has, by CTGAN with its own settings but for the passes."""
    import pyarrow.parquet as pq

    table = as_table(train.x, train.utility, train.schema, records=True)
    texts = [field.name for field in table.schema if str(field.type) in ("string", "bool")]
    with tempfile.TemporaryDirectory() as folder:
        given, drawn = Path(folder) / "train.parquet", Path(folder) / "drawn.parquet"
        pq.write_table(table, given)
        outcome = run_peer("ctgan", 0.0, given, drawn, _MOST_SECONDS, texts=texts, settings={"epochs": passes})
        if outcome.failed is not None:
            raise PeerFailed(outcome.failed)
        found = pq.read_table(drawn)
        return {name: np.array(found[name].to_pylist(), dtype=object) for name in found.column_names}


def _round(share: float) -> float:
    return round(float(share), 3)


def columns(data: Dataset) -> Columns:
    """A data set as the columns of its file."""
    table = as_table(data.x, data.utility, data.schema, records=True)
    return {name: np.array(table[name].to_pylist(), dtype=object) for name in table.column_names}


def copula(owner: Columns, rng: np.random.Generator) -> Columns:
    """Normal scores with the correlations of the records' own, turned back into the values of each column."""
    from scipy.special import ndtr, ndtri

    coded, count = _coded(owner), len(next(iter(owner.values())))
    ranked = {name: np.sort(codes) for name, (_, codes) in coded.items()}
    scores = []
    for codes in (codes for _, codes in coded.values()):
        order = np.lexsort((rng.random(count), codes))
        place = np.empty(count)
        place[order] = (np.arange(count) + 0.5) / count
        scores.append(ndtri(place))
    drawn = ndtr(rng.multivariate_normal(np.zeros(len(scores)), np.corrcoef(scores), count))
    places = np.minimum((drawn * count).astype(np.int64), count - 1)
    return {name: coded[name][0][ranked[name][places[:, at]]] for at, name in enumerate(coded)}


def trees(owner: Columns, rng: np.random.Generator) -> Columns:
    """Each column from the ones before it: a value of a record in the same leaf."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    coded, count = _coded(owner), len(next(iter(owner.values())))
    made: dict[str, npt.NDArray[np.int64]] = {}
    for name, (values, codes) in coded.items():
        if not made:
            made[name] = codes[rng.integers(0, count, count)]
            continue
        known = np.stack([coded[one][1] for one in made], axis=1)
        asked = np.stack(list(made.values()), axis=1)
        number = isinstance(values[-1], (int, float))
        kind = DecisionTreeRegressor if number else DecisionTreeClassifier
        tree = kind(min_samples_leaf=_LEAF, random_state=int(rng.integers(2**31))).fit(known, codes)
        leaf, theirs = tree.apply(known), tree.apply(asked)
        order = np.argsort(leaf, kind="stable")
        first = np.searchsorted(leaf[order], theirs)
        size = np.searchsorted(leaf[order], theirs, "right") - first
        made[name] = codes[order[first + (rng.random(count) * size).astype(np.int64)]]
    return {name: coded[name][0][codes] for name, codes in made.items()}


def _coded(owner: Columns) -> Codes:
    """Column → its values in order, and the place of each record's among them; a missing value comes first."""
    found: Codes = {}
    for name, column in owner.items():
        values = sorted({value for value in column if value is not None})
        every = np.array([*([None] if None in set(column) else []), *values], dtype=object)
        place = {value: at for at, value in enumerate(every)}
        found[name] = (every, np.array([place[value] for value in column], dtype=np.int64))
    return found

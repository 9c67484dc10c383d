"""Releases of Adult that leak more and less, in the order that one expects: the audit of rows has to find it.

The owner's own rows; rows drawn column by column from trees with leaves of one record each, and with leaves of thirty
(as synthpop does, without a guarantee); ``synth`` at ε = 10 and 1; and other people of the same file.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato import audit_release, load
from sfumato.auditing import CPU
from sfumato.core.dataset import Dataset
from sfumato.core.errors import SfumatoError
from sfumato.data.encoding.tables import decode_table
from sfumato.mechanisms.synth.mechanism import Synth

PEOPLE = 3000
LABEL = "income"
QUESTIONS = ("singling-out", "linkability", "inference", "membership", "copies")
Table = dict[str, npt.NDArray[Any]]


def run(people: int = PEOPLE) -> dict[str, Any]:
    """The worst leakage of each question for each release, in percent, with its interval."""
    claim = "the owner's rows leak most, then memorising trees, then pruned ones; synth and other people leak nothing"
    try:
        data = load("adult", utility=LABEL, private=(), part="train", limit=4 * people)
    except SfumatoError as error:
        return {"claim": claim, "not measured": str(error), "holds": False}
    order = np.random.default_rng(0).permutation(len(data))
    owner, holdout, nobody = (data.take(order[at * people : (at + 1) * people]) for at in range(3))
    releases = {
        "owner's rows": table(owner),
        "trees, leaves of 1": by_trees(table(owner), 1),
        "trees, leaves of 30": by_trees(table(owner), 30),
        "synth, ε = 10": drawn(owner, 10.0),
        "synth, ε = 1": drawn(owner, 1.0),
        "other people": table(nobody),
    }
    found, seconds = {}, {}
    for name, release in releases.items():
        started = time.perf_counter()
        scores = audit_release(release, owner=table(owner), holdout=table(holdout), name=name, effort=CPU)
        seconds[name] = round(time.perf_counter() - started, 1)
        found[name] = {question: shown(scores["worst"][question]) for question in QUESTIONS}
    member = {name: found[name]["membership"] for name in releases}
    ordered = member["owner's rows"][0] >= 95.0 > member["trees, leaves of 1"][0] > member["trees, leaves of 30"][0]
    quiet = all(found[name][question][1] == 0.0 for name in ("synth, ε = 1", "other people") for question in QUESTIONS)
    return {
        "claim": claim,
        "people": people,
        "leakage in % [from, to]": found,
        "seconds": seconds,
        "holds": ordered and quiet,
    }


def shown(score: dict[str, Any]) -> list[float]:
    """Leakage and its interval in percent."""
    if score["leakage"] is None:
        return [0.0, 0.0, 100.0]
    return [round(100.0 * share, 1) for share in (score["leakage"], *score["leakage_ci"])]


def table(data: Dataset) -> Table:
    """Records as a file has them, the label beside them."""
    columns = decode_table(data.x, data.schema)
    found = {name: np.array(columns[name].to_pylist(), dtype=object) for name in columns.column_names}
    return {**found, LABEL: np.array(data.schema.classes(LABEL), dtype=object)[data.utility[LABEL]]}


def drawn(owner: Dataset, epsilon: float) -> Table:
    """As many synthetic records."""
    return table(Synth(epsilon=epsilon).fit(owner).sample(len(owner)))


def by_trees(owner: Table, leaf: int) -> Table:
    """Each column drawn from the owner's values in the leaf to which the columns drawn before lead."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rng = np.random.default_rng(leaf)
    codes = {name: _codes(values) for name, values in owner.items()}
    names = list(owner)
    count = len(owner[names[0]])
    rows = {names[0]: rng.integers(0, count, count)}
    made = {names[0]: codes[names[0]][rows[names[0]]]}
    for place, name in enumerate(names[1:], 1):
        before = np.stack([codes[one] for one in names[:place]], axis=1)
        kind = DecisionTreeRegressor if _number(owner[name]) else DecisionTreeClassifier
        tree = kind(min_samples_leaf=leaf, random_state=0).fit(before, codes[name])
        leaves, reached = tree.apply(before), tree.apply(np.stack([made[one] for one in names[:place]], axis=1))
        donors = {int(one): np.flatnonzero(leaves == one) for one in np.unique(leaves)}
        rows[name] = np.array([rng.choice(donors[int(one)]) for one in reached])
        made[name] = codes[name][rows[name]]
    return {name: owner[name][rows[name]] for name in names}


def _number(values: npt.NDArray[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _codes(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    if _number(values):
        return values.astype(np.float64)
    return np.unique(np.array([str(value) for value in values]), return_inverse=True)[1].astype(np.float64)

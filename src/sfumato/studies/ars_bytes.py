"""``ars-table1``: accuracy and bytes on the wire, counted, beside federated averaging at the same precisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import load_splits
from sfumato.auditing import CPU, SMOKE, audit
from sfumato.core.dataset import Dataset
from sfumato.core.intervals import Interval, mean_interval
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.parties import FedResult, ShareResult, fedavg, simulate
from sfumato.parties.party_folder import open_party
from sfumato.parties.pooled_learning import HELD_OUT, OWN, predicted, read_piece
from sfumato.parties.results import read_right
from sfumato.studies.base import Measurement
from sfumato.studies.papers import paper
from sfumato.studies.right_rows import Right, accuracy_row, less_row, paired
from sfumato.studies.rows import Row, plain_row
from sfumato.studies.verdicts import Asked

_MEGABYTE = 1e6
_PARTIES = 5
_EACH = {"smoke": 150, "cpu": 10_000, "full": 10_000}
_ROUNDS = {"smoke": 2, "cpu": 8, "full": 20}
_BITS = {"float32": 32, "uint8": 8, "uint4": 4}
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "ars, published, ε = 1, 64 numbers": {"variant": "published"},
    "ars, hardened, ε = 1, 64 numbers": {},
    "ars, hardened, ε = 0.3, 8 numbers": {"latent": 64, "keep": 8, "epsilon": 0.3},
}
_PUBLISHED, _, _THRIFTY = _SETTINGS
_DP: Mapping[str, Any] = {"noise": 1.0, "clip": 1.0}


@dataclass(frozen=True)
class Step:
    """What was reached with so many bytes: one release, or a round of federated averaging."""

    bytes: int
    right: Right


def rows(
    *,
    data: str = "mnist",
    scale: str = "cpu",
    seed: int = 0,
    out: Path,
    say: Callable[[str], None] = lambda _: None,
    **_: Any,
) -> list[Row]:
    """Five parties. Bytes are those of whole serialised messages in both directions, counted as they passed."""
    common: dict[str, Any] = {"parties": _PARTIES, "utility": ["digit"], "private": [], "each": _EACH[scale]}
    common |= {"seed": seed, "say": say}
    few = {"epochs": 2} if scale == "smoke" else {}
    said = paper("ars")
    averaged: dict[str, list[Step]] = {}
    share = 0.0
    found = [
        plain_row(
            "SecureML: accuracy, quoted from the paper",
            "accuracy",
            "higher",
            said.figure("Table 1", "SecureML", "accuracy"),
            paper=said.figure("Table 1", "SecureML", "accuracy"),
        )
    ]
    for wire, bits in _BITS.items():
        home = out / f"fedavg-{wire}"
        result = fedavg(data, rounds=_ROUNDS[scale], wire=wire, out=home, **common)
        averaged[wire] = steps_of(result, home)
        share = share or _majority(home)
        found += _last(f"FedAvg, {bits} bits", averaged[wire], share)
    home = out / "dp-fedavg"
    private = steps_of(fedavg(data, rounds=_ROUNDS[scale], out=home, **_DP, **common), home)
    found += _last("DP-FedAvg, noise 1, clip 1, 32 bits", private, share, said.figure("Table 1", "DPFL", "accuracy"))
    alone = _alone(out / "fedavg-float32")
    for number, right in enumerate(alone):
        found.append(accuracy_row(f"party {number} alone, the same learner on its raw records", right, majority=share))
    for name, params in _SETTINGS.items():
        for wire, bits in _BITS.items():
            home = out / f"{list(_SETTINGS).index(name)}-{wire}"
            shared = simulate(data, params={**params, **few}, wire=wire, out=home, **common)
            theirs = said.figure("Table 1", "ARS", "accuracy") if name == _PUBLISHED and bits == 32 else None
            found += _compared(f"{name} of {bits} bits", shared, home, averaged[wire], alone, share, theirs)
    found.append(_error(data, scale, seed, few))
    return found


def steps_of(result: FedResult, home: Path) -> list[Step]:
    """The rounds of federated averaging, with the bytes up to each and those that bring its model to the parties."""
    return [
        Step(one.bytes_up + one.bytes_down + one.bytes_down // one.number, read_right(home, one.number))
        for one in result.rounds
    ]


def _last(name: str, steps: Sequence[Step], share: float, theirs: float | None = None) -> list[Row]:
    return [
        accuracy_row(f"{name}, after all rounds: accuracy", steps[-1].right, paper=theirs, majority=share),
        _megabytes(f"{name}, after all rounds: megabytes", steps[-1].bytes),
    ]


def _compared(
    name: str,
    result: ShareResult,
    home: Path,
    averaged: Sequence[Step],
    alone: Sequence[Right],
    share: float,
    theirs: float | None,
) -> list[Row]:
    """The pool beside federated averaging at the same precision, every party alone, and the initiator's share alone.

    ``share`` is that of the most frequent class.
    """
    ours = Step(result.bytes_up + result.bytes_down, read_right(home))
    published = name.startswith(_PUBLISHED)
    said = paper("ars")
    similar = said.figure("Table 1", "ARS", "accuracy") - said.figure("Table 1", "SecureML", "accuracy")
    best = max(alone, key=lambda right: float(right.mean()))
    found = [
        accuracy_row(f"{name}: accuracy of the pool", ours.right, paper=theirs, majority=share),
        accuracy_row(f"{name}: accuracy, learner on the initiator's share alone", _initiator(home), majority=share),
        less_row(f"{name}: pool less the initiator's share alone", ours.right, _initiator(home)),
        less_row(f"{name}: pool less the best party alone on raw records", ours.right, best),
        less_row(
            f"{name}: pool less FedAvg after all rounds",
            ours.right,
            averaged[-1].right,
            asked=Asked("ars-similar-accuracy", "above", similar) if published else None,
        ),
        _megabytes(f"{name}: megabytes", ours.bytes),
    ]
    within = [step for step in averaged if step.bytes <= ours.bytes]
    if within:
        label = f"{name}: pool less FedAvg at no more bytes"
        found.append(less_row(label, ours.right, within[-1].right))
    value, ci = bytes_ratio(ours, averaged)
    asked = Asked("ars-fewest-bytes", "below", 1.0) if published else None
    label = f"{name}: bytes over FedAvg's at equal accuracy (its last round, if none is as accurate)"
    return [*found, Row(label, "ratio", "lower", None, value, ci, asked=asked)]


def bytes_ratio(ours: Step, theirs: Sequence[Step]) -> tuple[float, Interval]:
    """Our bytes over those of their first step that is as accurate; the last one, where none is.

    The interval is that of which step it is: the first that may be as accurate, over the same records, to the first
    that surely is.
    """
    ends = [mean_interval(paired(step.right, ours.right)) for step in theirs]

    def over(enough: Sequence[bool]) -> float:
        place = enough.index(True) if any(enough) else len(theirs) - 1
        return ours.bytes / theirs[place].bytes

    value = over([bool(step.right.mean() >= ours.right.mean()) for step in theirs])
    return value, (over([low >= 0 for low, _ in ends]), over([high >= 0 for _, high in ends]))


def _parties(home: Path) -> list[Path]:
    return [home / "parties" / f"party-{number}" for number in range(_PARTIES)]


def _alone(home: Path) -> list[Right]:
    """For every party: the pool's learner on its own raw records, tested on the held-out records of all."""
    members = [open_party({"data": str(folder)}, 0) for folder in _parties(home)]
    tests = [member.records("test") for member in members]
    x = np.concatenate([_flat(test) for test in tests])
    truth = np.concatenate([test.utility["digit"] for test in tests])
    return [
        predicted(_flat(train), train.utility, x, "mlp")["digit"] == truth
        for train in (member.records("train") for member in members)
    ]


def _majority(home: Path) -> float:
    """The share of the most frequent class among the held-out records of all."""
    codes = [open_party({"data": str(folder)}, 0).records("test").utility["digit"] for folder in _parties(home)]
    counts = np.bincount(np.concatenate(codes))
    return float(counts.max() / counts.sum())


def _flat(data: Dataset) -> Any:
    return data.x.reshape(len(data), -1)


def _initiator(home: Path) -> Right:
    """The learner on what the initiator shared, tested on the protected held-out records of all."""
    folders = _parties(home)
    classes = dict(open_party({"data": str(folders[0])}, 0).schema.utility)
    z, labels = read_piece(_only(folders[0], OWN), classes)
    tests = [read_piece(_only(folder, HELD_OUT), classes) for folder in folders]
    truth = np.concatenate([codes["digit"] for _, codes in tests])
    guesses = predicted(z, labels, np.concatenate([held_out for held_out, _ in tests]), "mlp")["digit"]
    return np.asarray(guesses == truth)


def _only(folder: Path, name: str) -> Path:
    return next((folder / "shared").glob(f"*/{name}"))


def _error(data: str, scale: str, seed: int, few: dict[str, Any]) -> Row:
    """What the few numbers still give away: cheap is not safe, and the other settings' figures are in ars-figure4."""
    shares = [5 / 6, 1 / 6] if data == "mnist" else None
    splits = load_splits(
        data, utility=["digit"], private=[], shares=shares, limit=1500 if scale == "smoke" else None, seed=seed
    )
    effort = replace(SMOKE if scale == "smoke" else CPU, threats=("reconstruction",))
    fitted = ARS(parties=_PARTIES, seed=seed, **{**_SETTINGS[_THRIFTY], **few}).fit(splits.owner)
    found = audit(fitted, splits, effort=effort, seed=seed)
    worst = min((s for s in found.attacks if s.metric == "mse"), key=lambda s: s.value)
    return Row(f"{_THRIFTY}: error of the worst attacker", "mse", "higher", None, worst.value, worst.ci)


def _megabytes(name: str, count: int) -> Row:
    return plain_row(name, "MB", "lower", count / _MEGABYTE)


STUDY = Measurement(
    name="ars-table1",
    family="ars-bytes",
    title="Accuracy and bytes beside federated averaging, Table 1",
    about="Accuracy of a pool of five parties and the bytes of all messages, beside federated averaging on the same "
    "parties at the same precision (4, 8 and 32 bits a number, both ways), beside each party alone, and beside "
    "a learner on the initiator's share alone. Bytes of FedAvg include the way of the last model to the parties.",
    data=("mnist", "digits"),
    run=rows,
    claims=("ars-similar-accuracy", "ars-fewest-bytes"),
    seeds={"cpu": (0, 1, 2), "full": (0, 1, 2)},
)

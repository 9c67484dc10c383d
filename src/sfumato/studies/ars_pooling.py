"""``ars-pooling`` and ``ars-noniid``: for whom does sharing pay, and what if the parties differ (§6.2)?

Five parties, and test records that nobody trained on. A party uses what it learnt on its own records, which need no
noise, so all learners on latents are tested on clean latents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import load, load_splits
from sfumato.auditing import CPU, SMOKE, audit
from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.randomness import Seeded, derive_seed
from sfumato.core.run_folder import read_json, write_json
from sfumato.core.score import each_record
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.mechanisms.baselines.latent_noise import LatentNoise
from sfumato.mechanisms.device_secret import drawn_secret
from sfumato.parties.local_training import classifier, tensors_of, train_locally
from sfumato.parties.pooled_learning import predicted
from sfumato.parties.skew import Skew
from sfumato.studies.base import Measurement
from sfumato.studies.right_rows import Right, accuracy_row, less_row
from sfumato.studies.rows import Row, Scored, plain_row, ratio, score_row
from sfumato.studies.verdicts import Asked

PARTIES, LABEL = 5, "digit"
_EACH: Mapping[str, tuple[int, ...]] = {
    "smoke": (40,),
    "cpu": (50, 200, 1000, 5000, 10_000),
    "full": (50, 100, 200, 500, 1000, 2000, 5000, 10_000),
}
_NONIID_EACH = {"smoke": 60, "cpu": 2000, "full": 10_000}
_PARTITIONS = ("even", "classes=2", "dirichlet=0.3", "power=1")
_STEPS = {"smoke": 600, "cpu": 60_000, "full": 60_000}
"""Records that each stage of training sees at least, whatever a party has: few records need more epochs."""
_CURVE = "curve.json"

Rows = Sequence[IntArray]
"""The rows of each party, the initiator first."""


def epochs(records: int, scale: str) -> int:
    """So many passes that a stage sees ``_STEPS`` records, from 20 to 200 (smoke: 2 to 15)."""
    low, high = (2, 15) if scale == "smoke" else (20, 200)
    return max(low, min(high, _STEPS[scale] // records))


def learnt(data: Dataset, rows: Rows, test: Dataset, scale: str, seed: int) -> dict[str, Right]:
    """Which test records each learner gets right."""
    truth, flat = test.utility[LABEL], test.x.reshape(len(test), -1)
    smallest = min(len(own) for own in rows)
    few: dict[str, Any] = {"epochs": epochs(smallest, scale), "batch": max(8, min(128, smallest // 4)), "seed": seed}
    found: dict[str, Right] = {}
    for number, own in enumerate(rows):
        raw = data.x[own].reshape(len(own), -1)
        found[f"party {number} alone, raw"] = _right(raw, data.utility[LABEL][own], flat, truth)
    ways = {
        "initiator's encoder": ARS(parties=len(rows), **few),
        "encoder of all": ARS(parties=len(rows), together=True, **few),
        "published, ε = 1": ARS(parties=len(rows), variant="published", **few),
    }
    for name, mechanism in ways.items():
        mechanism.fit_parties(data, rows)
        shares = [_share(mechanism, place, data.take(own), seed) for place, own in enumerate(rows)]
        clean = mechanism.parties_[0].latents(test.x)
        for which, several in (("pool", len(rows)), ("initiator's share only", 1)):
            codes = data.utility[LABEL][np.concatenate(rows[:several])]
            found[f"{name}: {which}"] = _right(np.concatenate(shares[:several]), codes, clean, truth)
    found["FedAvg"] = averaged(data, rows, test, int(few["epochs"]), seed)  # as often as the encoder of all
    return found


def _share(mechanism: ARS, place: int, own: Dataset, seed: int) -> FloatArray:
    """What one party shares: the published noise is made with its own substitute decoder and mask."""
    if mechanism.variant == "published":
        secret = drawn_secret(Seeded(derive_seed(seed, "share", place)))
        return mechanism.parties_[place].published(own.x, secret, mechanism.defence_)
    return mechanism.release(own, seed=derive_seed(seed, "share")).payload


def _right(z: Any, codes: IntArray, test: Any, truth: IntArray) -> Right:
    if len(np.unique(codes)) == 1:  # a party of one class can only say that one
        return np.asarray(truth == codes[0])
    return np.asarray(predicted(z, {LABEL: codes}, test, "mlp")[LABEL] == truth)


def averaged(data: Dataset, rows: Rows, test: Dataset, rounds: int, seed: int) -> Right:
    """FedAvg in this process, as a party and the server of ``sfumato share fedavg`` do it, without rounding."""
    import torch

    x, y = tensors_of(data)
    size, classes = x[0].numel(), len(data.schema.utility[LABEL])
    shared = classifier(size, classes, derive_seed(seed, "fedavg", "weights"))
    counts = torch.tensor([len(own) for own in rows], dtype=torch.float32)
    for number in range(rounds):
        states = []
        for place, own in enumerate(rows):
            model = classifier(size, classes, 0)
            model.load_state_dict(shared.state_dict())
            generator = torch.Generator().manual_seed(derive_seed(seed, "fedavg", place, number))
            kept = torch.as_tensor(own)
            train_locally(model, x[kept], y[kept], 1, 32, 0.05, generator)
            states.append(model.state_dict())
        shared.load_state_dict(
            {
                name: torch.tensordot(counts / counts.sum(), torch.stack([state[name] for state in states]), dims=1)
                for name in states[0]
            }
        )
    tests, truth = tensors_of(test)
    with torch.no_grad():
        return np.asarray((shared(tests).argmax(1) == truth).numpy())


def even_rows(data: Dataset, each: int, seed: int) -> list[IntArray]:
    """``each`` records for every party, drawn at random."""
    order = np.random.default_rng(derive_seed(seed, "deal")).permutation(len(data))
    return [order[place * each : (place + 1) * each] for place in range(PARTIES)]


def skewed_rows(data: Dataset, partition: str, total: int, seed: int) -> list[IntArray]:
    """``total`` records, dealt out as the partition says."""
    kept = np.random.default_rng(derive_seed(seed, "deal")).permutation(len(data))[:total]
    codes, classes = data.utility[LABEL][kept], len(data.schema.utility[LABEL])
    whose = Skew.parse(partition).place(data.origin.contents[kept], codes, classes, PARTIES, seed, "deal")
    return [kept[whose == place] for place in range(PARTIES)]


def gains(name: str, found: Mapping[str, Right], majority: float) -> list[Row]:
    """Accuracies, and what each pool gains on the best party alone and on the initiator's share only."""
    rows = [accuracy_row(f"{name}: {who}", right, majority=majority) for who, right in found.items()]
    alone = max((r for who, r in found.items() if "alone" in who), key=lambda right: float(right.mean()))
    own = found["initiator's encoder: initiator's share only"]
    for way in ("initiator's encoder", "encoder of all", "published, ε = 1"):
        pool = found[f"{way}: pool"]
        asked = Asked("ars-more-data", "above", 0.0) if way.startswith("published") else None
        rows += [
            less_row(f"{name}: pool, {way}, less the best party alone on raw records", pool, alone, asked=asked),
            less_row(f"{name}: pool, {way}, less the initiator on its own", pool, own),
            less_row(f"{name}: pool, {way}, less FedAvg", pool, found["FedAvg"]),
        ]
    return rows


def _loaded(data: str, scale: str) -> tuple[Dataset, Dataset, float]:
    if data == "mnist":
        train, test = (load(data, utility=[LABEL], private=[], part=part) for part in ("train", "test"))
    else:  # without parts of its own: every fifth record is held out
        every = load(data, utility=[LABEL], private=[])
        held_out = np.arange(len(every)) % 5 == 0
        train, test = every.take(np.flatnonzero(~held_out)), every.take(np.flatnonzero(held_out))
    if scale == "smoke":
        test = test.take(slice(0, 500))
    return train, test, float(np.bincount(test.utility[LABEL]).max() / len(test))


def pooling_rows(
    *, data: str, scale: str = "cpu", seed: int = 0, out: Path, say: Callable[[str], None] = lambda _: None, **_: Any
) -> list[Row]:
    """The gain over records a party, and the error of the worst attacker on both encoders."""
    train, test, majority = _loaded(data, scale)
    rows: list[Row] = []
    curve: dict[str, list[Any]] = {}
    for each in _EACH[scale]:
        say(f"{each} records a party")
        some = gains(
            f"{each} records a party", learnt(train, even_rows(train, each, seed), test, scale, seed), majority
        )
        rows += some
        for row in some:
            what = row.name.partition(": ")[2]
            if "less the best" in what or "less the initiator on" in what:
                curve.setdefault(what, []).append([each, row.ours, *(row.ci or ())])
    write_json(out / _CURVE, curve)
    return [*rows, *_errors(data, scale, seed)]


def _errors(data: str, scale: str, seed: int) -> list[Row]:
    """The lowest error of any attacker, without a defence and under each encoder, and its multiple of the former.

    MNIST's parties have 10,000 records each: with few, the undefended autoencoder errs so much itself that the error of
    the mean record, which anybody can guess, is less than four times that.
    """
    limit = 1500 if scale == "smoke" else None
    shares = (5 / 6, 1 / 6) if data == "mnist" else None
    splits = load_splits(data, utility=[LABEL], private=[], limit=limit, shares=shares, seed=seed)
    effort = replace(SMOKE if scale == "smoke" else CPU, threats=("reconstruction",))
    few: dict[str, Any] = {"epochs": epochs(len(splits.owner) // PARTIES, scale)}
    ways: dict[str, Any] = {
        "no defence": LatentNoise(way="gaussian", epsilon=0.0, one_in=PARTIES, seed=seed, **few),
        "initiator's encoder": ARS(parties=PARTIES, seed=seed, **few),
        "encoder of all": ARS(parties=PARTIES, together=True, seed=seed, **few),
    }
    rows: list[Row] = []
    undefended: Scored | None = None
    for name, mechanism in ways.items():
        found = audit(mechanism.fit(splits.owner), splits, effort=effort, seed=seed)
        best = min((s for s in found.attacks if s.metric == "mse"), key=lambda s: s.value)
        worst: Scored = ({"point": name, "each": each_record(found.attacks)}, best.to_json())
        rows.append(score_row(f"{name}, {len(splits.owner):,} records in all: error of the worst attacker", worst[1]))
        undefended = undefended or worst
        if worst is not undefended:
            value, ends = ratio(worst, undefended)
            told = f"{name}: error of the worst attacker, × no defence"
            rows.append(Row(told, "mse ratio", "higher", None, value, ends, n=best.n))
    mean = float(undefended[1]["baseline"]) if undefended else 0.0
    return [*rows, plain_row("who guesses the mean record: error", "mse", "higher", mean)]


def noniid_rows(
    *, data: str, scale: str = "cpu", seed: int = 0, say: Callable[[str], None] = lambda _: None, **_: Any
) -> list[Row]:
    """Skewed parties, and initiators with few records or few classes."""
    train, test, majority = _loaded(data, scale)
    each = _NONIID_EACH[scale]
    cases = {text: skewed_rows(train, text, PARTIES * each, seed) for text in _PARTITIONS}
    even = cases["even"]
    cases["initiator with a tenth of the records"] = [even[0][: max(20, len(even[0]) // 10)], *even[1:]]
    codes = train.utility[LABEL][even[0]]
    cases["initiator with one class"] = [even[0][codes == codes[0]], *even[1:]]
    rows: list[Row] = []
    pools: dict[str, Right] = {}
    for name, dealt in cases.items():
        say(name)
        found = learnt(train, dealt, test, scale, seed)
        rows += gains(name, found, majority)
        for way in ("initiator's encoder", "encoder of all", "published, ε = 1"):
            pool = found[f"{way}: pool"]
            if name == "even":
                pools[way] = pool
                continue
            asked = Asked("ars-noniid", "below", 0.0) if way.startswith("published") else None
            rows.append(less_row(f"{name}: pool, {way}, less that of even parties", pool, pools[way], asked=asked))
    return rows


def _picture(_data: str, folder: Path, path: Path) -> None:
    from sfumato.studies.drawing import plots

    curve = read_json(folder / _CURVE)
    panels = []
    for against in ("less the best party alone on raw records", "less the initiator on its own"):
        curves = {}
        for name, points in curve.items():
            if name.endswith(against):
                way = name.removeprefix("pool, ").removesuffix(f", {against}")
                xs, ys, *ends = zip(*points, strict=True)
                curves[way] = (xs, ys, list(zip(*ends, strict=True)))
        panels.append((f"pool {against}", curves))
    plots(path, panels, x="records a party", y="difference of accuracy", logarithmic="x")


STUDIES = (
    Measurement(
        name="ars-pooling",
        family="ars-pooling",
        title="For whom does sharing pay?",
        about="What a learner on the pool of five parties gains on the best party alone and on the initiator, "
        "over the number of records a party has, on test records that nobody trained on.",
        data=("mnist", "digits"),
        run=pooling_rows,
        claims=("ars-more-data",),
        seeds={"cpu": (0, 1, 2), "full": (0, 1, 2)},
        picture=_picture,
    ),
    Measurement(
        name="ars-noniid",
        family="ars-noniid",
        title="Parties that differ, and weak initiators, §6.2",
        about="The same where parties have two classes each, shares of classes by a Dirichlet law, or unequal numbers "
        "of records, and where the initiator has few records or one class.",
        data=("mnist", "digits"),
        run=noniid_rows,
        claims=("ars-noniid",),
        seeds={"cpu": (0, 1, 2), "full": (0, 1, 2)},
    ),
)

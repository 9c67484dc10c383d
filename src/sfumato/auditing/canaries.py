"""How private a method can be at most: an auditor who knows everything but whether one record was there.

The auditor runs the method's own ``learn`` once more, with noise from the generator that protected the fitted run, and
puts every question that is asked to two data sets which differ in one record or person. It sees the noisy answers, and
tells the two apart. That is the adversary which (ε, δ) is about, so a bound above the claimed ε refutes the claim, and
one far below it only says that these records are no worst case. How often the right world is named gives the bound;
nothing about the noise is assumed, but that outputs of its generator may be drawn again.

The two data sets are the auditor's own, or (``canary-file``) what loading and splitting make of the owner's file, and
of the same file without one record or person: what goes wrong before the mechanism shows as well.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from sfumato.auditing.domain_records import heaviest, lightest, uniform
from sfumato.auditing.effort import Effort
from sfumato.auditing.noise_layer_bound import layer_bound
from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.metrics import Values
from sfumato.core.origin import hash_rows
from sfumato.core.randomness import derive_seed
from sfumato.core.score import Score
from sfumato.mechanisms.base import no_progress
from sfumato.mechanisms.synth.methods.method import public_number
from sfumato.privacy.canary_listeners import Crowd, Listener, Pair
from sfumato.privacy.discrete_gaussian import Noise, RepeatableNoise, ResampledNoise
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.lower_bounds import epsilon_lower_bound
from sfumato.privacy.neighbouring_worlds import Answered, Auditor, Twin
from sfumato.privacy.one_run_bound import one_run_bound
from sfumato.privacy.query_counter import Records

if TYPE_CHECKING:
    from sfumato.mechanisms.capabilities import LearnsByCounter
    from sfumato.mechanisms.synth.methods.method import Method

THREAT = "differential-privacy"
METRIC = "epsilon-lower-bound"
WORST, NATURAL, FILE, ONE_RUN = "canary-worst", "canary-natural", "canary-file", "canary-one-run"
LAYER, GRADIENT = "noise-layer", "canary-gradient"
TITLES = {
    WORST: "Worst-case canary",
    NATURAL: "Natural canary",
    FILE: "The file without one record or person",
    ONE_RUN: "One run, many canaries",
    GRADIENT: "Gradients before the noise",
}
_BLANK = 8
"""Blank records beside the worst-case canary."""
_ROWS, _MOST_ROWS = 16, 1024
"""Records of a worst-case person, and at most so many where a lone record weighs little."""
_SAMPLE = 1000
"""The owner's records beside a natural canary."""
_MOST_DRAWN = 40_000_000
"""Answers drawn in one world in all: a plan of many questions has fewer transcripts."""
_MOST_OUTPUTS = 2**16
"""Outputs of the run's own noise generator, which takes some seconds for so many."""
_FEWEST = 10
"""Alarms in the half that chooses the threshold: a rarer event would not be seen in the other half."""
_SURE = 0.9999
"""Confidence by which the threshold is chosen: of many, the best by 95 % would be the luckiest."""


@dataclass(frozen=True)
class Neighbours:
    """Two data sets: ``common``, with ``instead`` if that is given, and ``common`` with the ``record``.

    A record is one, or all of a person.
    """

    common: Records
    record: Records
    instead: Records | None = None


@dataclass(frozen=True)
class Losses:
    """The privacy loss of transcripts from the world without the record, and from that with it."""

    without: Values
    within: Values


def obstacle(mechanism: LearnsByCounter) -> str | None:
    """Why canaries say nothing about a mechanism, or None."""
    if mechanism.method_.name == LAYER:
        return None
    if mechanism.method_.doubt is not None:
        return f"{mechanism.method_.name} looks at the records past the counter: its answers do not show what leaks"
    if mechanism.labels == "public":
        return "the promise is for x alone, and the canary's label would be seen"
    return None


def unheard(mechanism: LearnsByCounter, effort: Effort) -> str | None:
    """How much of the run canaries do not hear at this effort, or None if they hear every answer."""
    every = sum(ask.count for ask in mechanism.ledger_.plan)
    return f"{effort.questions} of {every} answers are heard at this effort" if effort.questions < every else None


def canary_scores(
    mechanism: LearnsByCounter, owner: Dataset, effort: Effort, seed: int, neighbour: Dataset | None = None
) -> list[Score]:
    """A lower bound of ε from each kind of canary, beside what is claimed.

    ``neighbour`` holds the owner's records in the same file without one record or person.
    """
    started = time.perf_counter()
    seed = derive_seed(seed, "canaries")
    if mechanism.method_.name == LAYER:
        value, most, runs = layer_bound(mechanism, seed)
        return [_score(GRADIENT, value, most, runs, mechanism, time.perf_counter() - started)]
    records = mechanism.records(owner)
    people = len(owner) if records.who is None else len(torch.unique(records.who))
    pairs = {WORST: worst_case(mechanism), NATURAL: natural(records, derive_seed(seed, NATURAL))}
    if neighbour is not None:
        pairs[FILE] = between(records, mechanism.records(neighbour), derive_seed(seed, FILE))
    common = pairs[NATURAL].common
    questions = min(effort.questions, sum(ask.count for ask in mechanism.ledger_.plan))
    draws = min(effort.draws, _MOST_DRAWN // questions)
    noise = ResampledNoise(mechanism.noise(), min(draws, _MOST_OUTPUTS), derive_seed(seed, "noise"))
    crowd, coins = gathered(mechanism, common, effort.canaries, derive_seed(seed, ONE_RUN), noise)
    heard: dict[str, list[Losses]] = {name: [] for name in pairs}
    for number in range(effort.canary_runs):
        ears = {name: Pair(pair.common, pair.record, draws, noise, pair.instead) for name, pair in pairs.items()}
        every = [*ears.values(), *([crowd] if number == 0 else [])]
        counter = Listener(common, _afresh(mechanism.ledger_), every, noise=noise, most=effort.questions)
        listen(_built(mechanism, people), counter)
        for name, ear in ears.items():
            heard[name].append(Losses(ear.without, ear.within))
    found = {name: lower_bound(together(losses), mechanism.delta) for name, losses in heard.items()}
    trials = dict.fromkeys(pairs, 2 * draws * effort.canary_runs)
    found[ONE_RUN] = guessed(crowd, coins, mechanism.delta)
    trials[ONE_RUN] = effort.canaries
    seconds = time.perf_counter() - started
    return [_score(name, *found[name], trials[name], mechanism, seconds) for name in found]


def worst_case(mechanism: LearnsByCounter) -> Neighbours:
    """A few blank records, and one that is as heavy as the domain allows, alone in the last class.

    Where people are promised it is a person with many such records, as the mechanism weighs them: enough for all of a
    person's weight.
    """
    common = _records(lightest(mechanism.schema_, _BLANK), np.zeros(_BLANK, dtype=np.int64))
    alone = _heavy_person(mechanism, 1)
    if alone.weight is None:
        return Neighbours(common, alone)
    rows = min(max(_ROWS, round(1.0 / float(alone.weight[0]))), _MOST_ROWS)
    return Neighbours(common, _heavy_person(mechanism, rows))


def _heavy_person(mechanism: LearnsByCounter, rows: int) -> Records:
    """So many of the heaviest record, in the last class, all of one person."""
    schema = mechanism.schema_
    last = {name: np.full(rows, len(classes) - 1) for name, classes in schema.utility.items()}
    ids = np.full(rows, "canary")
    return mechanism.records(Dataset(heaviest(schema, rows), schema, last, ids=ids, named=mechanism.ledger_.people))


def natural(records: Records, seed: int) -> Neighbours:
    """Some of the owner's records, and the one among them that is farthest from all others, with all of its person."""
    from sklearn.neighbors import NearestNeighbors

    some = records.take(torch.as_tensor(np.random.default_rng(seed).permutation(len(records))[: _SAMPLE + 1]))
    flat = some.x.flatten(1).numpy()
    distance = NearestNeighbors(n_neighbors=min(2, len(some))).fit(flat).kneighbors(flat)[0][:, -1]
    odd = int(distance.argmax())
    theirs = torch.arange(len(some)) == odd if some.who is None else some.who == some.who[odd]
    return Neighbours(some.take(~theirs), some.take(theirs))


def between(records: Records, others: Records, seed: int) -> Neighbours:
    """What differs between the owner's records from two files, beside some of those that do not differ."""
    kept, instead = ({key: list(rows) for key, rows in _by_content(each).items()} for each in (records, others))
    same: list[int] = []
    for key, rows in kept.items():
        while rows and instead.get(key):
            same.append(rows.pop())
            instead[key].pop()
    more, less = ([row for rows in left.values() for row in rows] for left in (kept, instead))
    some = np.random.default_rng(seed).permutation(np.array(same, dtype=np.int64))[:_SAMPLE]
    common = records.take(torch.as_tensor(some))
    swapped = None if not less else others.take(torch.tensor(less))
    return Neighbours(common, records.take(torch.tensor(more, dtype=torch.int64)), swapped)


def _by_content(records: Records) -> dict[bytes, list[int]]:
    """The rows of each content: x, class and weight."""
    weight = torch.ones(len(records)) if records.weight is None else records.weight
    rest = torch.stack([records.y.double(), weight.double()], dim=1).numpy()
    found: dict[bytes, list[int]] = {}
    for place, (x, beside) in enumerate(zip(hash_rows(records.x.numpy()), rest, strict=True)):
        found.setdefault(x.tobytes() + beside.tobytes(), []).append(place)
    return found


def gathered(
    mechanism: LearnsByCounter, common: Records, count: int, seed: int, noise: Noise
) -> tuple[Crowd, IntArray]:
    """So many random records of the domain, each beside ``common`` with probability ½; and which of them are."""
    rng = np.random.default_rng(seed)
    classes = int(np.prod(mechanism.sizes_, dtype=np.int64))
    canaries = _records(uniform(mechanism.schema_, count, derive_seed(seed, "x")), rng.integers(0, classes, count))
    coins = rng.integers(0, 2, count)
    return Crowd(common, canaries, coins, noise), coins


def whole_runs(mechanism: LearnsByCounter, neighbours: Neighbours, records: int, runs: int, seed: int) -> Losses:
    """The loss of whole runs of ``learn``, so many in each world: the slow way, with no question fixed."""
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(2 * runs):
        inside, noise = number % 2 == 1, RepeatableNoise(derive_seed(seed, number))
        ledger = _afresh(mechanism.ledger_)
        twin = Twin(neighbours.common, neighbours.record, ledger, inside=inside, noise=noise)
        listen(_built(mechanism, records), twin)
        found[inside].append(twin.loss)
    return Losses(np.array(found[0]), np.array(found[1]))


def together(losses: Sequence[Losses]) -> Losses:
    """The transcripts of several runs."""
    return Losses(np.concatenate([each.without for each in losses]), np.concatenate([each.within for each in losses]))


def listen(method: Method, counter: Auditor) -> None:
    """Let the method learn until the auditor has heard the last answer."""
    with torch.random.fork_rng(devices=[]):
        try:
            method.learn(counter, no_progress)
        except Answered:
            return


def lower_bound(losses: Losses, delta: float) -> tuple[float, float]:
    """The lower bound of ε that the losses show with 95 % confidence, and the most that so many could have shown.

    A test says "the record is there" above a threshold of the loss. It is chosen on one half of the transcripts, where
    it gives the largest bound, and counted on the other half.
    """
    chosen = Losses(losses.without[::2], losses.within[::2])
    counted = Losses(losses.without[1::2], losses.within[1::2])
    size = len(counted.within)
    levels = np.geomspace(min(0.5, _FEWEST / max(1, len(chosen.within))), 0.5, 24)
    thresholds = np.concatenate([np.quantile(chosen.without, 1.0 - levels), np.quantile(chosen.within, levels)])
    best = max(thresholds, key=lambda threshold: _bound(chosen, float(threshold), delta, _SURE))
    return _bound(counted, float(best), delta), epsilon_lower_bound(size, size, 0, size, delta)


def guessed(crowd: Crowd, coins: IntArray, delta: float) -> tuple[float, float]:
    """The lower bound from a single run with many canaries, and the most that it could have shown.

    The sixth of them that looks most like being there is said to be, the sixth that looks least like it not to be;
    the others are passed over.
    """
    order = np.argsort(crowd.estimates())
    each = max(1, len(coins) // 6)
    right = int(coins[order[-each:]].sum() + (1 - coins[order[:each]]).sum())
    found = [one_run_bound(correct, 2 * each, len(coins), delta) for correct in (right, 2 * each)]
    return found[0], found[1]


def _bound(losses: Losses, threshold: float, delta: float, confidence: float = 0.95) -> float:
    hits, alarms = (int((values >= threshold).sum()) for values in (losses.within, losses.without))
    return epsilon_lower_bound(hits, len(losses.within), alarms, len(losses.without), delta, confidence)


def _score(name: str, value: float, most: float, n: int, mechanism: LearnsByCounter, seconds: float) -> Score:
    return claim_score(name, value, most, n, mechanism.guarantee().epsilon, seconds)


def claim_score(name: str, value: float, most: float, n: int, claimed: float | None, seconds: float) -> Score:
    """A lower bound of ε, in an interval that ends with the claim unless the bound refutes it."""
    high = claimed if claimed is not None and claimed >= value else most
    return Score(
        attack=name,
        threat=THREAT,
        metric=METRIC,
        better_for_owner="lower",
        value=value,
        ci=(value, max(value, high)),
        baseline=0.0,
        control=most,
        n=n,
        seconds=round(seconds, 3),
        primary=True,
        limits=(0.0, np.inf),
    )


def _built(mechanism: LearnsByCounter, people: int) -> Method:
    """The method again, with nothing learnt."""
    method = type(mechanism.method_)(mechanism.method_.task)
    method.plan(public_number(people))  # as fit does, before it learns
    return method


def _afresh(ledger: Ledger) -> Ledger:
    return Ledger(ledger.plan, ledger.epsilon, ledger.delta)


def _records(x: FloatArray, y: IntArray) -> Records:
    return Records(torch.as_tensor(np.array(x)), torch.as_tensor(np.array(y)))

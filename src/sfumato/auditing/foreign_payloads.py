"""The audit of payloads that somebody else made, one for each record: the attacks of our own audits, no mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Attack
from sfumato.auditing.controls import Controls, Values
from sfumato.auditing.effort import CPU, Effort
from sfumato.auditing.exposure import exposures
from sfumato.auditing.fairness import apart, unmeasured
from sfumato.auditing.foreign_pipeline import ForeignPipeline, Rerun
from sfumato.auditing.information_scores import information_scores
from sfumato.auditing.payload_picture import picture
from sfumato.auditing.plans.base import Plan, Scene, SecondRelease
from sfumato.auditing.plans.features import FeaturesPlan
from sfumato.auditing.result import Audit, Say
from sfumato.auditing.staging import one_of_each_class
from sfumato.auditing.task_learning import task_steps
from sfumato.auditing.trials import carry_out, trials
from sfumato.auditing.utility import FRESH, as_control, fresh_scores
from sfumato.core import compute
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.guarantee import empirical
from sfumato.core.knowledge import Knowledge
from sfumato.core.leakage import with_leakage
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release, raw_release
from sfumato.core.score import Score
from sfumato.core.traits import Traits

Rows = npt.NDArray[np.intp]
PROMISE = empirical("Somebody else made this release. Nothing is promised here; what is known of it was measured.")


@dataclass(frozen=True)
class HandedOver:
    """What somebody made of records.

    name     what reports call it
    data     the records, in their order
    payload  (N, …), the payload of each
    parts    rows of owner, attacker and victims by name
    leave    the utility labels that leave beside the payloads
    alike    whether payloads have the records' form and units
    rerun    sends all records through the pipeline once more; None if nobody can
    second   (N, …), another release of the same records
    public   (N, E), the records in an embedding that anybody can compute
    """

    name: str
    data: Dataset
    payload: FloatArray
    parts: Mapping[str, Rows]
    leave: tuple[str, ...] = ()
    alike: bool = False
    rerun: Rerun | None = None
    second: FloatArray | None = None
    public: FloatArray | None = None

    def of(self, part: str) -> Release:
        """The release of one part's records."""
        rows = self.parts[part]
        labels = {name: self.data.utility[name][rows] for name in self.leave}
        return Release(self.name, self.payload[rows], PROMISE, labels)


def audit_payloads(
    handed: HandedOver,
    *,
    attacks: Sequence[Attack] | None = None,
    effort: Effort = CPU,
    seed: int = 0,
    controls: Controls | None = None,
    say: Say = lambda _: None,
) -> Audit:
    """Attack payloads of a pipeline that nobody here has seen.

    The attacker has the pairs of his own records and, if the pipeline can be run, what it makes of any record. What
    needs more is listed as not run.
    """
    with compute.threads(handed.data.x[0].size):
        handed = replace(handed, parts=_mixed(handed.parts, seed))
        return _audit(handed, attacks, effort, seed, controls or Controls(), say)


def _audit(
    handed: HandedOver, attacks: Sequence[Attack] | None, effort: Effort, seed: int, controls: Controls, say: Say
) -> Audit:
    own, victims = handed.parts["attacker"], handed.parts["victim"]
    splits = Splits(**{name: handed.data.take(rows) for name, rows in handed.parts.items()})
    if handed.rerun is not None:
        say(f"{handed.name}: what the pipeline makes of the records")
    pipeline = ForeignPipeline(handed.data, handed.payload, own, handed.rerun, max(2, effort.repeats))
    second = None
    if handed.second is not None:
        other = ForeignPipeline(handed.data, handed.second, own, None, 0)
        second = SecondRelease(handed.second[victims], other.query)
    scene = Scene(
        name=handed.name,
        splits=splits,
        effort=effort,
        seed=seed,
        release=handed.of("victim"),
        knowledge=Knowledge(
            auxiliary=splits.attacker,
            query=pipeline.query,
            randomised=pipeline.randomised,
            seed=derive_seed(seed, "attacker"),
        ),
        shown=one_of_each_class(splits.victim),
        controls=controls,
        second=second,
        public=None if handed.public is None else (handed.public[own], handed.public[victims]),
    )
    payload, victim = scene.release.payload, splits.victim
    features = picture(payload, victim, effort.geometry, derive_seed(seed, "geometry"))
    utility, fairness = apart(_utility(handed, scene, say))
    plans: list[Plan] = [FeaturesPlan(scene)]
    found = carry_out(trials(plans, attacks), handed.name, say)
    scores = with_leakage(found.scores)
    shown = {"originals": victim.x[scene.shown], "release": payload[scene.shown]}
    return Audit(
        mechanism=handed.name,
        traits=Traits(
            needs_labels=False, randomised=pipeline.randomised, gives_records=handed.alike, variant=_access(pipeline)
        ),
        data=victim.name,
        guarantee=PROMISE,
        utility=utility,
        fairness=fairness,
        attacks=scores,
        skipped=(*_missing(handed), *found.skipped, *unmeasured(victim, (s.target for s in utility if s.target))),
        titles=found.titles,
        confusion=found.worst_confusion(victim),
        information=tuple(information_scores(payload, victim, seed)),
        wrong_key={},
        gallery={**shown, **found.kept},
        features=features,
        answers=found.answers,
        exposure=exposures(scores, found.attempts, seed),
    )


def _mixed(parts: Mapping[str, Rows], seed: int) -> dict[str, Rows]:
    """In random order: many attacks use the first so many records, which are all of one class if the file is sorted."""
    rng = np.random.default_rng(derive_seed(seed, "order"))
    return {name: rows[rng.permutation(len(rows))] for name, rows in parts.items()}


def _access(pipeline: ForeignPipeline) -> str:
    """What the attacker may ask, in the words of a report."""
    return {
        "pairs": "pairs alone",
        "anew": "pairs alone: two runs share nothing",
        "fixed": "pipeline run",
        "random": "pipeline run, other noise each time",
    }[pipeline.manner]


def _utility(handed: HandedOver, scene: Scene, say: Say) -> list[Score]:
    """A fresh classifier for every utility label, which learns from the owner's part of the release."""
    owner, effort, victim = scene.splits.owner, scene.effort, scene.splits.victim
    if victim.utility:
        say(f"{handed.name}: utility")
    raw, scores = (raw_release(owner), raw_release(victim)), list[Score]()
    for label in victim.utility:

        def fresh(a: Release, b: Release, control: Values, label: str = label) -> list[Score]:
            codes, steps = owner.utility[label], task_steps(len(a), effort.task_epochs, effort.task_steps)
            return fresh_scores(a, codes, b, victim, label, steps, scene.seed, control)

        control = scene.controls.get(f"{FRESH}:{label}", lambda: as_control(fresh(*raw, {})))
        scores += fresh(handed.of("owner"), scene.release, control)
    return scores


def _missing(handed: HandedOver) -> list[tuple[str, str]]:
    """What was not asked because the user did not give it."""
    found = []
    if not handed.data.utility:
        found.append(("utility", "no label that others may use was named (--utility)"))
    if not handed.data.private:
        found.append(("attribute inference", "no private label was named (--private)"))
    if not handed.data.named:
        found.append(("people with several records", "no column that says whose a record is was named (--id)"))
    return found

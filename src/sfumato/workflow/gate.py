"""A gate: a policy put to what an audit found. The unfavourable end of every interval counts."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sfumato.core.errors import DataError, UsageError
from sfumato.core.guarantee import Guarantee
from sfumato.core.policy import UTILITY_METRICS, Policy, Threshold, kinds_required
from sfumato.core.run_folder import USERS, RunFolder, read_json, write_json
from sfumato.core.score import Score
from sfumato.core.threats import title
from sfumato.core.usefulness import served
from sfumato.workflow.published_figures import floors, seen_by_others
from sfumato.workflow.spent_budget import SLACK, BudgetLedger

STORED, RELEASE = "gate.json", "release.json"
Outcome = Literal["passed", "failed", "not-shown"]


@dataclass(frozen=True)
class Check:
    """One limit of a policy beside what was measured.

    ``found`` is the unfavourable end of the interval, a share of 1 where ``share``. ``not-shown`` says that nothing was
    measured that could show it, which fails the gate as well; ``because`` says why, or what the figure is.
    """

    asked: str
    outcome: Outcome
    because: str
    found: float | None = None
    limit: float | None = None
    share: bool = False

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "passed": self.passed}


@dataclass(frozen=True)
class Gate:
    """What became of one audited folder; it passed if every check did."""

    run: Path
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        return {"run": str(self.run), "passed": self.passed, "checks": [check.to_json() for check in self.checks]}


@dataclass(frozen=True)
class GatedFolders:
    """The gates of everything that a path holds.

    Of points to choose from (a sweep, releases side by side) one that passes is enough; of users all must pass.
    """

    gates: tuple[Gate, ...]
    all_must: bool = False

    @property
    def passed(self) -> bool:
        return (all if self.all_must else any)(gate.passed for gate in self.gates)

    @property
    def deciding(self) -> tuple[Gate, ...]:
        """Those that the verdict is about: the ones that passed, where that is enough."""
        chosen = tuple(gate for gate in self.gates if gate.passed)
        return self.gates if self.all_must or not chosen else chosen


def gate_all(path: Path, policy: Policy, *, ledger: Path | None = None) -> GatedFolders:
    """Put the policy to a run, a release, every point of a sweep, or every user's run."""
    gates = tuple(gate_folder(folder, policy, ledger=ledger) for folder in audited_folders(path))
    return GatedFolders(gates, all_must=(path / USERS).is_file())


def audited_folders(path: Path) -> list[Path]:
    """The run folder itself, or the points of a sweep, study or demo."""
    if (path / "scores.json").is_file() or (path / RELEASE).is_file():
        return [path]
    if (path / "front.json").is_file():
        points = [path / name for name in read_json(path / "front.json")["points"]]
        missing = next((point for point in points if not (point / "scores.json").is_file()), None)
        if missing is not None:
            users = (path / USERS).is_file()
            again = f"run 'sfumato audit {path}'" if users else "run the same sweep again, it goes on"
            raise DataError(f"{missing} has not been audited yet: {again}.")
        if not points:
            raise DataError(f"{path} holds no point: run the same command again, it goes on.")
        return points
    if (path / "config.toml").is_file():
        raise DataError(f"{path} has not been audited: run 'sfumato audit {path}' first.")
    raise DataError(f"{path} holds no audit (no scores.json): name a run folder, a sweep or the audit of a release.")


def gate_folder(path: Path, policy: Policy, *, today: datetime.date | None = None, ledger: Path | None = None) -> Gate:
    """Put the policy to the audit in one folder, or to the figures that a release carries.

    What was spent on the same records is in the ``ledger`` of the data, by default beside them.
    """
    if policy.empty:
        raise UsageError("the policy asks for nothing: give --max, --min, --require or --policy.")
    if (path / "scores.json").is_file():
        spent = _spent(path, ledger) if policy.epsilon_total is not None else None
        return Gate(path, tuple(checks_of(read_json(path / "scores.json"), policy, today=today, spent=spent)))
    return Gate(path, tuple(checks_of_release(read_json(path / RELEASE), policy, path, today=today)))


def checks_of_release(
    record: Mapping[str, Any], policy: Policy, path: Path, *, today: datetime.date | None = None
) -> Iterator[Check]:
    """The policy put to the figures in a ``release.json``."""
    if record.get("audit") is None:
        raise DataError(f"{path} carries no figures of an audit: put the policy to the run that it is from.")
    scores = {**record["audit"], "guarantee": record["guarantee"]}
    asked = policy.with_labels() if record["labels"] and not record["traits"]["synthetic"] else policy
    spent = (record.get("spent") or {}).get("epsilon")
    return checks_of(scores, asked, today=today, spent=spent)


def keep(found: Gate, policy: Policy) -> None:
    """Write the verdict into the audited folder, beside a digest of the scores that it is about; a release stays as it
    is."""
    if not (found.run / "scores.json").is_file():
        return
    scores = hashlib.sha256((found.run / "scores.json").read_bytes()).hexdigest()
    stored = {"passed": found.passed, "scores": scores, "digest": policy.digest, "policy": policy.to_json()}
    write_json(found.run / STORED, {**stored, "checks": [check.to_json() for check in found.checks]})


def _spent(run: Path, file: Path | None) -> float | None:
    """ε of all private fits and releases of the data of a run; None where nobody keeps a ledger of them."""
    if file is None and not (run / "config.toml").is_file():
        return None
    source = "the data" if file is not None else RunFolder(run).config()["data"].get("source", "")
    account = BudgetLedger.of(source, file)
    return None if account is None else account.account().epsilon


def checks_of(
    scores: Mapping[str, Any], policy: Policy, *, today: datetime.date | None = None, spent: float | None = None
) -> Iterator[Check]:
    """Every limit of a policy, and that the release is of use, held against scores; ``spent`` is the ε of everything
    that was done with the same records. Figures count as others may see them (``workflow.published_figures``)."""
    today = today or datetime.date.today()
    promise = Guarantee.from_json(scores["guarantee"])
    scores = seen_by_others(scores, promise)
    if policy.review is not None:
        late = today > policy.review
        said = f"the policy was to be reviewed by {policy.review}" if late else f"valid until {policy.review}"
        yield Check(f"review by {policy.review}", "failed" if late else "passed", said)
    for threshold in policy.thresholds:
        if threshold.what in UTILITY_METRICS:
            yield from _utility(scores, threshold)
        elif threshold.limit == "max-group":
            yield from _groups(scores, threshold)
        elif threshold.limit == "max-share":
            yield from _shares(scores, threshold)
        else:
            yield from _threats(scores, threshold)
    yield from _guarantee(promise, policy)
    if policy.epsilon_total is not None:
        yield _total(policy.epsilon_total, spent)
    yield from _useful(scores)


def _total(most: float, spent: float | None) -> Check:
    asked = f"epsilon-total ≤ {most:g}"
    if spent is None:
        return Check(asked, "not-shown", "no ledger of these records is kept: name one with --ledger", limit=most)
    said = f"all private fits and releases of these records together: ε = {spent:.4g}"
    return Check(asked, "passed" if spent <= most * (1.0 + SLACK) else "failed", said, spent, most)


def _useful(scores: Mapping[str, Any]) -> Iterator[Check]:
    """That some reader does better than guessing, for each label that the release is to serve, whatever the policy."""
    synthetic = bool(scores.get("traits", {}).get("synthetic"))
    for one in served(map(Score.from_json, scores["utility"]), students=synthetic):
        yield Check(f"useful for {one.label}", "passed" if one.useful else "failed", str(one))


def _utility(scores: Mapping[str, Any], asked: Threshold) -> Iterator[Check]:
    """Each label by the reader that serves it best: a recipient would take that one."""
    found = [s for s in scores["utility"] if s["metric"] == asked.what and asked.label in (None, s["target"])]
    if not found:
        labels = sorted({str(s["target"]) for s in scores["utility"]})
        served = f"it served {', '.join(labels)}" if labels else "it served no label"
        yield _missing(asked, f"the audit has no such figure: {served}")
    for label in dict.fromkeys(s["target"] for s in found):
        read = [s for s in found if s["target"] == label]
        if asked.limit == "max":  # an error
            best = min(read, key=lambda s: float(s["ci"][1]))
            yield _compared(asked, best["ci"][1], best["ci"][1] <= asked.value, _figure(best), label)
        else:
            best = max(read, key=lambda s: float(s["ci"][0]))
            yield _compared(asked, best["ci"][0], best["ci"][0] >= asked.value, _figure(best), label)


def _threats(scores: Mapping[str, Any], asked: Threshold) -> Iterator[Check]:
    """The worst attack of the threat, for each label that it is about."""
    keys = _keys(scores["worst"], asked)
    if not keys:
        yield _missing(asked, _why_not(scores, asked.what))
    for key in keys:
        score = scores["worst"][key]
        label = score["target"]
        if asked.share:
            if score["leakage_ci"] is None:
                weak = "no attack wins where nothing is defended, so that leakage cannot be stated"
                yield _missing(asked, f"{weak}; limit {score['metric']} instead", label)
                continue
            found = score["leakage_ci"][1]
            said = f"{_figure(score)}{_floor(scores, asked, label)}"
            yield _compared(asked, found, found <= asked.value, said, label)
        elif score["better_for_owner"] == "higher":
            yield _compared(asked, score["ci"][0], score["ci"][0] >= asked.value, _figure(score), label)
        else:
            yield _compared(asked, score["ci"][1], score["ci"][1] <= asked.value, _figure(score), label)


def _floor(scores: Mapping[str, Any], asked: Threshold, label: str | None) -> str:
    """That no release can keep a limit on leakage, where the utility label tells as much; "" if it does not."""
    told = [
        s
        for s in scores.get("floors", floors(scores.get("attacks", ())))
        if (s["threat"], s["target"]) == (asked.what, label) and s["leakage_ci"] is not None
    ]
    surest = max(told, key=lambda s: float(s["leakage_ci"][0]), default=None)
    if surest is None or surest["leakage_ci"][0] <= asked.value:
        return ""
    return (
        f"; OUT OF REACH: {surest['follows']} tells {_percent(surest['leakage_ci'][0])} or more of it by itself, so "
        f"that no release that serves {surest['follows']} as well keeps this limit"
    )


def _shares(scores: Mapping[str, Any], asked: Threshold) -> Iterator[Check]:
    """The share of people of whom most is leaked."""
    exposure = scores.get("exposure", {})
    keys = _keys(exposure, asked)
    if not keys:
        yield _missing(asked, "the audit has no figure for each person by this threat")
    for key in keys:
        above = exposure[key]["share_above"]
        said = f"{_percent(above['share'])} of people leak more than {_percent(above['threshold'])}"
        label = key.partition(":")[2] or None
        yield _compared(asked, above["ci"][1], above["ci"][1] <= asked.value, said, label)


def _groups(scores: Mapping[str, Any], asked: Threshold) -> Iterator[Check]:
    """The group of people that is worst off."""
    exposure = scores.get("exposure", {})
    keys = _keys(exposure, asked)
    if not keys:
        yield _missing(asked, "the audit compared no groups of people by this threat")
    for key in keys:
        groups = [one for one in exposure[key]["groups"] if one["leakage_ci"] is not None]
        label = key.partition(":")[2] or None
        if not groups:
            yield _missing(asked, "no group is large enough to say", label)
            continue
        worst = max(groups, key=lambda one: float(one["leakage_ci"][1]))
        found = worst["leakage_ci"][1]
        people = f", {worst['people']} people" if "people" in worst else ""
        said = f"{worst['column']} = {worst['value']}{people}, leakage {_percent(worst['leakage'])}"
        yield _compared(asked, found, found <= asked.value, said, label)


def _guarantee(promise: Guarantee, policy: Policy) -> Iterator[Check]:
    if policy.require is None:
        return
    kinds = kinds_required(policy.require)
    has = promise.kind in kinds and not promise.in_clear
    clear = f", and {', '.join(promise.in_clear)} leaves in clear beside it" if promise.in_clear else ""
    yield Check(f"require {policy.require}", "passed" if has else "failed", f"the guarantee is {promise.kind}{clear}")
    for name in ("epsilon", "delta"):
        most, spent = getattr(policy, name), getattr(promise, name)
        if most is None:
            continue
        asked = f"{name} ≤ {most:g}"
        if not has or spent is None:
            yield Check(asked, "not-shown", f"the guarantee has no {name}", limit=most)
        else:
            yield Check(asked, "passed" if spent <= most else "failed", f"{name} = {spent:g}", spent, most)
    if policy.unit is not None:
        covered = has and (promise.covers.unit == "person" or policy.unit == "record")
        said = f"it covers one {promise.covers.unit} at a time" if has else "nothing is covered"
        yield Check(f"unit {policy.unit}", "passed" if covered else "failed", said)


def _keys(found: Iterable[str], asked: Threshold) -> list[str]:
    """ "attribute:sex" for "attribute" and for "attribute:sex"."""
    parts = [(key, *key.partition(":")[::2]) for key in found]
    return [key for key, name, label in parts if name == asked.what and asked.label in (None, label)]


def _why_not(scores: Mapping[str, Any], what: str) -> str:
    reasons = [f"{one['attack']}: {one['reason']}" for one in scores["skipped"]]
    near = [said for said in reasons if what.partition("-")[0] in said]
    return f"no attack of the kind “{title(what)}” was run{f' ({near[0]})' if near else ''}"


def _missing(asked: Threshold, because: str, label: str | None = None) -> Check:
    return Check(_asked(asked, label), "not-shown", because, limit=asked.value, share=asked.share)


def _compared(asked: Threshold, found: float, good: bool, because: str, label: str | None) -> Check:
    outcome: Outcome = "passed" if good else "failed"
    return Check(_asked(asked, label), outcome, because, float(found), asked.value, asked.share)


def _asked(asked: Threshold, label: str | None) -> str:
    name = asked.what if label is None else f"{asked.what}:{label}"
    value = f"{100 * asked.value:g}%" if asked.share else f"{asked.value:g}"
    return f"{asked.limit} {name} = {value}"


def _figure(score: Mapping[str, Any]) -> str:
    """ "probe-residual: advantage 0.35 [0.28, 0.40], leakage 100% [90%, 100%]"."""
    low, high = score["ci"]
    text = f"{score['attack']}: {score['metric']} {score['value']:.4g} [{low:.4g}, {high:.4g}]"
    if score["leakage_ci"] is None:
        return text
    return f"{text}, leakage {_percent(score['leakage'])} [{', '.join(_percent(end) for end in score['leakage_ci'])}]"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}%"

"""The release card: one page for whoever decides about a release, files it, or receives it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from sfumato.core.guarantee import Guarantee
from sfumato.core.score import Score
from sfumato.core.threats import CLAIM, MEMBERSHIP, RECONSTRUCTION, rank, threat, title
from sfumato.core.traits import Traits
from sfumato.core.usefulness import served
from sfumato.report.guarantees import covers_line, epsilon_line, kind_line
from sfumato.report.markdown import code, escaped, scalar, table_row
from sfumato.report.wording import leak, listed, measured, metric_name, named, number, reference

if TYPE_CHECKING:
    from jinja2 import Template

SINGLING_OUT, LINKABILITY, INFERENCE, ATTRIBUTE = "singling-out", "linkability", "inference", "attribute"
ALWAYS = (SINGLING_OUT, LINKABILITY, INFERENCE, MEMBERSHIP, RECONSTRUCTION, ATTRIBUTE)
"""The threats that every card has a line on, tested or not."""
_OF_ROWS = (SINGLING_OUT, LINKABILITY, INFERENCE)
_OUTSIDE = (
    "The figures below were measured on real records, without noise: the promise is for what leaves, not for them. "
    "They are therefore cut to two digits, intervals outwards, and no number of people is told."
)
TRIGGERS = (
    "the day above has passed, or the policy was changed",
    "the data, the settings or the weights are others",
    "the recipient, the purpose or what else the recipient holds about the same people has changed",
    "the same people are released again, or sent to somebody who may compare both",
    "a newer sfumato has an attack, or a version of one, that this card does not list",
)


def release_card(record: Mapping[str, Any]) -> str:
    """The card in Markdown, from the values of a ``release.json`` alone."""
    return _template().render(_view(record)).rstrip("\n") + "\n"


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("sfumato.report")
    here = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    here.filters.update(md=escaped, code=code, yaml=scalar, row=table_row)
    return here.get_template("release_card.md.j2")


def _view(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the template shows, already in words."""
    promise, traits = Guarantee.from_json(record["guarantee"]), Traits.from_json(record["traits"])
    audit = record["audit"]
    return {
        "r": record,
        "about": record["about"],
        "made_of": f" from {record['data']}" if record["data"] else "",
        "leaves": _leaves(record, traits),
        "title": f"{record['mechanism']} release{' of ' + record['data'] if record['data'] else ''}",
        "size": _size_category(int(record["rows"])),
        "promise": promise,
        "kind": kind_line(promise),
        "epsilon": epsilon_line(promise),
        "covers": covers_line(promise),
        "outside": _OUTSIDE if audit and promise.kind == "dp" else "",
        "conditions": [str(condition) for condition in promise.conditions],
        "use": [] if audit is None else _use(audit, traits),
        "gate": record["gate"],
        "checks": [] if record["gate"] is None else [_check(one) for one in record["gate"]["checks"]],
        "audit": audit,
        "effort": "" if audit is None else _effort(audit),
        "attacker": _attacker(traits),
        "threats": [] if audit is None else _threat_rows(audit, traits, promise),
        "floors": [] if audit is None else _floors(audit),
        "groups": [] if audit is None else _groups(audit),
        "bounds": None if record["bounds"] is None else _bounds(record, promise),
        "untested": [] if audit is None else _untested(audit),
        "limits": _limits(record, promise, traits),
        "triggers": TRIGGERS,
        "several": len(record["payload"]["files"]) > 1 or "*" in record["payload"]["files"][0],
    }


def _leaves(record: Mapping[str, Any], traits: Traits) -> str:
    size = f"{len(record['columns'])} columns" if traits.gives_records and record["columns"] else ""
    size = size or f"{'×'.join(map(str, record['payload_shape']))} numbers each"
    what = "synthetic records" if traits.synthetic else "records" if traits.gives_records else "features"
    names = [f"‘{label}’" for label in record["labels"]]
    beside = f"labels beside them: {listed(names)}" if names else "no labels beside them"
    return f"{record['rows']:,} {what} ({size}); {beside}"


def _size_category(rows: int) -> str:
    for most, name in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")):
        if rows < most:
            return name
    return "1M<n<10M" if rows < 10_000_000 else "n>10M"


def _use(audit: Mapping[str, Any], traits: Traits) -> list[list[str]]:
    found = served([Score.from_json(one) for one in audit["utility"]], students=traits.synthetic)
    return [
        [
            one.label,
            one.best.attack,
            metric_name(one.best.metric),
            measured(one.best),
            reference(one.best.baseline, one.best.metric),
            "useful" if one.useful else "USELESS: no better than guessing",
        ]
        for one in found
    ]


def _check(one: Mapping[str, Any]) -> list[str]:
    counts = "–" if one["found"] is None else f"{100 * one['found']:.0f} %" if one["share"] else f"{one['found']:.4g}"
    return [one["asked"], one["outcome"].replace("-", " "), counts, one["because"]]


def _effort(audit: Mapping[str, Any]) -> str:
    effort = audit["effort"]
    versions = ", ".join(
        dict.fromkeys(f"{one['attack']} (v{one['version']})" for one in sorted(audit["attacks"], key=_by_attack))
    )
    steps = f"Networks of the attackers trained for at least {effort['attack_steps']:,} steps. "
    return f"{steps}Attacks by sfumato {audit['audited']['sfumato']}: {versions}."


def _by_attack(one: Mapping[str, Any]) -> str:
    return str(one["attack"])


def _attacker(traits: Traits) -> str:
    """The threat model in two sentences."""
    if traits.synthetic:
        return (
            "The attacker holds the whole release and records of people of whom half were used to make it, and asks "
            "which; and knows the method with all its settings."
        )
    keyed = ", but not the keys of the device" if traits.hides_result or traits.rows_per_message > 1 else ""
    return (
        "The attacker holds the release and labelled records of other people, knows the fitted weights, and may send "
        f"records of their own through the same pipeline as often as they like{keyed}. A fresh attacker is trained "
        "after everything is fixed; the worst one counts."
    )


def _threat_rows(audit: Mapping[str, Any], traits: Traits, promise: Guarantee) -> list[list[str]]:
    """A line for each threat that was attacked, and for those that a reader looks for in vain."""
    rows = {key: _threat_row(key, Score.from_json(score), audit, promise) for key, score in audit["worst"].items()}
    tested = {key.partition(":")[0] for key in rows}
    for name in ALWAYS:
        if name not in tested:
            rows[name] = [title(name), *("–",) * 5, f"NOT TESTED: {_why_untested(name, audit, traits)}"]
    return [rows[key] for key in sorted(rows, key=rank)]


def _threat_row(key: str, score: Score, audit: Mapping[str, Any], promise: Guarantee) -> list[str]:
    figure = f"{metric_name(score.metric, score.threat)} {measured(score)}"
    references = [reference(value, score.metric) for value in (score.baseline, score.control)]
    leaked = leak(score) or "–"
    return [
        _title(key, audit),
        f"{score.attack} (v{score.attack_version})",
        figure,
        *references,
        leaked,
        _claim(score, promise.epsilon) if key == CLAIM else _reading(score),
    ]


def _title(key: str, audit: Mapping[str, Any]) -> str:
    """Threats of plugins are known by what is stored with the figures alone."""
    name, _, target = key.partition(":")
    stored = audit["threats"].get(name)
    known = stored["title"] if stored is not None else threat(name).title
    return f"{known} ({target})" if target else known


def _claim(score: Score, epsilon: float | None) -> str:
    """What canaries say about the ε that is promised."""
    if epsilon is None:
        return "nothing is promised"
    return f"REFUTES ε = {epsilon:.4g}" if score.value > epsilon else f"does not contradict ε = {epsilon:.4g}"


def _reading(score: Score) -> str:
    """Whether the release gives this away at all, at the unfavourable end."""
    if score.baseline is None:
        return "measured"
    worst, best = score.ci if score.better_for_owner == "higher" else score.ci[::-1]
    beats = best < score.baseline if score.better_for_owner == "higher" else best > score.baseline
    if beats:
        return "LEAKS"
    could = worst < score.baseline if score.better_for_owner == "higher" else worst > score.baseline
    return "no better than guessing" if could else "below guessing"


def _why_untested(name: str, audit: Mapping[str, Any], traits: Traits) -> str:
    if name in _OF_ROWS and not traits.synthetic:
        return "a question about rows of nobody in particular; here every row belongs to a record"
    reasons = [
        one["reason"] for one in audit["skipped"] if name.partition("-")[0] in f"{one['attack']} {one['reason']}"
    ]
    return reasons[0] if reasons else "the audit has no such attack on this kind of release"


def _floors(audit: Mapping[str, Any]) -> list[str]:
    """By the metric that people read, of those that are stored."""
    return [_floor(score) for score in map(Score.from_json, audit["floors"]) if score.metric in ("accuracy", "r2")]


def _floor(score: Score) -> str:
    return (
        f"Whoever reads {score.follows} and follows its correlation guesses {score.target} with {named(score)} "
        f"(guessing: {reference(score.baseline, score.metric)}). No release that serves {score.follows} as well can be "
        "below."
    )


def _groups(audit: Mapping[str, Any]) -> list[list[str]]:
    """Of each threat the group of people that is worst off."""
    rows = []
    for key in sorted(audit["exposure"], key=rank):
        groups = [one for one in audit["exposure"][key]["groups"] if one["leakage_ci"] is not None]
        if groups:
            worst = max(groups, key=lambda one: float(one["leakage_ci"][1]))
            low, high = worst["leakage_ci"]
            share = f"{100 * worst['leakage']:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"
            rows.append([_title(key, audit), f"{worst['column']} = {worst['value']}", share])
    return rows


def _bounds(record: Mapping[str, Any], promise: Guarantee) -> dict[str, Any]:
    """The promise in an attacker's terms, each beside what the audit measured."""
    bounds, audit = record["bounds"], record["audit"] or {}
    found = [Score.from_json(one) for one in audit.get("membership", ())]
    worst = audit.get("worst", {}).get(MEMBERSHIP)
    found += [] if worst is None else [Score.from_json(worst)]

    def got(metric: str, missing: str = "not measured") -> str:
        scores = [score for score in found if score.metric == metric]
        return measured(max(scores, key=lambda score: score.ci[1])) if scores else missing

    rows = [
        [
            f"right at {100 * float(rate):g} % false alarms",
            f"{100 * tpr:.3g} %",
            got(f"tpr-at-{100 * float(rate):g}-fpr", "not measured: that takes more people"),
        ]
        for rate, tpr in bounds["tpr"].items()
    ]
    advantage = ["advantage over guessing", f"{bounds['advantage']:.3g}", got("advantage")]
    claim = audit.get("worst", {}).get(CLAIM)
    claim = "not measured" if claim is None else f"ε ≥ {number(claim['value'], claim['metric'])}"
    mu = "–" if bounds["mu"] is None else f"{bounds['mu']:.4g}"
    one_line = f"ε = {promise.epsilon:.4g}, δ = {promise.delta:.3g}, μ = {mu}"
    return {
        "line": one_line,
        "by": bounds["by"],
        "rows": [["ε of the whole release", f"{promise.epsilon:.4g}", claim], advantage, *rows],
    }


def _untested(audit: Mapping[str, Any]) -> list[str]:
    """Attacks that were left out, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for one in audit["skipped"]:
        by_reason.setdefault(one["reason"], []).append(one["attack"])
    return [f"{listed(attacks)}: {reason}" for reason, attacks in by_reason.items()]


def _limits(record: Mapping[str, Any], promise: Guarantee, traits: Traits) -> list[str]:
    said: list[str] = []
    if record["audit"] is not None:
        said.append(
            "The figures are measurements by the attacks listed, on people who were set aside; another may do better."
        )
        if record["audit"]["effort"].get("attack_steps", 0) < 200:
            said.append("The audit took little effort: low figures of attackers who hardly tried are no evidence.")
    if not promise.proven:
        said.append("Nothing is proven about this release.")
    if not traits.synthetic:
        said.append("One release of each record was attacked: several of the same person may tell more.")
    if traits.synthetic:
        said.append("Synthetic records are no real people: conclusions about single cases are void.")
    said.append("Nothing here says that the release is fit for another purpose, recipient or population.")
    return said

"""``card.md`` of a bundle: what it promises, what attackers got and what it costs, and nothing that counts records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.core.guarantee import Guarantee
from sfumato.core.run_folder import read_json
from sfumato.core.threats import title
from sfumato.deploy.program_checks import ProgramFigures
from sfumato.deploy.quantising import QuantisedFigures
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.halves import Halves
from sfumato.report.guarantees import covers_line, epsilon_line, kind_line, outside_line
from sfumato.report.markdown import code, escaped, table_row

_WHERE = {
    "device": "the owner's device",
    "cloud": "the receiver",
    "finish": "the owner's device",
    "sampler": "anywhere",
    "attacker": "demonstrations",
}


def bundle_card(
    name: str,
    mechanism: Mechanism,
    halves: Halves,
    figures: Sequence[ProgramFigures],
    scores: Mapping[str, Any] | None,
    cost: QuantisedFigures | None = None,
) -> str:
    """Markdown; text that comes from files is escaped."""
    promise = mechanism.guarantee()
    return "\n".join(
        [
            f"# {escaped(name)}",
            "",
            *(f"**{escaped(text)}**\n" for text in promise.warnings),
            _what(mechanism, halves),
            "",
            *_guarantee(promise),
            *_audit(promise, scores),
            *_programs(figures),
            *([] if cost is None else _cost(cost, promise)),
            "How the files are used: `manifest.json` says it for programs, and docs/bundle.md of sfumato for people.",
            "",
        ]
    )


def _what(mechanism: Mechanism, halves: Halves) -> str:
    kind = mechanism.schema_.kind
    first = f"Mechanism `{code(mechanism.name)}` for {kind} records of shape {mechanism.schema_.shape}."
    if halves.device is None:
        return f"{first} It draws synthetic records."
    leaves = f" What leaves the device is a tensor of shape {halves.device.output.row} for each record."
    if mechanism.traits.reads_private:
        named = escaped(", ".join(mechanism.schema_.private))
        leaves += f" The device needs each record's {named}, which does not leave."
    if halves.finish is not None:
        return f"{first}{leaves} The answer about {escaped(', '.join(halves.labels))} comes back encrypted."
    if halves.cloud is None:
        return f"{first}{leaves} There is no cloud half: whoever receives the payload trains a model of their own."
    return f"{first}{leaves} The receiver reads {escaped(', '.join(halves.labels))} from it."


def _guarantee(promise: Guarantee) -> list[str]:
    conditions = [f"- {escaped(str(condition))}" for condition in promise.conditions]
    return [
        "## Guarantee",
        "",
        f"**{escaped(kind_line(promise))}.** {escaped(promise.statement)}",
        "",
        escaped(epsilon_line(promise)),
        "",
        escaped(covers_line(promise)),
        *([""] if conditions else []),
        *conditions,
        "",
    ]


def _audit(promise: Guarantee, scores: Mapping[str, Any] | None) -> list[str]:
    if scores is None:
        return ["## Audit", "", "**Not audited.** What an attacker reads from the payload was not measured.", ""]
    if promise.kind == "dp":
        return ["## Audit", "", outside_line(promise), ""]
    rows = [
        table_row([title(threat), one["attack"], one["metric"], *_values(one)])
        for threat, one in sorted(scores["worst"].items())
    ]
    return [
        "## Audit",
        "",
        "The best of the attacks on each threat, beside a guesser who sees nothing. Leakage is how far it has gone "
        "from the guesser (0 %) to the best attack on an undefended release (100 %). Another attack may do better.",
        "",
        "| what | by | metric | value | guesser | leakage |",
        "|---|---|---|---:|---:|---:|",
        *rows,
        "",
    ]


def _values(score: Mapping[str, Any]) -> list[str]:
    leakage = score.get("leakage")
    baseline = score.get("baseline")
    return [
        f"{score['value']:.3g}",
        "–" if baseline is None else f"{baseline:.3g}",
        "–" if leakage is None else f"{100 * leakage:.0f} %",
    ]


def _programs(figures: Sequence[ProgramFigures]) -> list[str]:
    rows = [
        table_row(
            [
                f"{one.name}.onnx",
                _WHERE[one.name],
                f"{one.bytes / 1024:.0f} kB",
                f"{one.error:.1g}",
                f"{one.one:.2f} ms",
                f"{one.many:.2f} ms",
            ]
        )
        for one in figures
    ]
    return [
        "## Programs",
        "",
        "Error is the largest difference from the network that was fitted. Times are of one thread of the machine that "
        f"exported, for one record and for {figures[0].batch}.",
        "",
        "| file | runs on | size | error | one record | batch |",
        "|---|---|---:|---:|---:|---:|",
        *rows,
        "",
    ]


def _cost(cost: QuantisedFigures, promise: Guarantee) -> list[str]:
    """What 8 bits are bought with."""
    lines = [
        "## Device half in 8 bits",
        "",
        f"{cost.before / 1024:.0f} kB became {cost.after / 1024:.0f} kB; payloads are off by {100 * cost.off:.2g} % of "
        "their deviation. The errors above are of the program before that.",
        "",
    ]
    if promise.kind == "dp":
        return lines
    rows = [table_row([title(threat), *map(_percent, two)]) for threat, two in cost.leakage.items()]
    if cost.accuracy is not None:
        metric, single, small = cost.accuracy
        rows.insert(0, table_row([f"Utility ({metric})", f"{single:.3g}", f"{small:.3g}"]))
    head = [
        "Measured on the programs themselves, by the same attacks.",
        "",
        "| | 32 bits | 8 bits |",
        "|---|---:|---:|",
    ]
    return [*lines, *head, *rows, ""]


def _percent(leakage: float | None) -> str:
    return "–" if leakage is None else f"leakage {100 * leakage:.0f} %"


def scores_of(run: Path) -> Mapping[str, Any] | None:
    """What the audit of a run found, if there was one."""
    file = run / "scores.json"
    found: Mapping[str, Any] | None = read_json(file) if file.is_file() else None
    return found

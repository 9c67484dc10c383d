"""The release card: what a run folder holds, in Markdown."""

from __future__ import annotations

import re

from sfumato.report.page import again
from sfumato.report.runs import Run
from sfumato.report.verdict import threat_sentences, trust_warnings
from sfumato.report.words import (
    KINDS,
    count,
    direction,
    epsilon_line,
    interval,
    measured,
    metric_name,
    number,
    reference,
    threat_name,
)


def card(run: Run) -> str:
    """The card of one audited run; text from files is escaped for Markdown and for HTML in it."""
    use = run.use
    audited = f", audited on {count(use.n, 'record')}" if use else ""
    lines = [
        f"# {_md(run.mechanism)} on {_md(run.data)}",
        "",
        f"A release of {_md(run.data)} by the mechanism `{_code(run.mechanism)}`{audited}. Others may use it for "
        f"{_md(', '.join(run.labels)) or 'no stated label'}.",
        "",
        "## Guarantee",
        "",
        f"**{KINDS[run.guarantee.kind]}.** {_md(run.guarantee.statement)}",
        "",
        _md(epsilon_line(run.guarantee)),
        *([""] if run.guarantee.conditions else []),
        *(f"- {_md(condition)}" for condition in run.guarantee.conditions),
        "",
        "## Scores",
        "",
        "The best of the attacks on each threat, beside a guesser who sees nothing (baseline) and the same attack "
        "with no defence (control).",
        "",
        "| what | by | metric | value | 95 % interval | baseline | control | n |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    served = [("Utility", use), *((f"Utility ({label})", run.reads(label)) for label in run.labels[1:])]
    for name, score in [*served, *((threat_name(k), s) for k, s in sorted(run.worst.items()))]:
        if score is not None:
            useful = score.threat == "utility"
            metric = score.metric if useful else f"{metric_name(score.metric)} ({direction(score)})"
            figures = [number(score.value, score.metric)]
            figures += [reference(v, score.metric) for v in (score.baseline, score.control)]
            cells = [name, score.attack, metric, figures[0], interval(score), figures[1], figures[2], f"{score.n:,}"]
            lines.append(f"| {' | '.join(_md(cell) for cell in cells)} |")
    lines.append("")
    for key in sorted(run.worst):
        lines += [_md(" ".join(threat_sentences(run, key))), ""]
    lines += _information(run)
    lines += [f"**Warning.** {_md(text)}\n" for text in trust_warnings([run])]
    lines += [
        "These are measurements by the attacks listed. Another attack may do better.",
        "",
        "## Run again",
        "",
        *(f"    {line}" for line in again(run).splitlines()),
        "",
        f"Seed {_md(run.seed)}; the configuration is in `config.toml`, the versions in `env.json`.",
        "",
    ]
    return "\n".join(lines)


def _information(run: Run) -> list[str]:
    """One line a label; an estimate is no attack, so it stands apart from the scores."""
    if not run.information:
        return []
    lines = ["Mutual information with the release, an estimate that takes no attacker and bounds none:", ""]
    for score in run.information:
        role = "private" if score.better_for_owner == "lower" else "utility"
        chance = f"; shuffled labels {number(score.baseline, score.metric)}" if score.baseline is not None else ""
        lines.append(_md(f"- {score.target} ({role}): {measured(score)} {metric_name(score.metric)}{chance}"))
    return [*lines, ""]


def _md(text: str) -> str:
    """Text without line breaks and without Markdown or HTML meaning."""
    flat = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#!])", r"\\\1", flat)


def _code(text: str) -> str:
    return " ".join(text.split()).replace("`", "'").replace("<", "‹").replace(">", "›")

"""The release card: what a run folder holds, in Markdown."""

from __future__ import annotations

from sfumato.core.score import Score
from sfumato.core.threats import FIDELITY, INFORMATION, UTILITY, title
from sfumato.report.audited_runs import Run, in_order
from sfumato.report.fairness_table import fairness_sentence
from sfumato.report.foreign_rows import left_out
from sfumato.report.guarantees import covers_line, epsilon_line, kind_line, outside_line
from sfumato.report.markdown import code, escaped, table_row
from sfumato.report.verdict import floor_sentences, repeated_sentences, threat_paragraphs, trust_warnings
from sfumato.report.wording import count, direction, interval, leak, measured, metric_name, named, number, reference


def card(run: Run) -> str:
    """The card of one audited run; text from files is escaped for Markdown and for HTML in it."""
    use = run.use
    audited = f", audited on {count(use.n, 'record')}" if use else ""
    lines = [
        f"# {escaped(run.mechanism)} on {escaped(run.data)}",
        "",
        *(f"**{escaped(text)}**\n" for text in run.guarantee.warnings),
        f"{_what(run)}{audited}.{_served(run)}",
        "",
        "## Guarantee",
        "",
        f"**{escaped(kind_line(run.guarantee))}.** {escaped(run.guarantee.statement)}",
        "",
        escaped(epsilon_line(run.guarantee)),
        "",
        escaped(covers_line(run.guarantee)),
        *([""] if run.guarantee.conditions else []),
        *(f"- {escaped(str(condition))}" for condition in run.guarantee.conditions),
        "",
        "## Scores",
        "",
        *([f"**{escaped(line)}**\n"] if (line := outside_line(run.guarantee)) else []),
        "The best of the attacks on each threat, beside a guesser who sees nothing (baseline) and the best attack "
        "with no defence (control). Leakage is how far it has gone from the guesser (0 %) to that attack (100 %).",
        "",
        "| what | by | metric | value | 95 % interval | baseline | control | leakage | n |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    served = [("Utility", use), *((f"Utility ({label})", run.reads(label)) for label in run.labels[1:])]
    attacked = [(title(key), run.worst[key]) for key in in_order(run.worst)]
    lines += [_score_row(name, score) for name, score in (*served, *attacked) if score is not None]
    lines.append("")
    told = [*threat_paragraphs(run, in_order(run.worst)), *floor_sentences(run), *repeated_sentences(run)]
    for paragraph in told:
        lines += [escaped(paragraph), ""]
    lines += [escaped(said), ""] if (said := fairness_sentence(run)) else []
    lines += [*_not_asked(run), *_keys(run), *_information(run), *_fidelity(run), *_ledger(run)]
    lines += [f"**Warning.** {escaped(text)}\n" for text in trust_warnings([run])]
    lines += [
        "These are measurements by the attacks listed. Another attack may do better.",
        "",
        "## Run again",
        "",
        *(f"    {line}" for line in run.commands.splitlines()),
        "",
        f"Seed {escaped(run.seed)}; the configuration is in `config.toml`, the versions in `env.json`."
        f"{' A second fit on the same records spends the budget a second time.' if run.budget is not None else ''}",
        "",
    ]
    return "\n".join(lines)


def _what(run: Run) -> str:
    if run.unlinked:
        return f"`{code(run.mechanism)}`: rows that somebody else made of the records in {escaped(run.data)}"
    return f"A release of {escaped(run.data)} by the mechanism `{code(run.mechanism)}`"


def _served(run: Run) -> str:
    if run.unlinked:
        return ""
    labels = escaped(", ".join(run.labels)) or "no stated label"
    if run.rotated:
        return f" The answer serves {labels}, and only the device that holds the key can read it."
    return f" Others may use it for {labels}."


def _score_row(name: str, score: Score) -> str:
    metric = f"{metric_name(score.metric, score.threat)} ({direction(score)})"
    references = [reference(value, score.metric) for value in (score.baseline, score.control)]
    cells = [name, score.attack, score.metric if score.threat == UTILITY else metric]
    cells += [number(score.value, score.metric), interval(score), *references, leak(score) or "–", f"{score.n:,}"]
    return table_row(cells)


def _not_asked(run: Run) -> list[str]:
    """Of rows that somebody else made: what was left out, and what was noticed in the files."""
    if not run.unlinked:
        return []
    lines = []
    for head, told in (("Not asked:", left_out(run)), ("Noticed:", run.notes)):
        lines += [head, "", *(f"- {escaped(one)}" for one in told), ""] if told else []
    return lines


def _keys(run: Run) -> list[str]:
    """What a key is worth."""
    found = run.wrong_key
    if found is None:
        return []
    right, drawn, chance = measured(found.curve[0]), measured(found.uniform), number(found.chance, "accuracy")
    with_keys = f"in {right} with the right key, in {drawn} with a key drawn uniformly"
    mean = "" if found.labels == 1 else f" (means over {found.labels} labels)"
    return [escaped(f"The answer is right {with_keys}; majority guess {chance}{mean}."), ""]


def _information(run: Run) -> list[str]:
    """One line a label; an estimate is no attack, so it stands apart from the scores."""
    found = [score for score in run.information if score.threat == INFORMATION]
    if not found:
        return []
    lines = ["Mutual information with the release, an estimate that involves no attacker and bounds none:", ""]
    for score in found:
        role = "private" if score.better_for_owner == "lower" else "utility"
        chance = f"; shuffled labels {number(score.baseline, score.metric)}" if score.baseline is not None else ""
        lines.append(escaped(f"- {score.target} ({role}): {measured(score)} {metric_name(score.metric)}{chance}"))
    return [*lines, ""]


def _fidelity(run: Run) -> list[str]:
    """How much synthetic records are like real ones, in a line."""
    found = [score for score in run.information if score.threat == FIDELITY]
    if not found:
        return []
    each = [f"{named(score)} (real records {number(score.control, score.metric)})" for score in found]
    return [escaped(f"Likeness of the synthetic records to real ones: {', '.join(each)}."), ""]


def _ledger(run: Run) -> list[str]:
    """Every question to the private records, with its noise."""
    if run.budget is None:
        return []
    lines = [
        "## Budget",
        "",
        "| part | query | times | rate | noise multiplier | ε alone |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for ask in run.budget.asked:
        cells = (ask.part, ask.name, f"{ask.count:,}", f"{ask.rate:g}", f"{ask.noise:.4g}", f"{ask.epsilon:.4g}")
        lines.append(table_row(cells))
    both = f"All together: ε = {run.budget.epsilon:.4g} by PLD, {run.budget.epsilon_rdp:.4g} by RDP"
    return [*lines, "", escaped(f"{both}, at δ = {run.budget.delta:g}, for: {run.budget.relation}."), ""]

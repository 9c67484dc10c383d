"""Synthetic records: what ε is claimed and what canaries show, who tells members from strangers, where ε went."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sfumato.core.score import Score
from sfumato.core.threats import CLAIM, MEMBERSHIP
from sfumato.report.audited_runs import Group, Run
from sfumato.report.html_pieces import part, section
from sfumato.report.picture_rows import Album, wall_row
from sfumato.report.score_tables import glance_cell
from sfumato.report.series import spread
from sfumato.report.wording import count, metric_name, number

_PICTURED = 3  # runs


def synthetic_section(group: Group, album: Album) -> str:
    """Everything that only synthetic records have; nothing where there are none."""
    runs = [run for run in group.runs if run.synthetic]
    if not runs:
        return ""
    parts = [_samples(runs, album), _claims(runs), _members(runs), *(_ledger(run) for run in runs)]
    return section(
        "Synthetic records",
        "These records were drawn from a model of the owner’s records; none of them belongs to anybody. What can leak "
        "is whether a record was among those that the model was learnt from.",
        "".join(parts),
    )


def _samples(runs: Sequence[Run], album: Album) -> str:
    shown = [run for run in spread(runs, _PICTURED) if album.key(run, "synthetic")]
    if not shown or shown[0].schema.kind == "table":
        return ""
    rows = []
    for run in shown:
        for label, alt in (("synthetic", "synthetic record"), ("nearest real", "nearest real record")):
            name, facts = (run.title, "synthetic") if label == "synthetic" else ("", "nearest real record")
            rows.append(wall_row(name, facts, album.pictures[album.key(run, label)], f"{run.title}, {alt}"))
    return part(
        "Samples and the real records nearest to them",
        "Below each sample stands the owner’s record that is nearest to it, pixel by pixel. A model that copies would "
        "show the same picture twice.",
        f'<div class="wall {escape(shown[0].schema.kind)}">{"".join(rows)}</div>',
    )


def _claims(runs: Sequence[Run]) -> str:
    """The claimed ε beside the lower bound of every kind of canary."""
    names = dict.fromkeys(score.attack for run in runs for score in _of(run, CLAIM))
    if not names:
        return ""
    heads = ["Run", "Claimed", *(runs[0].called(name)[0] for name in names)]
    rows = []
    for run in runs:
        found = {score.attack: score for score in _of(run, CLAIM)}
        promise = run.guarantee
        claimed = "–" if promise.epsilon is None else f"ε = {promise.epsilon:.3g}, δ = {promise.delta:g}"
        proven = "" if promise.kind == "dp" else '<span class="setting">not proven</span>'
        cells = [f'<td data-label="Claimed">{escape(claimed)}{proven}</td>']
        cells += [_bound(runs[0].called(name)[0], found.get(name), promise.epsilon) for name in names]
        rows.append(f'<tr><th scope="row">{escape(run.title)}</th>{"".join(cells)}</tr>')
    return part(
        "Claimed, and shown by canaries",
        "An auditor runs the same method with the same noise on data sets that differ in one record, and sees every "
        "noisy answer. What it shows with 95 % confidence lies below the claimed ε, or the claim is wrong. The worst "
        "case is a data set of blank records plus the heaviest one, the natural case the owner’s records plus the most "
        "unusual one; a single run with many canaries shows less.",
        _table(heads, rows),
    )


def _bound(name: str, score: Score | None, claimed: float | None) -> str:
    label = f'<td data-label="{escape(name, quote=True)}">'
    if score is None:
        return f'{label}<span class="absent">not measured</span></td>'
    refuted = claimed is not None and score.value > claimed
    mark = ' <span class="badge">refutes the claim</span>' if refuted else ""
    trials = f"{score.n:,} canaries" if score.attack == "canary-one-run" else count(score.n, "trial")
    return f'{label}<b>ε ≥ {number(score.value, score.metric)}</b>{mark}<span class="setting">{trials}</span></td>'


def _members(runs: Sequence[Run]) -> str:
    """Each membership attack between the release of the owner's records and a guess."""
    names = dict.fromkeys(score.attack for run in runs for score in _of(run, MEMBERSHIP))
    if not names:
        return ""
    heads = ["Run", *(runs[0].called(name)[0] for name in names)]
    rows = []
    for run in runs:
        found = {score.attack: score for score in _of(run, MEMBERSHIP)}
        cells = "".join(glance_cell(runs[0].called(name)[0], found.get(name)) for name in names)
        rows.append(f'<tr><th scope="row">{escape(run.title)}</th>{cells}</tr>')
    metric = metric_name(_of(runs[0], MEMBERSHIP)[0].metric) if _of(runs[0], MEMBERSHIP) else "advantage"
    return part(
        "Was this record among them?",
        f"The {metric} of attacks that see the synthetic records only: 0 is a guess, 1 is certainty. The left end is "
        "the same attack on a release of the owner’s records themselves.",
        _table(heads, rows),
    )


def _ledger(run: Run) -> str:
    """Every question that was asked of the private records, with its noise and what it would cost alone."""
    if run.budget is None:
        return ""
    budget = run.budget
    rows = [
        f'<tr><td>{escape(ask.part)}</td><th scope="row">{escape(ask.name)}</th><td class="num">{ask.count:,}</td>'
        f'<td class="num">{ask.rate:.4g}</td><td class="num">{ask.noise:.4g}</td>'
        f'<td class="num">{ask.epsilon:.4g}</td></tr>'
        for ask in budget.asked
    ]
    heads = ("Part", "Question", "Times", "Sampling rate", "Noise multiplier", "ε alone")
    past = f" The records were also opened past the counter: {budget.bypassed}" if budget.bypassed else ""
    return part(
        f"Where ε went: {run.title}",
        f"Every question to the private records. Together they come to ε = {budget.epsilon:.4g} by privacy loss "
        f"distributions ({budget.epsilon_rdp:.4g} by Rényi divergences) at δ = {budget.delta:g}, "
        f"for: {budget.relation}. What each would cost alone does not add up: losses compose to less than their sum."
        f"{past}",
        _table(heads, rows, kind="scores", numbers=4),
    )


def _of(run: Run, threat: str) -> list[Score]:
    return [score for score in run.attacks if score.threat == threat and score.primary]


def _table(heads: Sequence[str], rows: Sequence[str], kind: str = "glance", numbers: int = 0) -> str:
    """A table with these heads; the last ``numbers`` columns hold figures."""
    words = len(heads) - numbers
    kinds = ["" if i < words else ' class="num"' for i in range(len(heads))]
    names = [f'<th scope="col"{own}>{escape(head)}</th>' for own, head in zip(kinds, heads, strict=True)]
    return f'<table class="{kind}"><thead><tr>{"".join(names)}</tr></thead><tbody>{"".join(rows)}</tbody></table>'

"""Synthetic records: what ε is claimed and what canaries show, who tells members from strangers, where ε went."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.core.score import Score
from sfumato.core.threats import CLAIM, MEMBERSHIP
from sfumato.report.audited_runs import Group, Run, spread
from sfumato.report.page_values import Cell, Passage, QueryTable, RunRow, Section, Table, Wall, lines, strip
from sfumato.report.picture_rows import Album
from sfumato.report.score_tables import glance_cell
from sfumato.report.wording import count, metric_name, number

_PICTURED = 3  # runs


def synthetic_section(group: Group, album: Album) -> Section | None:
    """Everything that only synthetic records have; nothing where there are none."""
    runs = [run for run in group.runs if run.traits.synthetic and not run.unlinked]
    if not runs:
        return None
    parts = [_samples(runs, album), _claims(runs), _members(runs), *(_ledger(run) for run in runs)]
    return Section(
        "Synthetic records",
        "These records were drawn from a model of the owner’s records; none of them belongs to anybody. What can leak "
        "is whether a record was among those that the model was learnt from.",
        tuple(part for part in parts if part is not None),
    )


def _samples(runs: Sequence[Run], album: Album) -> Passage | None:
    shown = [run for run in spread(runs, _PICTURED) if album.key(run, "synthetic")]
    if not shown or shown[0].schema.kind == "table":
        return None
    rows = []
    for run in shown:
        samples, nearest = (album.pictures[album.key(run, label)] for label in ("synthetic", "nearest real"))
        rows.append(strip(run.title, "synthetic", samples, f"{run.title}, synthetic record"))
        rows.append(strip("", "nearest real record", nearest, f"{run.title}, nearest real record"))
    return Passage(
        "Samples and the real records nearest to them",
        "Below each sample is the owner’s record nearest to it, pixel by pixel. A model that copies would "
        "show the same picture twice.",
        (Wall(shown[0].schema.kind, tuple(rows)),),
    )


def _claims(runs: Sequence[Run]) -> Passage | None:
    """The claimed ε beside the lower bound of every kind of canary."""
    titles = _titles(runs, CLAIM)
    if not titles:
        return None
    rows = []
    for run in runs:
        promise = run.guarantee
        claimed = "–" if promise.epsilon is None else f"ε = {promise.epsilon:.3g}, δ = {promise.delta:g}"
        proven = () if promise.kind == "dp" else lines("not proven")
        cells = [Cell("Claimed", claimed, lines=proven)]
        cells += [_bound(head, run.primary(CLAIM).get(name), promise.epsilon) for name, head in titles.items()]
        rows.append(RunRow(run.title, "", tuple(cells)))
    return Passage(
        "Claimed, and shown by canaries",
        "An auditor runs the same method with the same noise on data sets that differ in one record, and sees every "
        "noisy answer. What it shows with 95 % confidence lies below the claimed ε, or the claim is wrong. The worst "
        "case is a data set of blank records plus the heaviest one, the natural case the owner’s records plus the most "
        "unusual one; a single run with many canaries shows less.",
        (Table("glance", ("Run", "Claimed", *titles.values()), tuple(rows)),),
    )


def _bound(head: str, score: Score | None, claimed: float | None) -> Cell:
    if score is None:
        return Cell(head, absent="not measured")
    refuted = claimed is not None and score.value > claimed
    trials = f"{score.n:,} canaries" if score.attack == "canary-one-run" else count(score.n, "trial")
    bound = f"ε ≥ {number(score.value, score.metric)}"
    return Cell(head, figure=bound, badge="refutes the claim" if refuted else "", lines=lines(trials))


def _members(runs: Sequence[Run]) -> Passage | None:
    """Each membership attack between the release of the owner's records and a guess."""
    titles = _titles(runs, MEMBERSHIP)
    if not titles:
        return None
    rows = []
    for run in runs:
        scores = run.primary(MEMBERSHIP)
        rows.append(RunRow(run.title, "", tuple(glance_cell(head, scores.get(name)) for name, head in titles.items())))
    metrics = [metric_name(score.metric) for score in runs[0].primary(MEMBERSHIP).values()]
    return Passage(
        "Was this record among them?",
        f"The {metrics[0] if metrics else 'advantage'} of attacks that see the synthetic records only: 0 is a guess, "
        "1 is certainty. The left end is the best attack on a release of the owner’s records themselves.",
        (Table("glance", ("Run", *titles.values()), tuple(rows)),),
    )


def _ledger(run: Run) -> Passage | None:
    """Every query to the private records, with its noise and what it would cost alone."""
    if run.budget is None:
        return None
    budget = run.budget
    rows = tuple(
        (ask.part, ask.name, f"{ask.count:,}", f"{ask.rate:.4g}", f"{ask.noise:.4g}", f"{ask.epsilon:.4g}")
        for ask in budget.asked
    )
    heads = ("Passage", "Query", "Times", "Sampling rate", "Noise multiplier", "ε alone")
    past = f" The records were also read without being counted: {budget.bypassed}" if budget.bypassed else ""
    return Passage(
        f"Where ε went: {run.title}",
        f"Every query to the private records. Together they cost ε = {budget.epsilon:.4g} by privacy loss "
        f"distributions ({budget.epsilon_rdp:.4g} by Rényi divergences) at δ = {budget.delta:g}, "
        f"for: {budget.relation}. The costs of each alone do not add up: losses compose to less than their sum."
        f"{past}",
        (QueryTable(heads, rows),),
    )


def _titles(runs: Sequence[Run], threat: str) -> dict[str, str]:
    """The titles of all attacks of one kind, by their names."""
    return {attack: runs[0].called(attack)[0] for run in runs for attack in run.primary(threat)}

"""How the groups of a private label fare with what classifiers say: a folded table, and the card's sentence."""

from __future__ import annotations

from html import escape

from sfumato.core.score import Score
from sfumato.core.threats import FAIRNESS, threat
from sfumato.report.audited_runs import Group, Run
from sfumato.report.html_pieces import cell, fold, note, table, table_row
from sfumato.report.wording import interval, measured, metric_name, number, reference


def fairness_table(group: Group) -> str:
    """A row for each run, classifier and pair of labels, folded; nothing where no groups were compared."""
    metrics = list(dict.fromkeys(score.metric for run in group.runs for score in run.fairness))
    if not metrics:
        return ""
    rows = []
    for run in group.runs:
        for about, attack in dict.fromkeys((score.about, score.attack) for score in run.fairness):
            found = {s.metric: s for s in run.fairness if (s.about, s.attack) == (about, attack)}
            cells = [cell("Label by group", escape(str(about))), cell("Classifier", escape(attack))]
            cells += [cell(metric_name(name).capitalize(), _figure(found.get(name))) for name in metrics]
            rows.append(table_row(run.mechanism, run.setting, cells))
    heads = ["Method", "Label by group", "Classifier", *(metric_name(name).capitalize() for name in metrics)]
    return fold(
        "Fairness of what a receiver trains",
        f"{threat(FAIRNESS).explanation} Demographic parity compares how often each answer is given, equal opportunity "
        "how often it is given to those whom it fits, equalised odds that and how often it is given to the others.",
        table("glance", heads, rows),
    )


def fairness_sentence(run: Run) -> str:
    """The largest difference between groups, with what it is to be read against; "" where none was measured."""
    worst = max(run.fairness, key=lambda score: score.value, default=None)
    if worst is None:
        return ""
    same = [s.control for s in run.fairness if (s.about, s.metric) == (worst.about, worst.metric)]
    control = next((value for value in (worst.control, *same) if value is not None), None)  # a fresh one's may serve
    raw = f", trained on raw records {reference(control, worst.metric)}" if control is not None else ""
    said = (
        f"Fairness: the largest difference between groups is {measured(worst)} ({metric_name(worst.metric)} of "
        f"{worst.about}, {worst.attack}); by chance {reference(worst.baseline, worst.metric)}{raw}."
    )
    return " ".join([said, *dict.fromkeys(score.note for score in run.fairness if "Left out" in score.note)])


def _figure(score: Score | None) -> str:
    if score is None:
        return note("absent", "too few records")
    ends = [f"chance {reference(score.baseline, score.metric)}"]
    ends += [f"raw {reference(score.control, score.metric)}"] if score.control is not None else []
    return (
        f'<span class="figure"><b>{escape(number(score.value, score.metric))}</b> {note("ci", interval(score))}</span>'
        f"{note('setting', ', '.join(ends))}{note('setting', score.note)}"
    )

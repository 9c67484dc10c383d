"""How the groups of a private label fare with what classifiers say: a folded table, and the card's sentence."""

from __future__ import annotations

from sfumato.core.score import Score
from sfumato.core.threats import FAIRNESS, threat
from sfumato.report.audited_runs import Group, Run
from sfumato.report.page_values import Cell, Fold, RunRow, Table, lines
from sfumato.report.wording import interval, measured, metric_name, number, reference


def fairness_table(group: Group) -> tuple[Fold, ...]:
    """A row for each run, classifier and pair of labels, folded; nothing where no groups were compared."""
    metrics = list(dict.fromkeys(score.metric for run in group.runs for score in run.fairness))
    if not metrics:
        return ()
    rows = []
    for run in group.runs:
        for about, attack in dict.fromkeys((score.about, score.attack) for score in run.fairness):
            found = {s.metric: s for s in run.fairness if (s.about, s.attack) == (about, attack)}
            cells = [Cell("Label by group", str(about)), Cell("Classifier", attack)]
            cells += [_figure(metric_name(name).capitalize(), found.get(name)) for name in metrics]
            rows.append(RunRow(run.mechanism, run.setting, tuple(cells)))
    heads = ("Method", "Label by group", "Classifier", *(metric_name(name).capitalize() for name in metrics))
    folded = Fold(
        "Fairness of what a receiver trains",
        f"{threat(FAIRNESS).explanation} Demographic parity compares how often each answer is given, equal opportunity "
        "how often it is given to those whom it fits, equalised odds that and how often it is given to the others.",
        (Table("glance", heads, tuple(rows)),),
    )
    return (folded,)


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


def _figure(head: str, score: Score | None) -> Cell:
    if score is None:
        return Cell(head, absent="too few records")
    ends = [f"chance {reference(score.baseline, score.metric)}"]
    ends += [f"raw {reference(score.control, score.metric)}"] if score.control is not None else []
    figure = number(score.value, score.metric)
    return Cell(head, figure=figure, ci=interval(score), lines=lines(", ".join(ends), score.note))

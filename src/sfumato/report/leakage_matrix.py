"""Mechanisms × threats: what the worst attack on each question finds, from 0 to 100 %."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.core.score import Score
from sfumato.core.threats import title
from sfumato.report.audited_runs import Group, Run
from sfumato.report.first_screen import WITH_LABELS, State, gate_state, shown_to_leak, worst_leak
from sfumato.report.foreign_rows import worst_first
from sfumato.report.wording import interval, leak, metric_name, number

_STEPS = (0.0, 0.2, 0.4, 0.6, 0.8)  # from one shade to the next


@dataclass(frozen=True)
class MatrixCell:
    """A figure with its interval; ``shade`` from 0 (not shown to leak) to 5, ``order`` for sorting.

    ``sure`` marks leakage whose interval lies above 0. ``plain`` figures are no shares: they are not shaded.
    """

    head: str
    text: str
    ci: str = ""
    shade: int = 0
    order: float | None = None
    sure: bool = False
    plain: bool = False
    about: str = ""


@dataclass(frozen=True)
class MatrixRow:
    """One run: its number on the page, its gate, its use, a cell for each threat, the worst and the worst group."""

    number: int
    method: str
    setting: str
    role: str
    gate: State
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True)
class Matrix:
    """``first`` heads the names, ``undefended`` completes "100 %: "."""

    first: str
    undefended: str
    heads: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    gated: bool


def leakage_matrix(group: Group, numbers: dict[str, int]) -> Matrix:
    """A row for each run: its use, its leakage by threat, and the group of people that is worst off."""
    useful = any(run.use is not None for run in group.runs)
    grouped = any(found.groups for run in group.runs for found in run.exposure.values())
    foreign = all(run.unlinked for run in group.runs)
    several = len(group.threats) > 1
    threats = common_first(group)
    worst_head = "Worst of payload" if any(key.partition(":")[0] in WITH_LABELS for key in threats) else "Worst"
    heads = ["Use"] * useful + [worst_head] * several + ["Worst group"] * grouped + [title(key) for key in threats]
    rows = []
    for run in worst_first(group.runs) if foreign else group.runs:
        cells = [_use(run)] if useful else []
        worst = worst_leak(run)
        if several:
            about = "" if worst is None else title(worst[0])
            cells.append(_share(worst_head, None if worst is None else worst[1], run, about))
        cells += [_worst_group(run)] if grouped else []
        cells += [_share(title(key), run.worst.get(key), run) for key in threats]
        role = "" if run.defended or run.unlinked else "no defence"
        rows.append(MatrixRow(numbers[run.name], run.mechanism, run.setting, role, gate_state(run), tuple(cells)))
    return Matrix(
        "Release" if foreign else "Method",
        "the owner’s records themselves" if foreign else "the best attack on an undefended release",
        tuple(heads),
        tuple(rows),
        any(run.gate is not None for run in group.runs),
    )


def common_first(group: Group) -> list[str]:
    """The questions; those that were asked of few of the runs only stand behind the others."""
    asked = {key: sum(key in run.worst for run in group.runs) for key in group.threats}
    return sorted(group.threats, key=lambda key: 3 * asked[key] < len(group.runs))


def _use(run: Run) -> MatrixCell:
    use = run.use
    if use is None:
        return MatrixCell("Use", "–", about="not measured", plain=True)
    about = f"{metric_name(use.metric)} of {use.target or run.main_label or 'the label'}"
    return MatrixCell("Use", number(use.value, use.metric), interval(use), order=use.value, plain=True, about=about)


def _share(head: str, score: Score | None, run: Run, about: str = "") -> MatrixCell:
    if score is None:
        return MatrixCell(head, "–", about="does not apply" if run.traits.synthetic else "not asked", plain=True)
    if score.leakage is None or score.leakage_ci is None:
        text = f"{metric_name(score.metric, score.threat)} {number(score.value, score.metric)}"
        return MatrixCell(head, text, interval(score), plain=True, about=score.attack)
    sure = shown_to_leak(score)
    share, _, rest = leak(score).partition(" [")
    return MatrixCell(
        head,
        share,
        f"[{rest.partition(']')[0]}]",
        shade(score.leakage) if sure else 0,
        score.leakage,
        sure,
        about=about or score.attack,
    )


def shade(share: float) -> int:
    """From 0 to 5, the darker the more leaks."""
    return sum(share >= step for step in _STEPS)


def _worst_group(run: Run) -> MatrixCell:
    """The group that leaks most on the question that counts; one of those that leak more than the rest, if any do."""
    worst = worst_leak(run)
    asked = [worst[0]] if worst is not None and worst[0] in run.exposure else list(run.exposure)
    every = [(key, one) for key in asked for one in run.exposure[key].groups]
    picked: Sequence[tuple[str, dict[str, object]]] = [pair for pair in every if pair[1]["worse"]] or every
    if not picked:
        return MatrixCell("Worst group", "–", about="no groups were compared", plain=True)
    key, one = max(picked, key=lambda pair: float(str(pair[1]["leakage"])))
    share = float(str(one["leakage"]))
    named = f"{one['column']} = {one['value']}"
    return MatrixCell("Worst group", f"{100 * share:.0f} %", named, order=share, plain=True, about=title(key))

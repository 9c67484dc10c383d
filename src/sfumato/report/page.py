"""The page: what each section shows as plain values, put into the templates. Everything from files is escaped there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.core.threats import CLAIM, RECONSTRUCTION, threat, title
from sfumato.report.audited_runs import Group, Run, in_order
from sfumato.report.compliance_sheet import Sheet, sheets
from sfumato.report.confusion import confusions
from sfumato.report.curves import information, tradeoff
from sfumato.report.exposure_table import exposure_table
from sfumato.report.fairness_table import fairness_table
from sfumato.report.feature_views import planes, space
from sfumato.report.first_screen import Answer, answer
from sfumato.report.foreign_rows import EXCESS, foreign_section
from sfumato.report.front import front
from sfumato.report.guarantees import promises
from sfumato.report.leakage_front import leakage_front
from sfumato.report.leakage_matrix import Matrix, common_first, leakage_matrix
from sfumato.report.page_templates import rendered
from sfumato.report.page_values import Charts, Passage, Piece, Section, Space
from sfumato.report.picture_rows import Album, before_and_after, wall_of_reconstructions
from sfumato.report.plots import Board, Style, styles
from sfumato.report.release_counts import averages
from sfumato.report.rotated_messages import key_errors, key_table, key_worth, messages, rebuilt
from sfumato.report.score_tables import ScoreRow, glance, score_rows, scores_csv
from sfumato.report.synthetic_section import synthetic_section
from sfumato.report.verdict import Verdict, trust_warnings, verdict
from sfumato.report.wording import count, leak, listed, measured, metric_name, named

Json = dict[str, Any]

_MARKS = (
    "Each mark lies between what the best attack gets with no defence (left) and what a guesser who sees nothing gets "
    "(right); for utility, between the majority guess and raw data. Further right is better for the owner; errors are "
    "on a logarithmic scale."
)
_FEW = 4  # records beside the front where each has several guesses


@dataclass(frozen=True)
class FrontView:
    """The trade-off: its number, the threats to choose from, and the runs of each method as buttons."""

    number: int
    threats: tuple[str, ...]
    methods: tuple[tuple[str, tuple[tuple[int, str], ...]], ...]
    alone: bool
    bare: bool
    about: str


@dataclass(frozen=True)
class RunPage:
    """Everything about one run: its number, facts, scores, and how to repeat it."""

    number: int
    title: str
    data: str
    setting: str
    facts: tuple[str, ...]
    scores: tuple[ScoreRow, ...]
    commands: str
    config: str


@dataclass(frozen=True)
class MethodPage:
    """What opens when a method is clicked."""

    name: str
    about: str
    runs: tuple[RunPage, ...]


@dataclass(frozen=True)
class GroupPage:
    """All that is said about one data set."""

    number: int
    data: str
    answer: Answer
    warnings: tuple[str, ...]
    matrix: Matrix
    front: FrontView | None
    start: int
    explored: tuple[tuple[int, str], ...]
    words: Verdict
    sections: tuple[Section, ...]
    methods: tuple[MethodPage, ...]
    sheets: tuple[Sheet, ...]


def render_page(groups: Sequence[Group], *, title: str | None = None, live: bool = False) -> str:
    """The whole page as text. It loads nothing from anywhere: its own policy forbids it.

    A ``live`` page asks the server that it came from whether there is news, and nobody else.
    """
    runs = [run for group in groups for run in group.runs]
    builder = _Builder(runs)
    pages = [builder.group(number, group) for number, group in enumerate(groups)]
    return rendered(
        "page.html.j2",
        live=live,
        data=builder.payload(groups),
        title=title or _title(groups),
        subtitle=_subtitle(runs),
        groups=pages,
        alone=len(pages) == 1,
        explanations=_explanations(runs),
        promises=promises(runs),
        versions=_versions(runs),
        records=f"{count(builder.album.records, 'real record')} {_whose(runs)}",
        left_out=builder.album.left_out,
    )


def render_waiting() -> str:
    """The live page while there is nothing to show."""
    return rendered("waiting.html.j2", live=True)


class _Builder:
    """Numbers the runs, keeps every picture once, and collects the figures that the script draws."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.album = Album(runs)
        self.fronts: list[Json] = []
        self.spaces: list[Json] = []
        self.boards: list[list[Json]] = []
        self.ids = {run.name: i for i, run in enumerate(runs)}
        self.runs = [self._panel(run) for run in runs]

    def payload(self, groups: Sequence[Group]) -> Json:
        """What the script needs, as one JSON value."""
        return {
            "runs": self.runs,
            "pictures": self.album.pictures,
            "fronts": self.fronts,
            "spaces": self.spaces,
            "boards": self.boards,
            "csv": scores_csv(groups),
        }

    def group(self, number: int, group: Group) -> GroupPage:
        """The sections about one data set."""
        looks = styles(group.methods, list(dict.fromkeys(run.mechanism for run in group.controls)))
        found = answer(group)
        return GroupPage(
            number=number,
            data=group.data,
            answer=found,
            warnings=trust_warnings(group.runs),
            matrix=leakage_matrix(group, self.ids),
            front=self._front(group, looks),
            start=self._start(group),
            explored=tuple(
                (self.ids[run.name], run.title) for run in group.runs if self.runs[self.ids[run.name]]["tiles"]
            ),
            words=verdict(group),
            sections=tuple(self._sections(group, looks)),
            methods=tuple(_method(group, method, self.ids) for method in group.methods),
            sheets=sheets(group, self.ids),
        )

    def _sections(self, group: Group, looks: dict[str, Style]) -> Iterator[Section]:
        """Everything that is folded until somebody asks for it; what there is nothing to say about is left out."""
        plane = planes(group)
        every = (
            self._board(averages(group, looks), opened=True),
            self._glance(group),
            self._board(tradeoff(group, looks)),
            before_and_after(group, self.album),
            wall_of_reconstructions(group, self.album),
            self._board(confusions(group)),
            self._board(information(group, looks)),
            self._rotated(group),
            synthetic_section(group, self.album),
            foreign_section(group),
            self._board(plane) if plane else self._space(group),
        )
        return (section for section in every if section is not None)

    def _glance(self, group: Group) -> Section:
        several = len(group.runs) > len(group.methods)
        both = any(len(group.shown(method)) > 1 for method in group.methods)
        also = " and the one that leaks least" if both else ""
        chosen = f" For each method, the run with the best accuracy{also} is shown." if several else ""
        excess = EXCESS if any(run.unlinked for run in group.runs) else ""
        content: tuple[Piece, ...] = (glance(group), *exposure_table(group), *fairness_table(group))
        return Section("At a glance", f"{_MARKS}{chosen}{excess}", content)

    def _front(self, group: Group, looks: dict[str, Style]) -> FrontView | None:
        figures: list[Json] = [
            {"name": title(key), "figure": figure, "leakage": leakage_front(group, key, looks, self.ids)}
            for key in common_first(group)
            if key != CLAIM and (figure := front(group, key, looks, self.ids)) is not None
        ]
        if not figures:
            return None
        number = len(self.fronts)
        self.fronts.append({"figures": figures, "start": self._start(group)})
        bare, seen = self._pictured(group)
        alone = len(group.runs) == 1
        rotated = any(run.rotated for run in group.runs)
        good_for = "the release is good for" if rotated else "others can do with the release"
        how = "Beside the chart:" if alone else "Choose a mark or a run to see"
        return FrontView(
            number=number,
            threats=tuple(str(figure["name"]) for figure in figures),
            methods=tuple(
                (method, tuple((self.ids[run.name], run.setting or method) for run in group.of(method)))
                for method in group.methods
            ),
            alone=alone,
            bare=bare,
            about=f"What {good_for}, against what the best attack gets. Bars are 95 % intervals. {how} {seen}.",
        )

    def _pictured(self, group: Group) -> tuple[bool, str]:
        """Whether the panel beside the front has no pictures, and what it shows."""
        labels = {row["label"] for run in group.runs for row in self.album.rows(run)}
        if "rebuilt" in labels:
            return False, "the records that were rebuilt from it"
        if "synthetic" in labels:
            return False, "synthetic records and the real ones nearest to them"
        return (False, "its releases, decoded") if labels else (True, "its figures")

    def _start(self, group: Group) -> int:
        """The run whose pictures are shown first: the one that the page answers with, if it is in the first chart."""
        main = [run.mechanism for run in group.runs if not group.threats or group.threats[0] in run.worst]
        found = answer(group).run
        if found is not None and found.mechanism in main:
            return self.ids[found.name]
        defended = list(dict.fromkeys(run.mechanism for run in group.runs if run.defended)) or list(group.methods)
        defended = [method for method in defended if method in main] or defended
        return self.ids[group.representative(defended[-1]).name]

    def _rotated(self, group: Group) -> Section | None:
        """Messages under secret keys: what the cloud sees, what attackers make of it, and what a key is worth."""
        runs = [run for run in group.runs if run.rotated]
        if not runs:
            return None
        parts = [messages(runs), rebuilt(runs)]
        for board, table in ((key_errors(runs), (key_table(runs),)), (key_worth(runs), ())):
            parts += [Passage(board.title, board.about, (*table, self._charts(board)))] if board else []
        return Section(
            "Rotated messages",
            "A message holds d records, mixed by a secret rotation. The cloud computes on it without the key, and only "
            "the device can turn the answer back. What the key hides is which of the d records is meant, not which d "
            "records these are.",
            tuple(parts),
        )

    def _board(self, board: Board | None, *, opened: bool = False) -> Section | None:
        """A section of small charts; None where there are none."""
        return None if board is None else Section(board.title, board.about, (self._charts(board),), opened)

    def _charts(self, board: Board) -> Charts:
        """Small charts side by side."""
        self.boards.append(list(board.sheets.values()))
        return Charts(len(self.boards) - 1, board.kind, board.choice, tuple(board.sheets))

    def _space(self, group: Group) -> Section | None:
        figures = [(run, figure) for run in group.runs if (figure := space(run)) is not None]
        if not figures:
            return None
        start = self._start(group)
        first = next((i for i, (run, _) in enumerate(figures) if self.ids[run.name] == start), 0)
        self.spaces.append({"figures": [figure for _, figure in figures], "start": first})
        label = str(figures[0][1]["label"])
        options = tuple(run.title for run, _ in figures)
        return Section(
            "Released features",
            f"Up to 600 released records in their first three principal components, marked by {label}. "
            "Drag to turn. Groups that stand apart can be told apart by others; what this view does not separate may "
            "still be separable.",
            (Space(len(self.spaces) - 1, label, options, first),),
        )

    def _panel(self, run: Run) -> Json:
        """The side panel of one run: heading, facts, and rows of pictures; and all tiles of its records."""
        facts = [[metric_name(run.use.metric).capitalize(), measured(run.use)]] if run.use is not None else []
        for key in in_order(run.worst):
            score = run.worst[key]
            facts.append([title(key), f"leakage {leak(score)}" if leak(score) else f"{named(score)}, {score.attack}"])
        missing = run.picture_attack is None and RECONSTRUCTION in run.worst
        few = {"most": _FEW} if run.gallery is not None and run.gallery.lists else {}
        return few | {
            "title": run.title,
            "facts": facts,
            "rows": self.album.rows(run),
            "tiles": self.album.tiles(run),
            "kind": run.schema.kind,
            "absent": "No reconstructions were kept for this run." if missing else "",
        }


def _method(group: Group, method: str, numbers: dict[str, int]) -> MethodPage:
    runs = group.of(method)
    best = group.representative(method)
    facts = [count(len(runs), "setting")] if len(runs) > 1 else []
    facts += [f"{metric_name(best.use.metric)} {measured(best.use)}"] if best.use is not None else []
    return MethodPage(method, ", ".join(facts), tuple(_run(run, numbers[run.name]) for run in runs))


def _run(run: Run, number: int) -> RunPage:
    facts = [f"seed {run.seed}"]
    facts += [count(run.epochs, "epoch")] if run.epochs else []
    facts += [f"scored on {count(run.use.n, 'record')}"] if run.use else []
    facts.append(f"records of shape {' × '.join(map(str, run.schema.shape))} ({run.schema.kind})")
    return RunPage(
        number, run.title, run.data, run.setting, tuple(facts), score_rows(run), run.commands, run.config_text
    )


def _whose(runs: Sequence[Run]) -> str:
    """From which split the real records are that the page shows."""
    synthetic = {run.traits.synthetic for run in runs}
    if synthetic == {True}:
        return "of the owner’s split"
    return "of the victim split and the owner’s" if True in synthetic else "of the victim split"


def _explanations(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Every kind of score with what it means."""
    threats = dict.fromkeys(score.threat for run in runs for score in run.scores)
    return [(title(one), threat(one).explanation) for one in threats]


def _versions(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Versions of all runs; where they differ, every value is listed."""
    values: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, value in run.env.items():
            values.setdefault(str(name), {})[str(value)] = None
    return [(name, ", ".join(found)) for name, found in values.items()]


def _title(groups: Sequence[Group]) -> str:
    methods = list(dict.fromkeys(method for group in groups for method in group.methods))
    data = listed(list(dict.fromkeys(group.data for group in groups)))
    if all(run.unlinked for group in groups for run in group.runs):
        return f"{methods[0]}, a release of {data}" if len(methods) == 1 else f"{len(methods)} releases of {data}"
    shown = listed(methods) if len(methods) <= 6 else f"{len(methods)} methods"
    return f"{shown} on {data}"


def _subtitle(runs: Sequence[Run]) -> str:
    scores = sum(len(run.scores) for run in runs)
    attacks = {score.attack for run in runs for score in run.attacks}
    return f"{count(len(runs), 'audited run')}, {count(len(attacks), 'attack')}, {count(scores, 'score')}"

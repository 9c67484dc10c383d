"""The page: template, style and script from this package, Plotly inlined, everything from files escaped."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import sfumato
from sfumato.core.threats import CLAIM, RECONSTRUCTION, threat, title
from sfumato.report.audited_runs import Group, Run, in_order
from sfumato.report.confusion import confusions
from sfumato.report.curves import information, tradeoff
from sfumato.report.exposure_table import exposure_table
from sfumato.report.fairness_table import fairness_table
from sfumato.report.feature_views import planes, space, space_layout
from sfumato.report.foreign_rows import EXCESS, foreign_section, leakage_matrix
from sfumato.report.front import front
from sfumato.report.guarantees import guarantee_boxes
from sfumato.report.html_pieces import emphasised, fold, note, part, prose, section, select
from sfumato.report.picture_rows import Album, before_and_after, wall_of_reconstructions
from sfumato.report.plots import Board, Style, styles
from sfumato.report.release_counts import averages
from sfumato.report.rotated_messages import key_errors, key_table, key_worth, messages, rebuilt
from sfumato.report.score_tables import glance, score_table, scores_csv
from sfumato.report.synthetic_section import synthetic_section
from sfumato.report.verdict import verdict
from sfumato.report.wording import count, listed, measured, metric_name, named

Json = dict[str, Any]

_MARKS = (
    "Each mark lies between what the best attack gets with no defence (left end) and what a guesser who sees nothing "
    "gets (right end); for utility, between the majority guess and raw data. The bar is the 95 % interval. Further "
    "right is better for the owner; errors are on a logarithmic scale. Leakage places the best attack between that "
    "guesser (0 %) and the best attack on an undefended release (100 %)."
)
_FEW = 4  # records beside the front where each has several guesses


def render_page(groups: Sequence[Group], *, title: str | None = None) -> str:
    """The whole page as text. It loads nothing from anywhere: its own policy forbids it."""
    from plotly.offline import get_plotlyjs

    runs = [run for group in groups for run in group.runs]
    builder = _Builder(groups, runs)
    sections = "".join(builder.group(i, group) for i, group in enumerate(groups))
    script, plotly = _resource("page.js"), get_plotlyjs()
    return Template(_resource("page.html")).substitute(
        policy=_policy([plotly, script]),
        title=escape(title or _title(groups)),
        subtitle=escape(_subtitle(runs)),
        css=_resource("page.css"),
        verdicts="".join(builder.titled(group, _verdict(group)) for group in groups),
        groups=sections,
        explanations=_explanations(runs),
        scores="".join(builder.titled(group, score_table(group)) for group in groups),
        guarantees=guarantee_boxes(runs),
        runs="".join(_again(run) for run in runs),
        versions=_versions(runs),
        records=f"{count(builder.album.records, 'real record')} {_whose(runs)}",
        version=escape(sfumato.__version__),
        data=_json(builder.payload()),
        plotly=plotly,
        script=script,
    )


class _Builder:
    """Numbers the runs, keeps every picture once, and builds the sections that the script brings to life."""

    def __init__(self, groups: Sequence[Group], runs: Sequence[Run]) -> None:
        self.groups = groups
        self.album = Album(runs)
        self.fronts: list[Json] = []
        self.spaces: list[Json] = []
        self.boards: list[list[Json]] = []
        self.ids = {run.name: i for i, run in enumerate(runs)}
        self.runs = [self._run(run) for run in runs]

    def payload(self) -> Json:
        """What the script needs, as one JSON value."""
        return {
            "runs": self.runs,
            "pictures": self.album.pictures,
            "fronts": self.fronts,
            "spaces": self.spaces,
            "spaceLayout": space_layout(),
            "boards": self.boards,
            "csv": scores_csv(self.groups),
        }

    def titled(self, group: Group, body: str) -> str:
        """The body under the name of its data set, where the page has several."""
        return body if len(self.groups) == 1 else f'<h3 class="data">{escape(group.data)}</h3>{body}'

    def group(self, index: int, group: Group) -> str:
        """The sections about one data set."""
        looks = styles(group.methods, list(dict.fromkeys(run.mechanism for run in group.controls)))
        alone = len(self.groups) == 1
        head = "" if alone else f'<h2 class="data" id="data-{index}">{escape(group.data)}</h2>'
        plane = planes(group)
        parts = [
            self._glance(group),
            self._front(group, looks),
            self._board(tradeoff(group, looks)),
            self._board(averages(group, looks)),
            before_and_after(group, self.album),
            self._board(confusions(group)),
            self._board(information(group, looks)),
            wall_of_reconstructions(group, self.album),
            self._rotated(group),
            synthetic_section(group, self.album),
            foreign_section(group),
            self._board(plane) if plane else self._space(group),
        ]
        return f"{head}{''.join(parts)}"

    def _glance(self, group: Group) -> str:
        if len(group.runs) > 1 and all(run.unlinked for run in group.runs):
            return self._releases(group)
        several = len(group.runs) > len(group.methods)
        both = any(len(group.shown(method)) > 1 for method in group.methods)
        also = " and the one that leaks least" if both else ""
        chosen = f" For each method, the run with the best accuracy{also} is shown." if several else ""
        return section(
            "At a glance",
            f"{_MARKS}{chosen}{EXCESS if any(run.unlinked for run in group.runs) else ''}",
            f"{glance(group)}{exposure_table(group)}{fairness_table(group)}",
        )

    def _releases(self, group: Group) -> str:
        """Of several releases that others made."""
        return section(
            "Leakage at a glance",
            "What the worst attack on each question finds, with its 95 % interval: 0 % is what it finds about people "
            "who were not used, 100 % what the best attack finds if the owner’s records themselves are released. "
            "Shaded where the interval lies above 0.",
            f"{leakage_matrix(group)}{fold('Every figure between its references', _MARKS + EXCESS, glance(group))}"
            f"{exposure_table(group)}",
        )

    def _front(self, group: Group, looks: dict[str, Style]) -> str:
        figures: list[Json] = [
            {"name": title(key), "figure": figure}
            for key in group.threats
            if key != CLAIM and (figure := front(group, key, looks, self.ids)) is not None
        ]
        if not figures:
            if all(run.unlinked for run in group.runs):  # of these nobody asks what they are good for
                return ""
            return section("Trade-off", "No run has both a utility score and an attack score: no front is drawn.", "")
        number = len(self.fronts)
        self.fronts.append({"figures": figures, "start": self._start(group)})
        choice = select("Threat", f"front-{number}-choice", [figure["name"] for figure in figures])
        chips = "".join(self._chips(group, method) for method in group.methods)
        bare, seen = self._pictured(group)
        alone = len(group.runs) == 1
        body = (
            f'{choice}<div class="duo"><div class="chart"><div id="front-{number}" class="plot front" role="img" '
            f'aria-label="Utility against the best attack, one mark per run; the table below holds the same figures">'
            f'</div><div class="chips" id="front-{number}-chips"{" hidden" if alone else ""}>'
            f'<p class="hint">Show a run:</p>{chips}</div></div>'
            f'<aside class="panel{bare}" id="front-{number}-panel" aria-live="polite"></aside></div>'
        )
        rotated = any(run.rotated for run in group.runs)
        good_for = "the release is good for" if rotated else "others can do with the release"
        how = "Beside the chart:" if alone else "Point at a mark, or choose a run under the chart, to see"
        return section(
            "Trade-off",
            f"Each mark is one run: what {good_for}, against what the best attack of the suite gets. Bars are 95 % "
            "intervals. A method’s line joins the runs that none of its other runs beats on both axes. "
            f"{how} {seen}.",
            body,
        )

    def _pictured(self, group: Group) -> tuple[str, str]:
        """The class of the panel beside the front, and what it shows."""
        labels = {row["label"] for run in group.runs for row in self.album.rows(run)}
        if "rebuilt" in labels:
            return "", "the records that were rebuilt from it"
        if "synthetic" in labels:
            return "", "synthetic records and the real ones nearest to them"
        return ("", "its releases, decoded") if labels else (" bare", "its figures")

    def _start(self, group: Group) -> int:
        """The run whose pictures are shown first: the last defended method's representative."""
        main = [run.mechanism for run in group.runs if not group.threats or group.threats[0] in run.worst]
        defended = list(dict.fromkeys(run.mechanism for run in group.runs if run.defended)) or list(group.methods)
        defended = [method for method in defended if method in main] or defended  # one that is in the first chart
        return self.ids[group.representative(defended[-1]).name]

    def _chips(self, group: Group, method: str) -> str:
        buttons = "".join(
            f'<button type="button" data-run="{self.ids[run.name]}">{escape(run.setting or method)}</button>'
            for run in group.of(method)
        )
        return f'<div class="chip-row">{note("method", method)}<div>{buttons}</div></div>'

    def _rotated(self, group: Group) -> str:
        """Messages under secret keys: what the cloud sees, what attackers make of it, and what a key is worth."""
        runs = [run for run in group.runs if run.rotated]
        if not runs:
            return ""
        parts = [messages(runs), rebuilt(runs)]
        for board, table in ((key_errors(runs), key_table(runs)), (key_worth(runs), "")):
            parts += [part(board.title, board.about, f"{table}{self._charts(board)}")] if board else []
        return section(
            "Rotated messages",
            "A message holds d records, mixed by a secret rotation. The cloud computes on it without the key, and only "
            "the device can turn the answer back. What the key hides is which of the d records is meant, not which d "
            "records these are.",
            "".join(parts),
        )

    def _board(self, board: Board | None) -> str:
        """A section of small charts; nothing where there are none."""
        return "" if board is None else section(board.title, board.about, self._charts(board))

    def _charts(self, board: Board) -> str:
        """Small charts side by side, which the script draws."""
        number = len(self.boards)
        self.boards.append(list(board.sheets.values()))
        choice = select(board.choice, f"board-{number}-choice", list(board.sheets))
        return f'{choice}<div class="board {board.kind}" id="board-{number}"></div>'

    def _space(self, group: Group) -> str:
        figures = [(run, figure) for run in group.runs if (figure := space(run)) is not None]
        if not figures:
            return ""
        start = self._start(group)
        first = next((i for i, (run, _) in enumerate(figures) if self.ids[run.name] == start), 0)
        number = len(self.spaces)
        self.spaces.append({"figures": [figure for _, figure in figures], "start": first})
        choice = select("Run", f"space-{number}-choice", [run.title for run, _ in figures], first)
        label = str(figures[0][1]["label"])
        return section(
            "Released features",
            f"Up to 600 released records in their first three principal components, marked by {label}. "
            "Drag to turn. Groups that stand apart can be told apart by others; what this view does not separate may "
            "still be separable.",
            f'{choice}<div id="space-{number}" class="plot space" role="img" '
            f'aria-label="Three-dimensional scatter of released features, marked by {escape(label)}"></div>',
        )

    def _run(self, run: Run) -> Json:
        """The side panel of one run: heading, facts, and rows of pictures."""
        facts = [[metric_name(run.use.metric).capitalize(), measured(run.use)]] if run.use is not None else []
        for key in in_order(run.worst):
            facts.append([title(key), f"{named(run.worst[key])}, {run.worst[key].attack}"])
        missing = run.picture_attack is None and RECONSTRUCTION in run.worst
        few = {"most": _FEW} if run.gallery is not None and run.gallery.lists else {}
        return few | {
            "title": run.title,
            "facts": facts,
            "rows": self.album.rows(run),
            "kind": run.schema.kind,
            "absent": "No reconstructions were kept for this run." if missing else "",
        }


def _whose(runs: Sequence[Run]) -> str:
    """From which split the real records are that the page shows."""
    synthetic = {run.traits.synthetic for run in runs}
    if synthetic == {True}:
        return "of the owner’s split"
    return "of the victim split and the owner’s" if True in synthetic else "of the victim split"


def _verdict(group: Group) -> str:
    found = verdict(group)
    paragraphs = [f"<p>{prose(text)}</p>" for text in found.lead]
    paragraphs[0] = f'<p class="lead">{prose(found.lead[0])}</p>'
    rankings = []
    for ranking in found.rankings:
        items = "".join(f"<li>{emphasised(item)}</li>" for item in ranking.items)
        notes = prose(" ".join(ranking.notes))
        rankings.append(
            f'<div class="ranking"><p>{escape(ranking.heading)}</p><ol>{items}</ol><p class="notes">{notes}</p></div>'
        )
    ranked = f'<div class="rankings">{"".join(rankings)}</div>' if rankings else ""
    warnings = [f'<p class="warning"><b>Warning.</b> {escape(text)}</p>' for text in found.warnings]
    return "".join([*paragraphs, ranked, *warnings])


def _explanations(runs: Sequence[Run]) -> str:
    threats = dict.fromkeys(score.threat for run in runs for score in run.scores)
    items = "".join(f"<dt>{escape(title(t))}</dt><dd>{escape(threat(t).explanation)}</dd>" for t in threats)
    return f'<dl class="threats">{items}</dl>'


def _again(run: Run) -> str:
    """How to repeat a run, with its configuration."""
    facts = [f"seed {run.seed}"]
    facts += [count(run.epochs, "epoch")] if run.epochs else []
    facts += [f"scored on {count(run.use.n, 'record')}"] if run.use else []
    facts.append(f"records of shape {' × '.join(map(str, run.schema.shape))} ({run.schema.kind})")
    return (
        f"<details><summary><b>{escape(run.title)}</b> on {escape(run.data)} "
        f"{note('facts', ', '.join(facts))}</summary>"
        f'<pre class="command">{escape(run.commands)}</pre><pre>{escape(run.config_text)}</pre></details>'
    )


def _versions(runs: Sequence[Run]) -> str:
    """Versions of all runs; where they differ, every value is listed."""
    values: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, value in run.env.items():
            values.setdefault(str(name), {})[str(value)] = None
    if not values:
        return "<p>No run recorded its versions (env.json is missing).</p>"
    items = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(', '.join(v))}</dd></div>" for k, v in values.items())
    return f'<dl class="versions">{items}</dl>'


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


def _resource(name: str) -> str:
    return files("sfumato.report").joinpath(name).read_text(encoding="utf-8")


def _json(value: Json) -> str:
    """JSON that cannot end its script element, whatever it holds."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy(scripts: Sequence[str]) -> str:
    """A content security policy: only these scripts run, and nothing is fetched."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"

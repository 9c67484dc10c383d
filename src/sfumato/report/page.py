"""The page: template, style and script from this package, Plotly inlined, everything from files escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
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
from sfumato.report.feature_planes import planes
from sfumato.report.guarantees import guarantee_boxes
from sfumato.report.html_pieces import emphasised, part, prose, section, select
from sfumato.report.key_charts import key_errors, key_worth
from sfumato.report.picture_rows import Album, before_and_after, wall
from sfumato.report.plot_style import Board, Style, styles
from sfumato.report.rotated_messages import key_table, messages, rebuilt
from sfumato.report.score_tables import glance, score_table, scores_csv
from sfumato.report.synthetic_section import synthetic_section
from sfumato.report.tradeoff import front, space, space_layout
from sfumato.report.verdict import Verdict, verdict
from sfumato.report.wording import (
    count,
    listed,
    measured,
    metric_name,
)

Json = dict[str, Any]

_FEW = 4  # records beside the front where each has several guesses


def render_page(groups: Sequence[Group], *, title: str | None = None) -> str:
    """The whole page as text. It loads nothing from anywhere: its own policy forbids it."""
    from plotly.offline import get_plotlyjs

    names = title or _title(groups)
    builder = _Builder(groups)
    sections = "".join(builder.group(i, group) for i, group in enumerate(groups))
    script, plotly = _resource("page.js"), get_plotlyjs()
    data = _json(builder.payload())
    return Template(_resource("page.html")).substitute(
        policy=_policy([plotly, script]),
        title=escape(names),
        subtitle=escape(_subtitle(groups)),
        css=_resource("page.css"),
        verdicts="".join(_verdict(group, alone=len(groups) == 1) for group in groups),
        groups=sections,
        explanations=_explanations(groups),
        scores="".join(_titled(group, score_table(group), alone=len(groups) == 1) for group in groups),
        guarantees=guarantee_boxes(groups),
        runs=_runs(groups),
        versions=_versions(groups),
        records=f"{count(builder.album.records, 'real record')} {_whose(groups)}",
        version=escape(sfumato.__version__),
        data=data,
        plotly=plotly,
        script=script,
    )


class _Builder:
    """Numbers the runs, keeps every picture once, and builds the sections that the script brings to life."""

    def __init__(self, groups: Sequence[Group]) -> None:
        runs = [run for group in groups for run in group.runs]
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
            before_and_after(group, self.album),
            self._board(confusions(group)),
            self._board(information(group, looks)),
            wall(group, self.album),
            self._rotated(group),
            synthetic_section(group, self.album),
            self._board(plane) if plane else self._space(group),
        ]
        return f"{head}{''.join(parts)}"

    def _glance(self, group: Group) -> str:
        several = len(group.runs) > len(group.methods)
        both = any(len(group.shown(method)) > 1 for method in group.methods)
        also = " and what leaks least" if both else ""
        chosen = f" Of each method the run with the best accuracy{also} is shown." if several else ""
        return section(
            "At a glance",
            "Each mark lies between what the same attack gets with no defence (left end) and what a guesser gets who "
            "sees nothing (right end); for utility, between the majority guess and raw data. The bar is the 95 % "
            "interval. Further right is better for the owner; errors are on a logarithmic scale. Leakage says how far "
            "the best attack has gone from that guesser (0 %) to the best attack where nothing is defended (100 %)."
            f"{chosen}",
            glance(group),
        )

    def _front(self, group: Group, looks: dict[str, Style]) -> str:
        figures: list[Json] = [
            {"name": title(key), "figure": figure}
            for key in group.threats
            if key != CLAIM and (figure := front(group, key, looks, self.ids)) is not None
        ]
        if not figures:
            return section("Trade-off", "No run has both a utility score and an attack score: no front is drawn.", "")
        self.fronts.append({"figures": figures, "start": self._start(group)})
        number = len(self.fronts) - 1
        choice = select("Threat", f"front-{number}-choice", [figure["name"] for figure in figures])
        chips = "".join(self._chips(group, method) for method in group.methods)
        bare, seen = self._pictured(group)
        hidden = "" if len(group.runs) > 1 else " hidden"
        rotated = any(run.rotated for run in group.runs)
        body = (
            f'{choice}<div class="duo"><div class="chart"><div id="front-{number}" class="plot front" role="img" '
            f'aria-label="Utility against the best attack, one mark a run; the table below holds the same figures">'
            f'</div><div class="chips" id="front-{number}-chips"{hidden}>'
            f'<p class="hint">Show a run:</p>{chips}</div></div>'
            f'<aside class="panel{bare}" id="front-{number}-panel" aria-live="polite"></aside></div>'
        )
        return section(
            "Trade-off",
            f"Each mark is one run: what {'the release is good for' if rotated else 'others can do with the release'}, "
            "against what the best attack of the suite "
            "gets. Bars are 95 % intervals. A method’s line joins its runs that none of its own beats on both axes. "
            + (
                f"Point at a mark, or choose a run under the chart, to see {seen}."
                if len(group.runs) > 1
                else f"Beside the chart: {seen}."
            ),
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
        return f'<div class="chip-row"><span class="method">{escape(method)}</span><div>{buttons}</div></div>'

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
        self.boards.append(board.to_json())
        number = len(self.boards) - 1
        choice = select(board.choice, f"board-{number}-choice", [sheet.name for sheet in board.sheets])
        return f'{choice}<div class="board {board.kind}" id="board-{number}"></div>'

    def _space(self, group: Group) -> str:
        figures = [(run, figure) for run in group.runs if (figure := space(run)) is not None]
        if not figures:
            return ""
        start = self._start(group)
        first = next((i for i, (run, _) in enumerate(figures) if self.ids[run.name] == start), 0)
        self.spaces.append({"figures": [figure for _, figure in figures], "start": first})
        number = len(self.spaces) - 1
        choice = select("Run", f"space-{number}-choice", [run.title for run, _ in figures], first)
        label = escape(str(figures[0][1]["label"]))
        return section(
            "Released features",
            f"Up to 600 released records in their first three principal components, marked by {label}. "
            "Drag to turn. Groups that stand apart can be told apart by others; what this view does not separate may "
            "still be separable.",
            f'{choice}<div id="space-{number}" class="plot space" role="img" '
            f'aria-label="Three-dimensional scatter of released features, marked by {label}"></div>',
        )

    def _run(self, run: Run) -> Json:
        """The side panel of one run: heading, facts, and rows of pictures."""
        facts = []
        if run.use is not None:
            facts.append([metric_name(run.use.metric).capitalize(), measured(run.use)])
        for key in in_order(run.worst):
            score = run.worst[key]
            metric = metric_name(score.metric, score.threat)
            facts.append([title(key), f"{metric} {measured(score)}, {score.attack}"])
        missing = run.picture_attack is None and RECONSTRUCTION in run.worst
        few = {"most": _FEW} if run.gallery is not None and run.gallery.lists else {}
        return few | {
            "title": run.title,
            "facts": facts,
            "rows": self.album.rows(run),
            "kind": run.schema.kind,
            "absent": "No reconstructions were kept for this run." if missing else "",
        }


def _whose(groups: Sequence[Group]) -> str:
    """From which split the real records are that the page shows."""
    synthetic = {run.synthetic for group in groups for run in group.runs}
    if synthetic == {True}:
        return "of the owner’s split"
    return "of the victim split and the owner’s" if True in synthetic else "of the victim split"


def _verdict(group: Group, *, alone: bool) -> str:
    found: Verdict = verdict(group)
    first, *others = (f"{prose(text)}</p>" for text in found.lead)
    parts = [f'<p class="lead">{first}', *(f"<p>{text}" for text in others)]
    parts.append('<div class="rankings">' if found.rankings else "")
    for ranking in found.rankings:
        items = "".join(f"<li>{emphasised(item)}</li>" for item in ranking.items)
        notes = prose(" ".join(ranking.notes))
        parts.append(
            f'<div class="ranking"><p>{escape(ranking.heading)}</p><ol>{items}</ol><p class="notes">{notes}</p></div>'
        )
    parts.append("</div>" if found.rankings else "")
    parts += [f'<p class="warning"><b>Warning.</b> {escape(text)}</p>' for text in found.warnings]
    return _titled(group, "".join(parts), alone=alone)


def _titled(group: Group, body: str, *, alone: bool) -> str:
    return body if alone else f'<h3 class="data">{escape(group.data)}</h3>{body}'


def _explanations(groups: Sequence[Group]) -> str:
    threats = dict.fromkeys(score.threat for group in groups for run in group.runs for score in run.scores)
    items = "".join(f"<dt>{escape(title(t))}</dt><dd>{escape(threat(t).explanation)}</dd>" for t in threats)
    return f'<dl class="threats">{items}</dl>'


def _runs(groups: Sequence[Group]) -> str:
    """How to run each again, with its configuration."""
    return "".join(_again(run) for group in groups for run in group.runs)


def _again(run: Run) -> str:
    use = run.use
    facts = [f"seed {run.seed}"]
    facts += [f"{count(run.epochs, 'epoch')}"] if run.epochs else []
    facts += [f"scored on {count(use.n, 'record')}"] if use else []
    facts.append(f"records of shape {' × '.join(map(str, run.schema.shape))} ({run.schema.kind})")
    return (
        f"<details><summary><b>{escape(run.title)}</b> on {escape(run.data)} "
        f'<span class="facts">{escape(", ".join(facts))}</span></summary>'
        f'<pre class="command">{escape(again(run))}</pre><pre>{escape(run.config_text)}</pre></details>'
    )


def again(run: Run) -> str:
    """The commands that repeat a run: from the recorded configuration to new scores."""
    recorded = run.config.get("run", {})
    command, mechanism = str(recorded.get("command", "fit")), str(recorded.get("mechanism", run.mechanism))
    config = f"{run.name}/config.toml"
    first = ["sfumato", command, mechanism, "--config", config, "--out", "again"]
    return f"{shlex.join(first)}\nsfumato audit again\nsfumato report again"


def _versions(groups: Sequence[Group]) -> str:
    """Versions of all runs; where they differ, every value is listed."""
    values: dict[str, list[str]] = {}
    for group in groups:
        for run in group.runs:
            for name, value in run.env.items():
                if str(value) not in values.setdefault(str(name), []):
                    values[str(name)].append(str(value))
    if not values:
        return "<p>No run recorded its versions (env.json is missing).</p>"
    items = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(', '.join(v))}</dd></div>" for k, v in values.items())
    return f'<dl class="versions">{items}</dl>'


def _title(groups: Sequence[Group]) -> str:
    methods = list(dict.fromkeys(method for group in groups for method in group.methods))
    data = listed([group.data for group in groups])
    shown = listed(methods) if len(methods) <= 6 else f"{len(methods)} methods"
    return f"{shown} on {data}"


def _subtitle(groups: Sequence[Group]) -> str:
    runs = sum(len(group.runs) for group in groups)
    scores = sum(len(run.scores) for group in groups for run in group.runs)
    attacks = {score.attack for group in groups for run in group.runs for score in run.attacks}
    return f"{count(runs, 'audited run')}, {count(len(attacks), 'attack')}, {count(scores, 'score')}"


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

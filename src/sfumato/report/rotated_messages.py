"""Messages under secret keys: what the cloud sees, what attacks rebuild from it, and what a key is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.core.score import Score
from sfumato.core.threats import LIST, RECONSTRUCTION
from sfumato.report import plots
from sfumato.report.audited_runs import Floats, Gallery, Reading, Run, WrongKey, spread
from sfumato.report.guarantees import KINDS, one_in
from sfumato.report.page_values import Cell, MessagePictures, MessageRow, Passage, RunRow, Strip, Table, Wall, strip
from sfumato.report.pictures import heat, record_pictures
from sfumato.report.plots import Board, Figure, Mark, Reference, Style
from sfumato.report.score_tables import glance_cell
from sfumato.report.wording import count, listed, measured, metric_name, named, number

_RUNS = 3  # with pictures
_RECORDS, _CHANNELS = 4, 3  # of a message
_MANY = 4  # rows of a message, from which on less is drawn of each
_TURNS = {0.0: "0", math.pi / 4: "π/4", math.pi / 2: "π/2", 3 * math.pi / 4: "3π/4", math.pi: "π"}
_TICKS = {"tickvals": list(_TURNS), "ticktext": list(_TURNS.values())}
_MOST_NAMES = 8


def messages(runs: Sequence[Run]) -> Passage:
    """The components of a few channels of a few messages, beside the records that they were sent for."""
    tables = []
    for run, gallery in _pictured(runs):
        release = _components(gallery)
        tables += [_message(run, gallery, release)] if release is not None else []
    return Passage(
        "What the cloud sees",
        "On the left the record, then the d components of a few channels of the message sent for it, those with the "
        "largest values. Blue is below zero, orange above; each channel of each message has its own scale."
        if tables
        else "No run kept its messages.",
        tuple(tables),
    )


def rebuilt(runs: Sequence[Run]) -> Passage:
    """A wall for each run: what every attack rebuilt, and all guesses of the list decoder in rows as large."""
    about = (
        "The same records in every row of a wall. Each strategy has a single guess; the list decoder names as many "
        "records as share a message, all of which are shown, in no particular order."
    )
    walls = [_wall(run, gallery) for run, gallery in _pictured(runs) if gallery.recon or gallery.lists]
    if runs[0].schema.kind == "table":
        about, walls = "The records are table rows, which have no picture: no wall is drawn.", []
    elif not walls:
        about = "No run kept reconstructions."
    return Passage("What attackers rebuild", about, tuple(walls))


def key_table(runs: Sequence[Run]) -> Table:
    """One row per run: the promise, the error of the angle, and how often each attack names the right row."""
    attacks = dict.fromkeys(attack for run in runs for attack in run.primary("row"))
    titles = {attack: runs[0].called(attack)[0] for attack in attacks}
    rows = []
    for run in runs:
        angle = next(iter(run.primary("key").values()), None)
        cells = [_promise(run), glance_cell("Error of the angle", angle)]
        cells += [glance_cell(titles[attack], run.primary("row").get(attack)) for attack in attacks]
        rows.append(RunRow(run.mechanism, run.setting, tuple(cells)))
    return Table("glance", ("Run", "Promise", "Error of the angle", *titles.values()), tuple(rows))


def _promise(run: Run) -> Cell:
    guarantee = run.guarantee
    if guarantee.kind != "anonymity":
        return Cell("Promise", f"{KINDS[guarantee.kind]}: no row is promised to stay hidden")
    conditions = f"under {count(len(guarantee.conditions), 'condition')}"
    return Cell("Promise", badge=one_in(guarantee), after=conditions, link="listed below")


def _pictured(runs: Sequence[Run]) -> list[tuple[Run, Gallery]]:
    """A few runs with pictures: the one with the best accuracy for each number of rows and each variant."""
    best: dict[tuple[int, str], Run] = {}
    for run in runs:
        key = (run.d, str(run.params.get("variant", "")))
        if run.gallery is not None and (key not in best or run.use_value > best[key].use_value):
            best[key] = run
    return [(run, run.gallery) for run in spread(list(best.values()), _RUNS) if run.gallery is not None]


def _components(gallery: Gallery) -> Floats | None:
    """The messages as (records, d, channels, height, width); None where none were kept."""
    if gallery.release is None or len(gallery.release) != len(gallery.originals):
        return None
    release = np.nan_to_num(gallery.release[:_RECORDS])
    if release.ndim not in (3, 4, 5) or 0 in release.shape:
        return None
    shape = {3: (1, 1), 4: (release.shape[2], 1), 5: release.shape[2:4]}[release.ndim]
    return release.reshape(*release.shape[:2], *shape, release.shape[-1])


def _message(run: Run, gallery: Gallery, release: Floats) -> MessagePictures:
    """The record, and for each of a few channels all components."""
    d, channels, height, _ = release.shape[1:]
    largest = np.argsort(-np.square(release).mean(axis=(0, 1, 3, 4)), kind="stable")[:_CHANNELS]
    chosen = sorted(int(channel) for channel in largest)
    heads = [f"Channel {channel + 1} of {channels}" if channels > 1 else "All entries" for channel in chosen]
    originals = record_pictures(gallery.originals[:_RECORDS], run.schema)
    rows = []
    for i, (original, message) in enumerate(zip(originals, release, strict=True), 1):
        shown = tuple(
            _channel(message[:, channel], f"record {i}, {head.lower()}")
            for head, channel in zip(heads, chosen, strict=True)
        )
        rows.append(MessageRow(original, f"original record {i}", shown))
    kind = ("maps" if height > 1 else "strips") + (" many" if d > _MANY else " some" if d > 2 else "")
    size = " × ".join(str(side) for side in gallery.release.shape[1:]) if gallery.release is not None else ""
    facts = f"{count(d, 'component')}, a message of {size} numbers"
    return MessagePictures(run.title, facts, kind, ("Record", *heads), tuple(rows))


def _channel(components: Floats, alt: str) -> tuple[tuple[str, str], ...]:
    """One channel of a message: a picture of each of its d components, with what it shows."""
    limit = float(np.percentile(np.abs(components), 99))
    most = 28 if len(components) > _MANY else 56
    return tuple(
        (heat(component, limit, most=most), f"{alt}, component {j}") for j, component in enumerate(components, 1)
    )


def _wall(run: Run, gallery: Gallery) -> Wall:
    most = _RECORDS if run.d > _MANY else len(gallery.originals)

    def row(name: str, facts: list[str], records: Floats) -> Strip:
        pictures = record_pictures(records[:most], run.schema)
        return strip(name, " · ".join(facts), pictures, f"{run.title}, {name}, record")

    rows = [row("original", [], gallery.originals)]
    order = list(run.titles)  # as they were run
    for attack in sorted(gallery.recon, key=lambda name: order.index(name) if name in order else len(order)):
        name, how = run.called(attack)
        facts = [*([how] if how else []), *_got(run, RECONSTRUCTION, attack)]
        rows.append(row(name, facts, gallery.recon[attack]))
    for attack, guesses in gallery.lists.items():
        several = guesses.shape[1]
        name = run.called(attack)[0]
        facts = [f"best of {several}: {text}" for text in _got(run, LIST, attack)]
        rows += [row(f"{name}, guess {i + 1} of {several}", facts, guesses[:, i]) for i in range(several)]
    missing = [] if gallery.lists else ["the guesses of the list decoder were not kept"]
    missing += [] if gallery.recon else ["no single guess was kept"]
    return Wall(run.schema.kind, tuple(rows), run.title, listed(missing) if missing else "")


def _got(run: Run, threat: str, attack: str) -> list[str]:
    score = run.primary(threat).get(attack)
    return [] if score is None else [named(score)]


def key_errors(runs: Sequence[Run]) -> Board | None:
    """The error of the angle against that of a uniform guess, and the rate of each attack on rows against 1/d."""
    attacks = dict.fromkeys(s.attack for run in runs for s in run.attacks if s.threat in ("key", "row") and s.primary)
    if not attacks:
        return None
    looks = plots.styles(list(attacks))
    panels = [shown for shown in (_angles(runs, looks), _rows(runs, looks)) if shown is not None]
    return _board(
        "What is found out about the key",
        "The key turns the record into a secret direction. A uniform guess of it errs by π/2 on average; whoever finds "
        "the directions of all d records, but not which one is meant, by (1 − 1/d)·π/2. Right row: given the d records "
        "behind a message, how often is the one that it was sent for named? Guessing gets 1/d. Bars: 95 % intervals.",
        looks,
        plots.entry(plots.DASHED, plots.INK, "guessing"),
        panels,
    )


def key_worth(runs: Sequence[Run]) -> Board | None:
    """Accuracy against the angle between the keys, and with a key drawn uniformly; None where it was not measured."""
    found = [(run, run.wrong_key) for run in runs if run.wrong_key is not None]
    if not found:
        return None
    looks = plots.styles([run.title for run, _ in found])
    chance = Reference("majority guess", plots.DASHED, tuple(wrong.chance for _, wrong in found))
    return _board(
        "What a key is worth",
        "How often the answer is right if it is turned back with a key that is off by an angle: 0 is the right key. "
        "Whoever has no key at all can draw one uniformly. Bars are 95 % intervals.",
        looks,
        plots.entry(plots.DASHED, plots.INK, f"{chance.name} {chance.span('accuracy')}"),
        [_off_by(found, looks, chance), _drawn(found, looks, chance)],
    )


def _board(title: str, about: str, looks: Mapping[str, Style], line: Figure, panels: list[Figure]) -> Board:
    """A single sheet of panels; the key to it ends with ``line``."""
    key = [look.entry(name) for name, look in looks.items()]
    return Board(title, about, "curves", "", {"": {"key": [*key, line], "panels": panels}})


def _angles(runs: Sequence[Run], looks: Mapping[str, Style]) -> Figure | None:
    found = [(i, run, next(iter(run.primary("key").values()))) for i, run in enumerate(runs) if run.primary("key")]
    if not found:
        return None
    attack = found[0][2].attack
    marks = [Mark(float(i), score.value, score.ci, _told(run, "", score)) for i, run, score in found]
    across = _names(runs)
    uniform = Reference("uniform", plots.DASHED, (math.pi / 2,)).shape(across["range"])
    y = {"title": {"text": "error of the angle"}, "range": [0, math.pi + 0.1], **_TICKS}
    note = "higher is better for the owner (a uniform guess π/2 ≈ 1.571 rad)"
    traces = [plots.scatter(attack, marks, looks[attack])]
    return plots.panel("Error of the angle", note, traces, plots.panel_layout(across, y, [uniform]))


def _rows(runs: Sequence[Run], looks: Mapping[str, Style]) -> Figure | None:
    attacks = [name for name in looks if any(name in run.primary("row") for run in runs)]
    if not attacks:
        return None
    traces, ends = [], [0.0]
    for place, attack in enumerate(attacks):
        scores = [(i, run, run.primary("row").get(attack)) for i, run in enumerate(runs)]
        marks = [
            Mark(_beside(i, 0.18, place, len(attacks)), score.value, score.ci, _told(run, attack, score))
            for i, run, score in scores
            if score is not None
        ]
        ends += [mark.ci[1] for mark in marks]
        traces.append(plots.scatter(attack, marks, looks[attack]))
    guesses = {i: 1 / run.d for i, run in enumerate(runs) if run.d > 1}
    shapes = [Reference("", plots.DASHED, (guess,)).shape([i - 0.42, i + 0.42]) for i, guess in guesses.items()]
    y = {
        "title": {"text": metric_name("rate", "row")},
        "range": [0, min(1.03, 1.15 * max([*ends, *guesses.values()]))],
        "tickformat": ".0%",
    }
    guess = ", ".join(f"1/{d} = {number(1 / d, 'rate')}" for d in sorted({run.d for run in runs if run.d > 1}))
    note = f"lower is better for the owner (guessing {guess})" if guess else "lower is better for the owner"
    return plots.panel("Which row is the record", note, traces, plots.panel_layout(_names(runs), y, shapes))


def _off_by(found: Sequence[tuple[Run, WrongKey]], looks: Mapping[str, Style], chance: Reference) -> Figure:
    traces = []
    for run, wrong in found:
        look = looks[run.title]
        marks = [
            Mark(angle, reading.value, reading.ci, _told(run, f"off by {angle:.2f} rad", reading))
            for angle, reading in zip(wrong.angles, wrong.curve, strict=True)
        ]
        traces.append(plots.scatter(run.title, marks, look) | {"mode": "lines+markers", "line": look.line})
    ends = [-0.1, math.pi + 0.1]
    x = {"title": {"text": "angle between the keys"}, "range": ends, **_TICKS}
    return plots.panel(
        "Accuracy against the angle between the keys",
        "0 is the right key, π its opposite",
        traces,
        plots.panel_layout(x, _accuracies(found), [chance.shape(ends)]),
    )


def _drawn(found: Sequence[tuple[Run, WrongKey]], looks: Mapping[str, Style], chance: Reference) -> Figure:
    """Open marks for the right key, filled ones for a key drawn uniformly, over d."""
    traces = []
    for run, wrong in found:
        look = looks[run.title]
        same_d = [other.name for other, its in found if its.d == wrong.d]
        x = _beside(wrong.d, 0.16, same_d.index(run.name), len(same_d))
        right, drawn = wrong.curve[0], wrong.uniform
        mark = Mark(x, right.value, right.ci, _told(run, "right key", right))
        traces.append(plots.scatter(run.title, [mark], look) | {"marker": look.open_marker(9, 2)})
        mark = Mark(x, drawn.value, drawn.ci, _told(run, "key drawn uniformly", drawn))
        traces.append(plots.scatter(run.title, [mark], look))
    values = sorted({wrong.d for _, wrong in found})
    ends = [values[0] - 0.7, values[-1] + 0.7]
    x_axis = {"title": {"text": "d"}, "range": ends, "tickvals": values}
    return plots.panel(
        "Accuracy with a key drawn uniformly, against d",
        "filled: drawn uniformly; open: the right key",
        traces,
        plots.panel_layout(x_axis, _accuracies(found), [chance.shape(ends)]),
    )


def _beside(x: float, step: float, place: int, places: int) -> float:
    """Where one of several marks at the same x is drawn."""
    return x + step * (place - (places - 1) / 2)


def _told(run: Run, what: str, score: Score | Reading) -> str:
    return f"{run.title}\n{f'{what}: ' if what else ''}{measured(score)}"


def _names(runs: Sequence[Run]) -> Figure:
    """The x axis of charts with one place per run; many runs are told by pointing at them."""
    variants = [str(run.params.get("variant", "")) for run in runs]
    names = [f"d = {run.d}" if run.d > 1 else run.mechanism for run in runs]
    if len(set(variants)) > 1:
        names = [f"{name}\n{variant}" for name, variant in zip(names, variants, strict=True)]
    elif len(set(names)) < len(names):
        names = [run.setting.replace(", ", "\n") or name for name, run in zip(names, runs, strict=True)]
    few = len(runs) <= _MOST_NAMES
    return {"range": [-0.6, len(runs) - 0.4], "tickvals": list(range(len(runs))), "ticktext": names if few else []}


def _accuracies(found: Sequence[tuple[Run, WrongKey]]) -> Figure:
    ends = [reading.ci[1] for _, wrong in found for reading in (*wrong.curve, wrong.uniform)]
    high = max([*ends, *(wrong.chance for _, wrong in found)])
    return {"title": {"text": "accuracy"}, "range": [0, max(1.06 * high, 0.05)], "tickformat": ".0%"}

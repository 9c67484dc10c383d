"""Messages under secret keys: what the cloud sees, and what every strategy rebuilds from it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from sfumato.core.score import Score
from sfumato.core.threats import LIST, RECONSTRUCTION
from sfumato.report.audited_runs import Floats, Gallery, Run
from sfumato.report.html_pieces import part
from sfumato.report.picture_rows import wall_row
from sfumato.report.pictures import heat, record_pictures
from sfumato.report.score_tables import glance_cell
from sfumato.report.series import spread
from sfumato.report.wording import KINDS, count, listed, measured, metric_name, one_in

_RUNS = 3  # with pictures
_RECORDS, _CHANNELS = 4, 3  # of a message
_MANY = 4  # rows of a message, from which on less is drawn of each


def messages(runs: Sequence[Run]) -> str:
    """The components of a few channels of a few messages, beside the records that they were sent for."""
    found = [(run, kept) for run in _pictured(runs) if (kept := _components(run)) is not None]
    tables = [_message(run, *kept) for run, kept in found]
    return part(
        "What the cloud sees",
        "Left the record, then the d components of a few channels of the message sent for it, those with the largest "
        "values. Blue is below zero, orange above; each channel of each message has a scale of its own."
        if tables
        else "No run kept its messages.",
        "".join(tables),
    )


def rebuilt(runs: Sequence[Run]) -> str:
    """A wall for each run: what every strategy rebuilt, and all guesses of the list decoder in rows as large."""
    about = (
        "The same records in every row of a wall. Each strategy has a single guess; the list decoder names as many "
        "records as share a message, all of which are shown, in no order that means anything."
    )
    if runs[0].schema.kind == "table":
        about = "The records are table rows, which have no picture: no wall is drawn."
        return part("What attackers rebuild", about, "")
    kept = [run for run in _pictured(runs) if run.gallery is not None and (run.gallery.recon or run.gallery.lists)]
    walls = [_wall(run, run.gallery) for run in kept if run.gallery is not None]
    return part("What attackers rebuild", about if walls else "No run kept reconstructions.", "".join(walls))


def key_table(runs: Sequence[Run]) -> str:
    """One row a run: what is promised, the error of the angle, and how often each attack names the right row."""
    attacks = list(dict.fromkeys(score.attack for run in runs for score in run.attacks if score.threat == "row"))
    heads = ["Error of the angle", *(runs[0].called(attack)[0] for attack in attacks)]
    rows = []
    for run in runs:
        scores = [primary(run, "key"), *(primary(run, "row", attack) for attack in attacks)]
        cells = "".join(glance_cell(head, score) for head, score in zip(heads, scores, strict=True))
        setting = f'<span class="setting">{escape(run.setting)}</span>' if run.setting else ""
        rows.append(
            f'<tr><th scope="row">{escape(run.mechanism)}{setting}</th><td data-label="Promise">{_promise(run)}</td>'
            f"{cells}</tr>"
        )
    names = "".join(f'<th scope="col">{escape(head)}</th>' for head in ("Run", "Promise", *heads))
    return f'<table class="glance"><thead><tr>{names}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def primary(run: Run, threat: str, attack: str | None = None) -> Score | None:
    """The primary score of an attack of a kind, or of the first such attack."""
    scores = (s for s in run.attacks if s.primary and s.threat == threat and attack in (None, s.attack))
    return next(scores, None)


def _promise(run: Run) -> str:
    guarantee = run.guarantee
    if guarantee.kind != "anonymity":
        return f"{escape(KINDS[guarantee.kind])}: no row is promised to stay hidden"
    conditions = count(len(guarantee.conditions), "condition")
    return f'<span class="badge">{one_in(guarantee)}</span> under {conditions}, <a href="#guarantees">listed below</a>'


def _pictured(runs: Sequence[Run]) -> tuple[Run, ...]:
    """A few runs with pictures: of each number of rows and each variant the one with the best accuracy."""
    best: dict[tuple[int, str], Run] = {}
    for run in runs:
        if run.gallery is not None:
            key = (run.d, str(run.params.get("variant", "")))
            if key not in best or _accuracy(run) > _accuracy(best[key]):
                best[key] = run
    return spread(list(best.values()), _RUNS)


def _accuracy(run: Run) -> float:
    return run.use.value if run.use is not None else -1.0


def _components(run: Run) -> tuple[Gallery, Floats] | None:
    """The gallery, and its messages as (records, d, channels, height, width); None where no messages were kept."""
    gallery = run.gallery
    if gallery is None or gallery.release is None or len(gallery.release) != len(gallery.originals):
        return None
    release = np.nan_to_num(gallery.release[:_RECORDS])
    if release.ndim not in (3, 4, 5) or 0 in release.shape:
        return None
    shape = {3: (1, 1), 4: (release.shape[2], 1), 5: release.shape[2:4]}[release.ndim]
    return gallery, release.reshape(*release.shape[:2], *shape, release.shape[-1])


def _message(run: Run, gallery: Gallery, release: Floats) -> str:
    """A table: the record, and for each of a few channels all components."""
    d, channels, height, _ = release.shape[1:]
    largest = np.argsort(-np.square(release).mean(axis=(0, 1, 3, 4)), kind="stable")[:_CHANNELS]
    chosen = sorted(int(channel) for channel in largest)
    heads = [f"Channel {channel + 1} of {channels}" if channels > 1 else "All entries" for channel in chosen]
    originals = record_pictures(gallery.originals[:_RECORDS], run.schema)
    rows = []
    for i, (original, message) in enumerate(zip(originals, release, strict=True), 1):
        cells = [f'<td><img class="record" src="{original}" alt="original record {i}"></td>']
        for head, channel in zip(heads, chosen, strict=True):
            limit = float(np.percentile(np.abs(message[:, channel]), 99))
            images = "".join(
                f'<img src="{heat(row[channel], limit, most=28 if d > _MANY else 56)}" '
                f'alt="record {i}, {head.lower()}, component {j}">'
                for j, row in enumerate(message, 1)
            )
            cells.append(f'<td><div class="components">{images}</div></td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    kind = ("maps" if height > 1 else "strips") + (" many" if d > _MANY else " some" if d > 2 else "")
    names = "".join(f'<th scope="col">{escape(head)}</th>' for head in ("Record", *heads))
    size = " × ".join(map(str, gallery.release.shape[1:])) if gallery.release is not None else ""
    return (
        f'<p class="which"><b>{escape(run.title)}</b> <span class="facts">{count(d, "component")}, a message of {size} '
        f'numbers</span></p><div class="scroll bare"><table class="message {kind}"><thead><tr>{names}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _wall(run: Run, gallery: Gallery) -> str:
    most = _RECORDS if run.d > _MANY else len(gallery.originals)

    def row(name: str, facts: list[str], records: Floats) -> str:
        pictures = record_pictures(records[:most], run.schema)
        return wall_row(name, " · ".join(facts), pictures, f"{run.title}, {name}, record")

    rows = [row("original", [], gallery.originals)]
    order = list(run.titles)  # as they were run
    for attack in sorted(gallery.recon, key=lambda name: order.index(name) if name in order else len(order)):
        name, how = run.called(attack)
        rows.append(row(name, [*([how] if how else []), *_got(run, RECONSTRUCTION, attack)], gallery.recon[attack]))
    for attack, guesses in gallery.lists.items():
        several = guesses.shape[1]
        got = [f"best of {several}: {text}" for text in _got(run, LIST, attack)]
        rows += [
            row(f"{run.called(attack)[0]}, guess {i + 1} of {several}", got, guesses[:, i]) for i in range(several)
        ]
    missing = [] if gallery.lists else ["the guesses of the list decoder were not kept"]
    missing += [] if gallery.recon else ["no single guess was kept"]
    note = f' <span class="facts">{escape(listed(missing))}</span>' if missing else ""
    return (
        f'<p class="which"><b>{escape(run.title)}</b>{note}</p>'
        f'<div class="wall {escape(run.schema.kind)}">{"".join(rows)}</div>'
    )


def _got(run: Run, threat: str, attack: str) -> list[str]:
    score = primary(run, threat, attack)
    return [] if score is None else [f"{metric_name(score.metric)} {measured(score)}"]

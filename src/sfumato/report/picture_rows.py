"""Records in rows: every picture of the page kept once, and the sections that show the same records side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from sfumato.report.audited_runs import Floats, Group, Run
from sfumato.report.html_pieces import prose, section
from sfumato.report.pictures import payload_pictures, record_pictures
from sfumato.report.series import spread
from sfumato.report.wording import measured, metric_name, number

Json = dict[str, Any]

_LISTED = 4  # guesses of a list, beside the single guess
_DECODED = 6  # rows of decoded releases, beside the originals and the raw latent


class Album:
    """The pictures of all runs by a key, and for each run the rows that the page may show."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.pictures: dict[str, list[str]] = {}
        self._rows = {run.name: self._keep(run, i) for i, run in enumerate(runs)}

    @property
    def records(self) -> int:
        """How many real records are shown."""
        return sum(len(uris) for key, uris in self.pictures.items() if key.startswith("originals-"))

    def rows(self, run: Run) -> list[Json]:
        """Label and key of each row of pictures; none where nothing but the release was kept."""
        return self._rows[run.name]

    def key(self, run: Run, *labels: str) -> str:
        """The key of the first of these rows that the run has; "" where it has none."""
        keys = {row["label"]: str(row["key"]) for row in self.rows(run)}
        return next((keys[label] for label in labels if label in keys), "")

    def _keep(self, run: Run, place: int) -> list[Json]:
        gallery, attack = run.gallery, run.picture_attack
        if gallery is not None and gallery.synthetic is not None:
            self.pictures[f"synthetic-{place}"] = record_pictures(gallery.synthetic, run.schema)
            nearest = {"label": "nearest real", "key": self._originals(gallery.originals, run)}
            return [{"label": "synthetic", "key": f"synthetic-{place}"}, nearest]
        if gallery is None or (attack is None and gallery.decoded is None and not gallery.lists):
            return []
        rows = [{"label": "original", "key": self._originals(gallery.originals, run)}]
        release, decoded = gallery.release, gallery.decoded
        if release is not None and len(release) == len(gallery.originals):
            self.pictures[f"released-{place}"] = payload_pictures(release, run.schema)
            rows.append({"label": "released", "key": f"released-{place}"})
        if decoded is not None and not (release is not None and np.array_equal(decoded, release)):
            self.pictures[f"decoded-{place}"] = record_pictures(decoded, run.schema)
            rows.append({"label": "decoded", "key": f"decoded-{place}"})
        if attack is not None:
            self.pictures[f"rebuilt-{place}"] = record_pictures(gallery.recon[attack], run.schema)
            rows.append({"label": "rebuilt", "key": f"rebuilt-{place}", "attack": attack})
        for attack, guesses in gallery.lists.items():
            for i in range(min(_LISTED, guesses.shape[1])):
                self.pictures[f"{attack}-{place}-{i}"] = record_pictures(guesses[:, i], run.schema)
                label = f"guess {i + 1} of {guesses.shape[1]}"
                rows.append({"label": label, "key": f"{attack}-{place}-{i}", "attack": attack})
        return rows

    def _originals(self, originals: Floats, run: Run) -> str:
        key = f"originals-{hashlib.sha256(originals.tobytes()).hexdigest()[:12]}"
        if key not in self.pictures:
            self.pictures[key] = record_pictures(originals, run.schema)
        return key


def before_and_after(group: Group, album: Album) -> str:
    """Originals beside the raw latent and a few releases of each method, decoded; only pictures of the same records."""
    decoded = [run for run in group.runs if run.gallery is not None and run.gallery.decoded is not None]
    if group.schema.kind != "image" or not decoded:
        return ""
    first = album.key(decoded[0], "original")
    same = [run for run in decoded if album.key(run, "original") == first]
    rows = [wall_row("original", "", album.pictures[first], "original record")]
    methods = dict.fromkeys(run.mechanism for run in same)
    most = max(1, _DECODED // max(1, len({run.mechanism for run in same if run.defended})))
    for method in methods:
        for run in spread([run for run in same if run.mechanism == method], most):
            pictures = album.pictures[album.key(run, "decoded", "released")]
            rows.append(wall_row(run.title, _readings(run), pictures, f"{run.title}, decoded record"))
    return section(
        "Before and after",
        "The same records in every row: as they were, and decoded from what left. Decoding is part of the method, "
        "no attack: what cannot be seen here may still be read from the release. Figures: how often the best attack "
        "reads a private label, and how often others read the utility label.",
        f'<div class="wall image">{"".join(rows)}</div>',
    )


def wall(group: Group, album: Album) -> str:
    """What the best attack rebuilt from each method; nothing where no attack tried to."""
    if "reconstruction" not in group.threats:
        return ""
    shown = [group.representative(method) for method in group.methods]
    shown = [run for run in shown if run.picture_attack is not None]
    if group.schema.kind == "table":
        return section("Wall", "The records are table rows, which have no picture: no wall is drawn.", "")
    if not shown:
        return section("Wall", "No run kept reconstructions: no wall is drawn.", "")
    rows = [wall_row("original", "", album.pictures[album.key(shown[0], "original")], "original record")]
    for run in shown:
        score = run.worst.get("reconstruction")
        facts = [run.setting] if run.setting else []
        facts += [f"{metric_name(run.use.metric)} {measured(run.use)}"] if run.use else []
        facts += [f"{metric_name(score.metric)} {measured(score)}"] if score else []
        facts.append(f"by {run.picture_attack}")
        pictures = album.pictures[album.key(run, "rebuilt")]
        rows.append(wall_row(run.mechanism, " · ".join(facts), pictures, f"{run.mechanism}, rebuilt record"))
        rows += _guesses(run, album)
    several = len(group.runs) > len(group.methods)
    chosen = "the run with the best accuracy" if several else "its run"
    audio = " Pictures are log-mel spectra, low frequencies at the bottom." if group.schema.kind == "audio" else ""
    return section(
        "Wall of reconstructions",
        f"The same records in every row. For each method, {chosen} and what the best attack on it rebuilt.{audio}",
        f'<div class="wall {escape(group.schema.kind)}">{"".join(rows)}</div>',
    )


def _readings(run: Run) -> str:
    """What is read from a release: the private labels by the best attack, and the first utility label."""
    scores = [(label, run.leak(label)) for label in run.private]
    scores += [(label, run.reads(label)) for label in run.labels[:1]]
    facts = ["raw latent"] if run.traits.unprotected == "latent" else []
    facts += [f"{label} {number(s.value, s.metric)}" for label, s in scores if s is not None]
    return " · ".join(facts)


def _guesses(run: Run, album: Album) -> list[str]:
    """The guesses of a list, one row each, as large as the single guess."""
    score = run.worst.get("list-reconstruction")
    got = f"best of the list: {metric_name(score.metric)} {measured(score)}" if score else ""
    return [
        wall_row(
            f"{run.mechanism}, {row['label']}",
            " · ".join(fact for fact in (got, f"by {row['attack']}") if fact),
            album.pictures[row["key"]],
            f"{run.mechanism}, {row['label']}, record",
        )
        for row in album.rows(run)
        if row["label"].startswith("guess ")
    ]


def wall_row(name: str, facts: str, pictures: Sequence[str], alt: str) -> str:
    """A name with some facts, and pictures beside it."""
    images = "".join(f'<img src="{uri}" alt="{escape(alt)} {i}">' for i, uri in enumerate(pictures, 1))
    note = f'<span class="facts">{prose(facts)}</span>' if facts else ""
    return (
        f'<div class="wall-row"><div class="wall-name"><b>{escape(name)}</b>{note}</div>'
        f'<div class="wall-pictures">{images}</div></div>'
    )

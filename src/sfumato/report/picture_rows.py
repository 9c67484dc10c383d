"""Records in rows: every picture of the page kept once, and the sections that show the same records side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.core.threats import LIST, RECONSTRUCTION
from sfumato.report.audited_runs import Floats, Gallery, Group, Run, by_method, owner_gain, spread
from sfumato.report.page_values import Section, Strip, Wall, strip
from sfumato.report.pictures import payload_pictures, record_pictures
from sfumato.report.wording import named, number

Json = dict[str, Any]

_LISTED = 4  # guesses of a list, beside the single guess
_OTHERS_BYTES = 250_000  # on a page, of what attacks other than the best one rebuilt
_DECODED = 6  # rows of decoded releases, beside the originals and the raw latent


class Album:
    """The pictures of all runs by a key, and for each run the rows that the page may show."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.pictures: dict[str, list[str]] = {}
        self.left_out = 0
        self._others = _OTHERS_BYTES
        self._rows = {
            run.name: [] if run.gallery is None else self._keep(run, run.gallery, i) for i, run in enumerate(runs)
        }

    @property
    def records(self) -> int:
        """How many real records are shown."""
        return sum(len(uris) for key, uris in self.pictures.items() if key.startswith("originals-"))

    def rows(self, run: Run) -> list[Json]:
        """Label and key of each row of pictures; none where nothing but the release was kept."""
        return self._rows[run.name]

    def tiles(self, run: Run) -> list[Json]:
        """All rows of a run, with what every other attack rebuilt as long as there is room on the page.

        ``left_out`` counts the attacks for which there was none.
        """
        rows, gallery = self.rows(run), run.gallery
        if gallery is None:
            return rows
        worst = sorted(run.primary(RECONSTRUCTION).values(), key=owner_gain)
        got = {score.attack: named(score) for score in (*worst, *run.primary(LIST).values())}
        names = [*(score.attack for score in worst if score.attack in gallery.recon), *gallery.recon]
        for attack in dict.fromkeys(name for name in names if name != run.picture_attack):
            pictures = record_pictures(gallery.recon[attack], run.schema)
            self._others -= sum(map(len, pictures))
            if self._others < 0:
                self.left_out += 1
                continue
            rows = [*rows, self._row("rebuilt", f"{attack} of {run.name}", pictures) | {"attack": attack}]
        return [row | ({"got": got[row["attack"]]} if row.get("attack") in got else {}) for row in rows]

    def key(self, run: Run, *labels: str) -> str:
        """The key of the first of these rows that the run has; "" where it has none."""
        keys = {row["label"]: str(row["key"]) for row in self.rows(run)}
        return next((keys[label] for label in labels if label in keys), "")

    def _keep(self, run: Run, gallery: Gallery, place: int) -> list[Json]:
        attack, release, decoded = run.picture_attack, gallery.release, gallery.decoded
        if gallery.synthetic is not None:
            samples = self._row("synthetic", f"synthetic-{place}", record_pictures(gallery.synthetic, run.schema))
            return [samples, self._originals("nearest real", gallery.originals, run)]
        if attack is None and decoded is None and not gallery.lists:
            return []
        rows = [self._originals("original", gallery.originals, run)]
        if release is not None and len(release) == len(gallery.originals):
            rows.append(self._row("released", f"released-{place}", payload_pictures(release, run.schema)))
        if decoded is not None and (release is None or not np.array_equal(decoded, release)):
            rows.append(self._row("decoded", f"decoded-{place}", record_pictures(decoded, run.schema)))
        if attack is not None:
            pictures = record_pictures(gallery.recon[attack], run.schema)
            rows.append(self._row("rebuilt", f"rebuilt-{place}", pictures) | {"attack": attack})
        for attack, guesses in gallery.lists.items():
            for i in range(min(_LISTED, guesses.shape[1])):
                label, pictures = f"guess {i + 1} of {guesses.shape[1]}", record_pictures(guesses[:, i], run.schema)
                rows.append(self._row(label, f"{attack}-{place}-{i}", pictures) | {"attack": attack})
        return rows

    def _row(self, label: str, key: str, pictures: list[str]) -> Json:
        self.pictures[key] = pictures
        return {"label": label, "key": key}

    def _originals(self, label: str, originals: Floats, run: Run) -> Json:
        key = f"originals-{hashlib.sha256(originals.tobytes()).hexdigest()[:12]}"
        return self._row(label, key, self.pictures.get(key) or record_pictures(originals, run.schema))


def before_and_after(group: Group, album: Album) -> Section | None:
    """Originals beside the raw latent and a few releases of each method, decoded; only pictures of the same records."""
    decoded = [run for run in group.runs if run.gallery is not None and run.gallery.decoded is not None]
    if group.schema.kind != "image" or not decoded:
        return None
    first = album.key(decoded[0], "original")
    same = [run for run in decoded if album.key(run, "original") == first]
    rows = [strip("original", "", album.pictures[first], "original record")]
    most = max(1, _DECODED // max(1, len(by_method(run for run in same if run.defended))))
    for own in by_method(same).values():
        for run in spread(own, most):
            pictures = album.pictures[album.key(run, "decoded", "released")]
            rows.append(strip(run.title, _readings(run), pictures, f"{run.title}, decoded record"))
    return Section(
        "Before and after",
        "The same records in every row: as they were, and decoded from the release. Decoding is part of the method, "
        "not an attack: what cannot be seen here may still be read from the release. Figures: how often the best "
        "attack reads a private label, and how often others read the utility label.",
        (Wall("image", tuple(rows)),),
    )


def wall_of_reconstructions(group: Group, album: Album) -> Section | None:
    """What the best attack rebuilt from each method; nothing where no attack tried to."""
    if RECONSTRUCTION not in group.threats:
        return None
    shown = [group.representative(method) for method in group.methods]
    shown = [run for run in shown if run.picture_attack is not None]
    if group.schema.kind == "table":
        return Section("Wall", "The records are table rows, which have no picture: no wall is drawn.")
    if not shown:
        return Section("Wall", "No run kept reconstructions: no wall is drawn.")
    rows = [strip("original", "", album.pictures[album.key(shown[0], "original")], "original record")]
    for run in shown:
        facts = [run.setting] if run.setting else []
        facts += [named(score) for score in (run.use, run.worst.get(RECONSTRUCTION)) if score is not None]
        facts.append(f"by {run.picture_attack}")
        pictures = album.pictures[album.key(run, "rebuilt")]
        rows.append(strip(run.mechanism, " · ".join(facts), pictures, f"{run.mechanism}, rebuilt record"))
        rows += _guesses(run, album)
    several = len(group.runs) > len(group.methods)
    chosen = "the run with the best accuracy" if several else "its run"
    audio = " Pictures are log-mel spectra, low frequencies at the bottom." if group.schema.kind == "audio" else ""
    return Section(
        "Wall of reconstructions",
        f"The same records in every row. For each method, {chosen} and what the best attack on it rebuilt.{audio}",
        (Wall(group.schema.kind, tuple(rows)),),
    )


def _readings(run: Run) -> str:
    """What is read from a release: the private labels by the best attack, and the main utility label."""
    scores = [(label, run.leak(label)) for label in run.private]
    scores += [(label, run.reads(label)) for label in run.labels[:1]]
    facts = ["raw latent"] if run.raw_latent else []
    facts += [f"{label} {number(s.value, s.metric)}" for label, s in scores if s is not None]
    return " · ".join(facts)


def _guesses(run: Run, album: Album) -> list[Strip]:
    """The guesses of a list, one row each, as large as the single guess."""
    score = run.worst.get(LIST)
    got = [f"best of the list: {named(score)}"] if score else []
    rows = []
    for row in album.rows(run):
        if row["label"].startswith("guess "):
            name = f"{run.mechanism}, {row['label']}"
            facts = " · ".join([*got, f"by {row['attack']}"])
            rows.append(strip(name, facts, album.pictures[row["key"]], f"{name}, record"))
    return rows

"""The three sessions of docs/start.md, as they stand there, on small data: who reads one page gets to the end."""

from __future__ import annotations

import csv
import re
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from desk import TINY, Call
from PIL import Image, ImageDraw

import sfumato
from sfumato.auditing import effort

PAGE = Path(__file__).parents[2] / "docs" / "start.md"
MOST_COMMANDS = 10
QUICKER = replace(
    TINY, inverted=4, task_epochs=1, task_steps=40, candidates=20, repeats=1, averages=(), suspects=60
)  # fmt: skip
"""The same commands with attackers that hardly try: here it is asked whether the page leads to the end."""
LESS = {
    "fit": ["--set", "base=pca", "--set", "budget=2000"],
    "audit": ["--effort", "smoke"],
    "protect": ["--effort", "smoke", "--candidates", "2"],
}


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(effort._NAMED, "smoke", QUICKER)


def session(title: str) -> list[tuple[str, str]]:
    """The blocks under a heading of the page: language and text."""
    part = PAGE.read_text().split(f"### {title}\n")[1].split("\n#")[0]
    return re.findall(r"^```(\w+)\n(.*?)^```", part, re.MULTILINE | re.DOTALL)


def run_lines(text: str, call: Call) -> int:
    """Run the lines of a block one after the other; how many there were."""
    lines = text.strip().splitlines()
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "sfumato"
        ended = call(*words, *LESS.get(words[0], []))
        assert ended.code == 0, f"{line}\n{ended.out}\n{ended.err}"
    return len(lines)


def write_people(people: int = 2500) -> None:
    """Income follows from hours and schooling, sex shows in height and weight."""
    rng = np.random.default_rng(0)
    with Path("people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "height", "weight", "schooling", "hours", "income", "sex"])
        for person in range(people):
            sex, schooling, hours = rng.choice(["f", "m"]), rng.integers(8, 20), rng.integers(10, 60)
            height, weight = rng.normal((165, 62) if sex == "f" else (180, 84), (5, 6)).round()
            income = "high" if hours + 2 * schooling > 62 else "low"
            writer.writerow([f"p{person}", height, weight, schooling, hours, income, sex])


def draw_photos(people: int = 1000) -> None:
    """28 × 28 grey faces as PNG files, with ``labels.csv``."""
    rng = np.random.default_rng(0)
    folder = Path("photos")
    folder.mkdir()
    rows = []
    for person in range(people):
        glasses, smile = rng.integers(2), rng.integers(2)
        picture = Image.new("L", (28, 28), int(rng.integers(150, 250)))
        draw = ImageDraw.Draw(picture)
        x, y = rng.integers(11, 17), rng.integers(11, 17)
        draw.ellipse((x - 11, y - 12, x + 11, y + 12), fill=int(rng.integers(90, 180)))
        for eye in (x - 5, x + 5):
            draw.point((eye, y - 3), fill=0)
            if glasses:
                draw.ellipse((eye - 4, y - 7, eye + 4, y + 1), outline=0)
        draw.arc((x - 5, y + 1, x + 5, y + 9), *((20, 160) if smile else (200, 340)), fill=0)
        picture.save(folder / f"p{person}.png")
        rows.append([f"p{person}.png", f"p{person}", ("no", "yes")[smile], ("no", "yes")[glasses]])
    with (folder / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["file", "person", "smile", "glasses"], *rows])


@pytest.mark.slow
def test_a_table_becomes_a_gated_release(call: Call) -> None:
    write_people()
    ((_, text),) = session("From a table to a release that passed")
    assert run_lines(text, call) <= MOST_COMMANDS
    assert (Path("outbox") / "release" / "release.parquet").is_file()


@pytest.mark.slow
def test_pictures_leave_if_they_pass_and_only_then(call: Call) -> None:
    draw_photos()
    ((_, text),) = session("A folder of pictures with something to hide")
    *before, gate, release = text.strip().splitlines()
    assert run_lines("\n".join(before), call) + 2 <= MOST_COMMANDS
    assert (Path("runs") / "photos" / "report.html").is_file()
    judged, released = (call(*shlex.split(line)[1:]) for line in (gate, release))
    assert "attribute:smile" in judged.out and judged.code in (0, 4)
    assert released.code == judged.code
    assert (Path("outbox-photos") / "release.parquet").is_file() == (judged.code == 0)


def test_an_encoder_of_ones_own_is_audited(
    call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draw_photos()
    monkeypatch.setattr(sfumato, "audit_release", partial(sfumato.audit_release, effort=QUICKER))
    (_, code), (_, text) = session("Your own encoder")
    exec(compile(code, "docs/start.md", "exec"), {})
    assert "attribute:glasses: " in capsys.readouterr().out
    report, gate = text.strip().splitlines()
    assert run_lines(report, call) == 1 and Path("runs/encoder/report.html").is_file()
    judged = call(*shlex.split(gate)[1:])
    assert judged.code == 4 and "attribute:glasses" in judged.out  # nothing in this encoder hides anything

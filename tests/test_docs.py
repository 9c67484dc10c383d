"""The documentation does what it says: its code runs, its commands and links exist."""

from __future__ import annotations

import csv
import inspect
import re
import shlex
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import typer

from plugged import plug
from sfumato import auditing, mechanisms
from sfumato.cli.main import app
from sfumato.core.dataset import Splits
from sfumato.testing import TINY, AttackConformance, MechanismConformance

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)

HELP = {"-h", "--help"}


def blocks(page: Path, *languages: str) -> list[str]:
    """The fenced blocks of a page in one of these languages."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [text for language, text in found if language in languages]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def run_blocks(page: str) -> dict[str, Any]:
    """Execute the Python blocks of a page one after the other; the names they leave."""
    names: dict[str, Any] = {"__name__": page}
    found = blocks(ROOT / "docs" / page, "python")
    assert found, f"{page} has no Python any more"
    for number, text in enumerate(found, 1):
        exec(compile(text, f"{page}, block {number}", "exec"), names)
    return names


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages speak of, small; attackers that hardly try."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path / "sets"))
    monkeypatch.setattr(auditing, "SMOKE", TINY)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    rows = [
        {
            "person": f"p{i // 2}",
            "age": int(rng.integers(18, 80)),
            "hours": int(rng.integers(10, 60)),
            "job": ("clerk", "cook", "driver")[i % 3],
            "sex": ("f", "m")[int(rng.integers(2))],
            "income": ("low", "high")[int(rng.integers(2))],
        }
        for i in range(120)
    ]
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "sets" / "adult").mkdir(parents=True)
    for name in ("new", "large", "sets/adult/train", "sets/adult/test"):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
    samples = rng.normal(size=(40, 3 * 128)).astype(np.float32)
    sensor = {"samples": list(samples), "activity": ["walk", "sit"] * 20, "wearer": [f"w{i % 5}" for i in range(40)]}
    pq.write_table(pa.table(sensor), tmp_path / "sensor.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [
        *("guide.md", "data.md", "filter.md", "phase.md", "synth.md", "ars.md"),
        pytest.param("protect.md", marks=pytest.mark.slow),
    ],
)
def test_python_on_the_page_runs(page: str, desk: Path) -> None:
    run_blocks(page)


def keep(suite: object, folder: Path, **given: Any) -> int:
    """Call every test of a conformance suite, each in a folder of its own; how many there were."""
    tests = [test for name, test in inspect.getmembers(suite, inspect.ismethod) if name.startswith("test_")]
    for test in tests:
        own = folder / test.__name__
        own.mkdir()
        test(**{name: {**given, "tmp_path": own}[name] for name in inspect.signature(test).parameters})
    return len(tests)


def test_example_mechanism_runs_and_keeps_every_promise_of_a_mechanism(
    desk: Path, parity: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = ModuleType("sketch_example")
    example.__dict__.update(run_blocks("adding-a-mechanism.md"))
    monkeypatch.setitem(sys.modules, "sketch_example", example)
    plug(monkeypatch, "mechanisms", "sketch", "sketch_example:Sketch")
    make = lambda **params: example.Sketch(**{"epochs": 2, **params})  # noqa: E731
    rooms = {"make": make, "fitted": make().fit(parity.owner), "splits": parity}
    assert keep(MechanismConformance(), desk, **rooms, bad=np.nan) > 10


def test_example_attacks_run_and_keep_every_promise_of_an_attack(desk: Path, parity: Splits) -> None:
    attack = run_blocks("adding-an-attack.md")["NearestRecords"]()
    none, dnn = (mechanisms.mechanism_class(name)(epochs=1).fit(parity.owner) for name in ("none", "dnn"))
    assert keep(AttackConformance(), desk, attack=attack, undefended=none, plain=dnn, splits=parity) > 4


def calls(page: Path) -> Iterator[list[str]]:
    """Every call of ``sfumato`` on a page, in blocks and in running text, as words after the program's name."""
    lines = []
    for text in blocks(page, "sh", "bash", "shell"):
        lines += text.replace("\\\n", " ").splitlines()
    for text in blocks(page, "console"):
        lines += [line[2:] for line in text.replace("\\\n", " ").splitlines() if line.startswith("$ ")]
    lines += [text for text in re.findall(r"`([^`\n]+)`", prose(page)) if re.match(r"sfumato [a-z-]", text)]
    for line in lines:
        for part in re.split(r"\s(?:\|\|?|&&|;|>)\s", line):
            words = shlex.split(part, comments=True)
            if words and Path(words[0]).name == "sfumato":
                yield words[1:]


def complaint(words: list[str]) -> str | None:
    """What is wrong with a call, or None."""
    command: Any = typer.main.get_command(app)
    for word in words:
        if word.startswith("-"):
            known = {option for parameter in command.params for option in parameter.opts} | HELP
            if word.partition("=")[0] not in known:
                return f"'{command.name}' has no option {word}"
        elif hasattr(command, "commands"):
            if word not in command.commands:
                return f"'{command.name}' has no command {word}"
            command = command.commands[word]
    return None


@every_page
def test_every_command_and_option_shown_exists(page: Path) -> None:
    wrong = {" ".join(words): complaint(words) for words in calls(page) if complaint(words)}
    assert not wrong


def test_the_guide_shows_every_command() -> None:
    shown = {" ".join(words[:2]) for words in calls(ROOT / "docs" / "guide.md")}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for sub in getattr(command, "commands", {"": None}):
            assert any(call.startswith(f"{name} {sub}".strip()) for call in shown), f"{name} {sub} is not in guide.md"


@every_page
def test_every_make_target_shown_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join([*blocks(page, "sh", "console"), *re.findall(r"`(make [^`\n]+)`", prose(page))])
    for words in re.findall(r"^(?:\$ )?make ([a-z ]+)", text, re.MULTILINE):
        assert set(words.split()) <= targets


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@every_page
def test_relative_links_point_to_something(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    links = re.findall(r"\]\(([^)\s]+)[^)]*\)", text) + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name}: {link}"
        assert not anchor or file.suffix != ".md" or anchor in anchors(file), f"{page.name}: {link}"


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    assert all(f"({page.name})" in index for page in (ROOT / "docs").glob("*.md") if page.name != "index.md")


@every_page
def test_no_page_holds_a_path_of_somebodys_machine(page: Path) -> None:
    machine = r"(?<![\w.~$/-])/(?:work|home|root|tmp|mnt|opt|srv|var|Users|private)\b|\b[A-Z]:\\"
    assert not re.findall(machine, page.read_text())


def defaults_on_the_page() -> dict[tuple[str, str], str]:
    """(mechanism, parameter) → its default as defaults.md writes it, from every table with a column ``parameter``.

    A table without a column ``mechanism`` is about those in the heading above it. A row may name several mechanisms and
    several parameters, with as many defaults.
    """
    found: dict[tuple[str, str], str] = {}
    heading = ""
    columns: list[str] = []
    for line in (ROOT / "docs" / "defaults.md").read_text().splitlines():
        heading = line if line.startswith("#") else heading
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells or not columns:
            columns = cells
        elif "parameter" in columns and not set(line) <= set("|-: "):
            row = dict(zip(columns, cells, strict=True))
            owners, parameters = (
                re.findall("`([^`]+)`", text) for text in (row.get("mechanism", heading), row["parameter"])
            )
            assert owners and set(owners) <= set(mechanisms.names()), f"defaults.md: no such mechanism: {line}"
            for parameter, default in zip(parameters, row["default"].split(","), strict=True):
                for owner in owners:
                    assert (owner, parameter) not in found, f"defaults.md: {owner}, {parameter} has two rows"
                    found[owner, parameter] = default.strip()
    return found


def value_of(text: str) -> bool | float | str:
    """A default as it is written: 0.1, 1e-3, 2/28, true, `auto`, or empty."""
    words: dict[str, bool | str] = {"true": True, "false": False, "empty": "", "none": ""}
    return words[text] if text in words else text.strip("`") if text.startswith("`") else float(Fraction(text))


@pytest.mark.parametrize("name", mechanisms.names())
def test_every_default_is_explained_and_is_the_declared_one(name: str) -> None:
    page = {parameter: text for (owner, parameter), text in defaults_on_the_page().items() if owner == name}
    code = mechanisms.mechanism_class(name).parameters()
    wrong = [
        f"{name}, {parameter}: defaults.md says {page.get(parameter)}, the code {code.get(parameter)!r} (None: nothing)"
        for parameter in {**code, **page}
        if parameter not in page or parameter not in code or value_of(page[parameter]) != code[parameter]
    ]
    assert not wrong, "\n".join(wrong)

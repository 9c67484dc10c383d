"""The tutorials and the site: notebooks are whole, their commands exist, every page has its place."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml

from test_docs import complaint

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
ABOVE = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
MARKS = {"TUTORIALS", "API"}
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[Any]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def lines_of(cell: Any) -> list[str]:
    """The lines of a cell, with those that a backslash continues in one piece."""
    return str(cell.source).replace("\\\n", " ").splitlines()


def commands(path: Path) -> list[list[str]]:
    """Calls of ``sfumato`` in code (``!sfumato …``) and in the shell blocks of the text, as words after its name."""
    lines = [line[1:] for cell in cells(path, "code") for line in lines_of(cell) if line.startswith("!")]
    for cell in cells(path, "markdown"):
        for block in re.findall(r"^```sh\n(.*?)^```", cell.source, re.MULTILINE | re.DOTALL):
            lines += block.splitlines()
        lines += re.findall(r"`(sfumato [a-z][^`]*)`", cell.source)
    parts = [part for line in lines for part in re.split(r"\s*(?:;|\|\|?|&&|>)\s", line)]
    split = [shlex.split(part, comments=True) for part in parts]
    return [words[1:] for words in split if words and words[0] == "sfumato"]


def test_the_notebooks_are_there() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{number:02}" for number in range(1, len(NOTEBOOKS) + 1)]
    assert len(NOTEBOOKS) >= 6


@every_notebook
def test_a_notebook_is_valid_and_stores_no_output(path: Path) -> None:
    nbformat.validate(nbformat.read(path, as_version=4))
    for cell in cells(path, "code"):
        assert not cell.outputs and cell.execution_count is None
    first, last = nbformat.read(path, as_version=4).cells[0], nbformat.read(path, as_version=4).cells[-1]
    assert first.source.startswith("# ") and "## What next" in last.source


@every_notebook
def test_code_in_a_notebook_parses(path: Path) -> None:
    for cell in cells(path, "code"):
        ast.parse("\n".join("pass" if line.startswith("!") else line for line in lines_of(cell)))


@every_notebook
def test_commands_in_a_notebook_exist(path: Path) -> None:
    wrong = {" ".join(words): complaint(words) for words in commands(path) if complaint(words)}
    assert not wrong


@every_notebook
def test_links_in_a_notebook_lead_to_pages(path: Path) -> None:
    tutorials = {re.sub(r"^\d+-", "", other.stem) + ".md" for other in NOTEBOOKS}
    for cell in cells(path, "markdown"):
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", cell.source):
            if not re.match(r"https?:", link):
                assert link in tutorials or (ROOT / "docs" / link.removeprefix("../")).is_file(), link


def pages_of(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [page for entry in (nav if isinstance(nav, list) else nav.values()) for page in pages_of(entry)]


def test_the_site_lists_every_page_once_and_nothing_else() -> None:
    listed = pages_of(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    docs = ROOT / "docs"
    there = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md") if not page.name.endswith(".head.md")}
    assert len(listed) == len(set(listed))
    assert set(listed) - MARKS == there | ABOVE and set(listed) >= MARKS

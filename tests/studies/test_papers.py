"""What the papers say is written down once, word by word, and every item of a paper went somewhere."""

from __future__ import annotations

import ast
import importlib
import json
import math
import os
import re
from functools import cache
from pathlib import Path

import pytest

import sfumato.studies
from sfumato.core.errors import RuleBroken
from sfumato.studies import studies
from sfumato.studies.papers import PAPERS, Claim, Item, claim, paper

ROOT = Path(__file__).parents[2]
STUDIES = {study.name: study for study in studies()}
NAMES = set(STUDIES)
CLAIMS = [one for name in PAPERS for one in paper(name).claims.values()]
ITEMS = [(name, item) for name in PAPERS for item in paper(name).items]
_LINE = 200
"""Characters of a table's line, at most."""
TEXTS = {"ran": "000", "filter": "001", "phase": "002", "synth": "003", "ars": "004"}


@cache
def text_of(name: str) -> str:
    """The paper as text, without mark-up and line breaks."""
    folder = Path(os.environ.get("SFUMATO_PAPERS", ROOT.parent / "shared" / "papers"))
    files = sorted(folder.glob(f"{TEXTS[name]}_*.txt"))
    if not files:
        pytest.skip("the papers' texts are not here: set SFUMATO_PAPERS")
    return plain(files[0].read_text())


def plain(text: str) -> str:
    text = re.sub(r"\\(?:text|mathbf|mathcal|mathrm|mathit)\b", "", text)
    return re.sub(r"\s+", " ", re.sub(r"[$\\*{}~“”\"]", "", text).replace("’", "'").replace("- ", "")).strip()


def not_said(quote: str, words: str) -> list[str]:
    """The passages of a quote (between its …) that the text does not have, in their order."""
    missing, at = [], 0
    for passage in quote.split("…"):
        found = words.find(plain(passage), at)
        if found < 0:
            missing.append(passage.strip())
        else:
            at = found + len(plain(passage))
    return missing


@cache
def numbers_in(words: str) -> dict[str, list[int]]:
    """Every number of the text as it is written, and where."""
    found: dict[str, list[int]] = {}
    for one in re.finditer(r"(?<![\d.,])\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?(?![\d]|[.,]\d)", words):
        found.setdefault(one.group().rstrip(","), []).append(one.start())
    return found


def places(number: float, words: str) -> list[int]:
    """Where the text has the number, as it stands or in per cent, and not merely as a piece of another one."""
    values = (number, round(100 * number, 9))
    forms = {f"{value:.{digits}f}" for value in values for digits in range(7)}
    forms |= {f"{number:g}", f"{100 * number:g}", *(f"{number:.{d}e}" for d in range(4))}
    exact = {form for form in forms if float(form) in values}
    exact |= {f"{value:,.0f}" for value in values if value >= 1000 and value == round(value)}
    found = [place for form in exact for place in numbers_in(words).get(form, [])]
    return sorted({*found, *(max(words.find(form), 0) for form in scientific(number) if form in words)})


def is_printed(number: float, words: str) -> bool:
    return bool(places(number, words))


def apart(numbers: list[float], words: str) -> float:
    """How many characters lie between the first and the last of the numbers where they stand closest."""
    found = [places(number, words) for number in numbers]
    starts = sorted({place for one in found for place in one})
    ends = [[next((place for place in one if place >= start), math.inf) for one in found] for start in starts]
    return min((max(end) - start for start, end in zip(starts, ends, strict=True)), default=math.inf)


@pytest.mark.parametrize("one", CLAIMS, ids=lambda one: one.id)
def test_claim_is_quoted_word_by_word(one: Claim) -> None:
    assert not_said(one.quote, text_of(one.id.split("-")[0])) == []


@pytest.mark.parametrize("name", PAPERS)
def test_every_figure_is_printed_in_the_paper(name: str) -> None:
    words = text_of(name)
    made_up = [
        f"{table}, {row}, {column}: {number}"
        for table, rows in paper(name).figures.items()
        for row, columns in rows.items()
        for column, number in columns.items()
        if not is_printed(number, words)
    ]
    assert made_up == []


def test_made_up_words_and_numbers_are_caught() -> None:
    words = plain("**91.25%** on MNIST, with $\\epsilon = 3.45$ and 12,000 records; at $2.449 \\times 10^{-16}$.")
    assert not_said("on MNIST … records", words) == []
    assert not_said("on CIFAR … records", words) == ["on CIFAR"]
    assert not_said("records … on MNIST", words) == ["on MNIST"], "in another order these are other words"
    for number in (0.9125, 91.25, 3.45, 12_000.0, 2.449e-16):
        assert is_printed(number, words), number
    for number in (0.912, 0.25, 1.25, 3.4, 3.5, 12.0, 0.45):
        assert not is_printed(number, words), number


@pytest.mark.parametrize("name", PAPERS)
def test_figures_of_one_line_of_a_table_stand_in_one_line_of_the_papers(name: str) -> None:
    """A number from another line or column of the paper is a false quotation, too, though it is printed somewhere."""
    words = text_of(name)
    for table, rows in paper(name).figures.items():
        if table.startswith("Table"):
            for row, columns in rows.items():
                assert apart(list(columns.values()), words) < _LINE, f"{table}, {row}"


def test_number_of_another_line_is_caught() -> None:
    words = "LeNet 20.78 24.3 0.91 " + "and so on " * 30 + "ResNet 12.5 14.7 0.88"
    assert apart([20.78, 24.3, 0.91], words) < _LINE < apart([20.78, 24.3, 0.88], words)
    assert apart([20.78, 24.4], words) == math.inf


def scientific(number: float) -> set[str]:
    """2.449e-16 as a paper sets it: 2.449 × 10^-16."""
    mantissa, exponent = f"{number:.6e}".split("e")
    return {f"{float(mantissa):g} times 10^{int(exponent)}"}


@pytest.mark.parametrize("one", CLAIMS, ids=lambda one: one.id)
def test_claim_is_put_to_a_study_or_shown_by_a_test(one: Claim) -> None:
    assert one.where and one.asks
    assert set(one.studies) <= NAMES, f"unknown study in {one.id}: {set(one.studies) - NAMES}"
    assert one.studies or one.check, f"nothing shows whether {one.id} holds"
    assert bool(one.flaw) <= bool(one.check), f"{one.id}: a flaw needs a test that shows it"
    if one.check:
        file, test = one.check.split("::")
        assert f"def {test}(" in (ROOT / file).read_text(), f"{one.check} does not exist"


@pytest.mark.parametrize(("name", "item"), ITEMS, ids=[f"{name}-{item.where}" for name, item in ITEMS])
def test_item_of_a_paper_went_somewhere(name: str, item: Item) -> None:
    assert item.says
    assert item.code or item.studies or item.note, f"{name}, {item.where}: a blank"
    assert set(item.studies) <= NAMES
    assert not item.data or all(item.data in STUDIES[one].data for one in item.studies)
    assert set(item.claims) <= set(paper(name).claims)
    for place in item.code:
        module, _, member = place.partition(":")
        found = importlib.import_module(module)
        for part in filter(None, member.split(".")):
            found = getattr(found, part)


@pytest.mark.parametrize("study", studies(), ids=lambda study: study.name)
def test_study_names_only_claims_that_a_paper_makes(study: sfumato.studies.Study) -> None:
    for id in study.claims:
        assert study.name in claim(id).studies, f"{id} does not name {study.name} as its study"


def test_every_claim_of_a_study_knows_it() -> None:
    named = {(one.id, study) for one in CLAIMS for study in one.studies}
    told = {(id, study.name) for study in studies() for id in study.claims}
    assert named == told


def test_no_study_quotes_a_number_of_its_own() -> None:
    """``paper=`` is never given a number that stands in the code: it comes from the paper's table."""
    for file in Path(sfumato.studies.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "paper":
                assert not isinstance(node.value, ast.Constant) or node.value.value is None, (
                    f"{file}:{node.value.lineno}"
                )


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "results").glob("*-*.json")), ids=lambda file: file.stem)
def test_stored_figures_of_the_paper_are_in_its_table(file: Path) -> None:
    result = json.loads(file.read_text())
    printed = {
        number
        for rows in paper(result["study"].split("-")[0]).figures.values()
        for columns in rows.values()
        for number in columns.values()
    }
    for row in result["rows"]:
        assert row["paper"] is None or any(abs(row["paper"] - one) < 1e-9 for one in printed), row["name"]


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "results").glob("*-*.json")), ids=lambda file: file.stem)
def test_stored_verdict_is_about_a_claim_and_follows_from_the_interval(file: Path) -> None:
    from sfumato.studies.verdicts import Asked, verdict

    result = json.loads(file.read_text())
    for row in result["rows"]:
        assert (row["verdict"] is None) == (row["claim"] is None), row["name"]
        if row["claim"] is None:
            continue
        assert result["study"] in claim(row["claim"]).studies
        low, high = ([row["ours"]] * 2 if row["exact"] else row["ci"]) or (None, None)
        ends = None if low is None and high is None else (low, high if high is not None else math.inf)
        asked = Asked(row["claim"], setting=row["setting"], **row["asked"])
        scale = "" if row["exact"] else result["scale"]
        assert row["verdict"] == verdict(asked, ends, scale), row["name"]
        assert row["exact"] or ends is None or ends[0] < ends[1], f"{row['name']}: no interval"


def test_figure_that_a_paper_does_not_print_is_refused() -> None:
    with pytest.raises(RuleBroken, match="no figure"):
        paper("ran").figure("Table 99", "x", "y")
    with pytest.raises(RuleBroken, match="no paper"):
        claim("nobody-said")

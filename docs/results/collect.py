"""Copy finished studies here, and write the pages that follow from them.

python docs/results/collect.py runs/ran-mnist-cpu …   (folders that ``sfumato reproduce`` filled; none: pages alone)

    results/PAPER.md   every table, under what stands in PAPER.head.md
    claims.md          every claim of the papers with its status
    coverage.md        every equation, algorithm, table and figure: code, study, status
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from sfumato.studies.papers import PAPERS, Claim, Item, Paper, claim, paper
from sfumato.studies.verdicts import OPEN, Status, statuses

HERE = Path(__file__).parent
Result = dict[str, Any]


def main(folders: list[str]) -> None:
    for folder in map(Path, folders):
        for file in [one for name in PAPERS for one in folder.glob(f"{name}-*.json")]:
            keep(file)
    for path, text in pages().items():
        path.write_text(text)


def keep(file: Path) -> None:
    """Copy one finished study and its picture."""
    result = json.loads(file.read_text())
    if "study" not in result:
        return  # a finished part of one
    result.pop("report", None)
    name = f"{result['study']}-{result['data']}"
    if result.get("picture"):
        shutil.copyfile(file.parent / result["picture"], HERE / f"{name}.png")
        result["picture"] = f"{name}.png"
    (HERE / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")


def pages() -> dict[Path, str]:
    """Path → text of every page that follows from the stored results."""
    stored = {name: [json.loads(path.read_text()) for path in sorted(HERE.glob(f"{name}-*.json"))] for name in PAPERS}
    made = {}
    for name, results in stored.items():
        tables = "\n".join(line for result in results for line in section(result))
        made[HERE / f"{name}.md"] = (HERE / f"{name}.head.md").read_text() + "\n" + tables
    made[HERE.parent / "claims.md"] = claims_page(stored)
    made[HERE.parent / "coverage.md"] = coverage_page(stored)
    return made


def section(result: Result) -> list[str]:
    """One study: the paper's words, ours, the command, the picture and the table."""
    said = [claim(one) for one in result["claims"]]
    seeds = ("seed " if len(result["seeds"]) == 1 else "seeds ") + ", ".join(map(str, result["seeds"]))
    limit = "" if result.get("limit") is None else f", at most {result['limit']:,} records"
    picture = [f"![{result['study']} on {result['data']}]({result['picture']})", ""] if result.get("picture") else []
    return [
        f"## {result['study']} on {result['data']}",
        "",
        *(line for one in said for line in (f"> {one.where}: “{one.quote}”", ">")),
        *([] if not said else [""]),
        result["about"],
        "",
        f"`{result['command']}` — {result['seconds'] / 60:.0f} min on two cores, {seeds}{limit}; {measured(result)}.",
        "",
        *picture,
        "| | metric | paper | ours | 95 % interval | records (people) | most frequent answer | verdict |",
        "|---|---|---|---|---|---|---|---|",
        *(line_of(row) for row in result["rows"]),
        "",
    ]


def measured(result: Result) -> str:
    """By which version."""
    if result.get("commit") is None:
        return "measured with an earlier version"
    return f"version {result['version']}, commit {result['commit']}, {result['date']}"


def line_of(row: dict[str, Any]) -> str:
    cells = (
        row["name"] + ("" if row["seeds"] == 1 else f" (mean of {row['seeds']} seeds)"),
        row["metric"],
        figure(row["paper"]),
        figure(row["ours"]),
        interval(row),
        count(row),
        figure(row["majority"]),
        verdict(row),
    )
    return "| " + " | ".join(cell(one) for one in cells) + " |"


def verdict(row: dict[str, Any]) -> str:
    if row["verdict"] is None:
        return ""
    whose = " (worst attacker)" if row["setting"] == "adaptive" else ""
    why = row["asked"]["unless"]
    return f"{row['verdict']}{whose}" + (f": {why}" if why else "")


def interval(row: dict[str, Any]) -> str:
    if row["ci"] is None:
        return "exact" if row["exact"] else ""
    low, high = row["ci"]
    if low is None or high is None:  # a bound: nothing is known of the other end
        return f"≥ {figure(low)}" if high is None else f"≤ {figure(high)}"
    digits = 4
    while figure(low, digits) == figure(high, digits) and low != high and digits < 9:
        digits += 1
    return f"{figure(low, digits)} … {figure(high, digits)}"


def count(row: dict[str, Any]) -> str:
    if row["n"] is None:
        return ""
    return f"{row['n']:,}" if row["people"] in (None, row["n"]) else f"{row['n']:,} ({row['people']:,})"


def figure(value: float | None, digits: int = 4) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


_CLAIMS_HEAD = """# Claims of the papers

Every claim of the five papers, in the paper's words, with what our figures say about it. This page follows from the
stored results (`python docs/results/collect.py`); all rows, pictures and commands are on the results pages. Where each
equation, table and figure of the papers went is on the page on [coverage](coverage.md).

- *holds* and *does not hold* need an interval that lies wholly on one side of what the claim asks.
- *holds in the paper's setting, but not under an adaptive attacker*: it holds for the paper's attacker, not for the
  worst of our suite.
- *proof does not go through*: a test of this repository shows where it breaks.
- *holds, shown by a test*: it is about what the code computes, not about figures; the test is named as the command.
- *not settled at this scale*: the interval holds both answers, the run is too small to compare with the paper's, or it
  has not been measured yet. What an adaptive attacker breaks is not settled where the paper's own setting is not.
"""


def claims_page(stored: dict[str, list[Result]]) -> str:
    lines = [_CLAIMS_HEAD]
    for name in PAPERS:
        said = paper(name)
        lines += [
            f"## `{name}`",
            "",
            f"“{said.title}” ({said.authors}). [All results](results/{name}.md)",
            "",
            "| claim | status | figure | 95 % interval | command |",
            "|---|---|---|---|---|",
            *(claim_line(one, stored[name]) for one in said.claims.values()),
            "",
        ]
    return "\n".join(lines)


def claim_line(one: Claim, results: list[Result]) -> str:
    found = statuses(one, results)
    decided = next((status for status in found if status.row is not None), None)
    row = None if decided is None else decided.row
    shown = "" if row is None else f"{row['name']}: {figure(row['ours'])} {row['metric']}"
    if len(found) > 1 and decided is not None:
        shown = f"{decided.data}: {shown}"
    ends = "" if row is None else interval(dict(row))
    command = command_of(one, decided)
    return "| " + " | ".join(map(cell, (f"“{one.quote}” ({one.where})", said(one, found), shown, ends, command))) + " |"


def said(one: Claim, found: list[Status]) -> str:
    """The status, and what was found beside it; by data set where they differ."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for status in found:
        kinds.setdefault((status.status, f": {status.remark}" if status.remark else ""), []).append(status.data)
    if len(kinds) == 1:
        ((only, beside),) = kinds
        where = ", ".join(filter(None, kinds[only, beside]))
        unmeasured = "; not measured yet" if only == OPEN and not where else ""
        return (
            f"**{only}**"
            + (f" ({where})" if where else "")
            + unmeasured
            + beside
            + (f": {one.flaw}" if one.flaw else "")
        )
    return "; ".join(f"**{kind}** ({', '.join(data)}){beside}" for (kind, beside), data in kinds.items())


def command_of(one: Claim, decided: Status | None) -> str:
    if decided is not None and decided.result is not None:
        return f"`{decided.result['command']}`"
    if one.studies:
        return f"`sfumato reproduce {one.studies[0]}`"
    return f"`pytest {one.check}`" if one.check else ""


_COVERAGE_HEAD = """# From the papers to the code

Every equation, algorithm, table and figure of the five papers: where it is in the code, which study runs it
(`sfumato reproduce STUDY`), and what came of it. Like [claims](claims.md) it follows from the stored results
(`python docs/results/collect.py`).
"""


def coverage_page(stored: dict[str, list[Result]]) -> str:
    lines = [_COVERAGE_HEAD]
    for name in PAPERS:
        said = paper(name)
        lines += [
            f"## `{name}`",
            "",
            f"“{said.title}” ({said.authors})",
            "",
            "| in the paper | what it says | code | study | status |",
            "|---|---|---|---|---|",
            *(item_line(said, item, stored[name]) for item in said.items),
            "",
        ]
    return "\n".join(lines)


def item_line(said: Paper, item: Item, results: list[Result]) -> str:
    code = ", ".join(f"`{one.removeprefix('sfumato.')}`" for one in item.code)
    studies = ", ".join(f"`{one}`" for one in item.studies)
    cells = (item.where, item.says, code or "–", studies or "–", item_status(said, item, results))
    return "| " + " | ".join(map(cell, cells)) + " |"


def item_status(said: Paper, item: Item, results: list[Result]) -> str:
    """What came of its claims; without any, whether it was run; and the note."""
    if item.data:
        results = [result for result in results if result["data"] == item.data]
    found = list(dict.fromkeys(s.status for one in item.claims for s in statuses(said.claims[one], results)))
    if not found and item.studies:
        run = {result["study"] for result in results}
        found = ["run" if all(one in run for one in item.studies) else "can be run; not measured yet"]
    if not found and item.code:
        found = ["in the code"]
    return "; ".join(filter(None, ["; ".join(found), item.note]))


if __name__ == "__main__":
    main(sys.argv[1:])

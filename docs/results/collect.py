"""Copy finished studies here and write the results page.

python docs/results/collect.py runs/ran-mnist-cpu …   (folders that ``sfumato reproduce`` filled)

A study belongs to the paper before its first dash; ``PAPER.head.md`` is what stands above its tables in ``PAPER.md``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAPERS = ("ran", "filter", "phase", "synth", "ars")
VERDICT = {True: "yes", False: "**no**", None: ""}


def figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def section(result: dict[str, Any]) -> list[str]:
    rows = [
        f"| {row['name']} | {row['metric']} | {figure(row['paper'])} | {figure(row['ours'])} "
        f"| {figure(row['ci'][0])} … {figure(row['ci'][1])} | {VERDICT[row['holds']]} |"
        for row in result["rows"]
    ]
    seeds = ("seed " if len(result["seeds"]) == 1 else "seeds ") + ", ".join(map(str, result["seeds"]))
    call = f"sfumato reproduce {result['study']} --data {result['data']} --scale {result['scale']}"
    return [
        f"## {result['study']} on {result['data']}",
        "",
        f"The paper: *{result['statement']}*",
        "",
        f"`{call}` — {result['seconds'] / 60:.0f} min on two cores, {seeds}.",
        "",
        "| | metric | paper | ours | 95 % interval | holds |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
    ]


def main(folders: list[str]) -> None:
    for folder in folders:
        for file in [one for paper in PAPERS for one in Path(folder).glob(f"{paper}-*.json")]:
            result = json.loads(file.read_text())
            if "study" not in result:
                continue  # a finished part of one
            result.pop("report", None)
            (HERE / f"{result['study']}-{result['data']}.json").write_text(json.dumps(result, indent=2) + "\n")
    for paper in PAPERS:
        studies = [json.loads(path.read_text()) for path in sorted(HERE.glob(f"{paper}-*.json"))]
        text = (HERE / f"{paper}.head.md").read_text()
        tables = "\n".join(line for study in studies for line in section(study))
        (HERE / f"{paper}.md").write_text(text + "\n" + tables)


if __name__ == "__main__":
    main(sys.argv[1:])

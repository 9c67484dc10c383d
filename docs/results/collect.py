"""Copy finished studies here and write the results page.

python docs/results/collect.py runs/ran-mnist-cpu …   (folders that ``sfumato reproduce`` filled)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
VERDICT = {True: "yes", False: "**no**", None: ""}


def figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def section(result: dict[str, Any]) -> list[str]:
    rows = [
        f"| {row['name']} | {row['metric']} | {figure(row['paper'])} | {figure(row['ours'])} "
        f"| {figure(row['ci'][0])} … {figure(row['ci'][1])} | {VERDICT[row['holds']]} |"
        for row in result["rows"]
    ]
    call = f"sfumato reproduce {result['study']} --data {result['data']} --scale {result['scale']}"
    return [
        f"## {result['study']} on {result['data']}",
        "",
        f"The paper: *{result['statement']}*",
        "",
        f"`{call}` — {result['seconds'] / 60:.0f} min on two cores, seed {result['seeds'][0]}.",
        "",
        "| | metric | paper | ours | 95 % interval | holds |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
    ]


def main(folders: list[str]) -> None:
    for folder in folders:
        for file in Path(folder).glob("ran-*.json"):
            result = json.loads(file.read_text())
            del result["report"]
            (HERE / f"{result['study']}-{result['data']}.json").write_text(json.dumps(result, indent=2) + "\n")
    studies = [json.loads(path.read_text()) for path in sorted(HERE.glob("ran-*.json"))]
    text = (HERE / "ran.head.md").read_text()
    (HERE / "ran.md").write_text(text + "\n" + "\n".join(line for study in studies for line in section(study)))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Measure every study and collect what came out: ``make results``.

python docs/results/measure.py [STUDY …] [--scale cpu] [--list]

Runs are kept in ``runs/results-SOURCE``, where SOURCE names the committed state of ``src``: an interrupted call goes on
where it stopped, and no row mixes two versions of the code. What cannot be measured (most often because its data are
not on this machine) is named at the end; the other studies are measured all the same.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import collect

from sfumato.core import compute
from sfumato.core.errors import SfumatoError, unknown
from sfumato.data.download import at_hand
from sfumato.data.registry import REGISTRY, ByHand, entry
from sfumato.studies import SCALES, Measurement, Study, run_study, studies

ROOT = Path(__file__).parents[2]
STAND_IN = "digits"
"""The set inside the package: studies run on it where the paper's are not at hand. Not measured beside those."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="measure.py", description="Measure studies and rebuild the results pages.")
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="default: all of them")
    parser.add_argument("--scale", choices=SCALES, default="cpu")
    parser.add_argument("--list", action="store_true", help="print what would be measured, and stop")
    options = parser.parse_args(arguments)
    try:
        every = list(wanted(options.studies))
        if options.list:
            print("\n".join(f"{study.name} on {data}" for study, data in every))
            return 0
        home = ROOT / "runs" / f"results-{source()}"
    except SfumatoError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    failed = [
        line
        for number, (study, data) in enumerate(every, 1)
        if (line := one(study, data, options.scale, home, f"{number}/{len(every)}"))
    ]
    collect.main([])
    for line in failed:
        print(f"not measured: {line}", file=sys.stderr)
    return 1 if failed else 0


def wanted(names: list[str]) -> Iterator[tuple[Study | Measurement, str]]:
    """Every study of these names, or of all, on each of its data sets that can be had."""
    known = {study.name: study for study in studies()}
    for name in names or known:
        if name not in known:
            raise unknown("study", name, known)
        first, *others = known[name].data
        yield from (
            (known[name], data) for data in (first, *(each for each in others if each != STAND_IN and there(each)))
        )


def there(data: str) -> bool:
    """Whether a set can be had: it is at hand, or somebody offers it."""
    return data not in REGISTRY or not isinstance(entry(data).source, ByHand) or bool(at_hand(entry(data)))


def one(study: Study | Measurement, data: str, scale: str, home: Path, number: str) -> str | None:
    """Measure one study on one data set and keep it; why not, if it cannot be done."""
    out = home / f"{study.family}-{data}-{scale}"
    what = f"{study.name} on {data}"
    print(f"{number} {what}", flush=True)
    try:
        if not (out / f"{study.name}.json").exists():
            with compute.using(compute.Compute(jobs=compute.cores())):
                run_study(study.name, data=data, scale=scale, out=out, say=lambda line: print(f"  {line}", flush=True))
    except SfumatoError as error:
        return f"{what}: {error}"
    collect.keep(out / f"{study.name}.json")
    return None


def source() -> str:
    """A name for the committed state of ``src``, the same while nothing in it changes."""
    changed = _git("status", "--porcelain", "--", "src")
    tree = _git("rev-parse", "--short=10", "HEAD:src")
    if changed is None or tree is None:
        raise SfumatoError("results name the commit that they were measured with: run this in a git checkout.")
    if changed:
        raise SfumatoError("src differs from the last commit, so no row could name its version: commit first.")
    return tree


def _git(*arguments: str) -> str | None:
    found = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Mechanisms side by side on one data set: what a receiver can still do, and what is read of the private label.

    python examples/compare.py notes.npz --x v --id note --utility topic --private gender none leace filter gaussian

Each mechanism is fitted on the owner's records, attacked by all probes of an audit at the usual effort and, with
--reidentify, by all attacks that look for the record; one line of a Markdown table each. Settings follow the name, and
a base may be another mechanism with settings of its own: filter:budget=600, "filter:base=dnn(epochs=20)". A run folder
that was fitted on the same records is taken as it is.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import sfumato
from sfumato.auditing import CPU, Controls, audit
from sfumato.mechanisms import mechanism_class

HEAD = ("mechanism", "utility: accuracy", "raw records", "private: AUROC", "by", "re-identified", "seconds")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("data")
    asked.add_argument("mechanisms", nargs="+")
    asked.add_argument("--x", action="append")
    asked.add_argument("--id")
    asked.add_argument("--utility", required=True)
    asked.add_argument("--private", required=True)
    asked.add_argument("--limit", type=int)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--reidentify", action="store_true")
    asked.add_argument("--controls", type=Path, help="keep here what raw records give, for the next call")
    given = asked.parse_args()
    torch.set_num_threads(1)
    splits = sfumato.load_splits(
        given.data,
        x=given.x,
        id=given.id,
        utility=[given.utility],
        private=[given.private],
        limit=given.limit,
        seed=given.seed,
    )
    threats = ("attribute", "reidentification") if given.reidentify else ("attribute",)
    effort, controls = replace(CPU, threats=threats), Controls(given.controls)
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD), flush=True)
    for words in given.mechanisms:
        started = time.perf_counter()
        run = Path(words)
        fitted = sfumato.load_run(run) if run.is_dir() else made(*words.split(":"), owner=splits.owner, seed=given.seed)
        seconds = time.perf_counter() - started
        found = audit(fitted, splits, effort=effort, seed=given.seed, controls=controls)
        print(f"| {' | '.join(row(words, found, seconds))} |", flush=True)


def made(name: str, *settings: str, owner: sfumato.Dataset, seed: int) -> Any:
    """The mechanism of that name with these settings, fitted."""
    params: dict[str, Any] = {"seed": seed}
    for key, value in (one.split("=", 1) for one in settings):
        of, bracket, inside = value.partition("(")
        if bracket:
            params[key] = made(of, *inside.rstrip(")").split(","), owner=owner, seed=seed)
        else:
            params[key] = read(value)
    return mechanism_class(name)(**params).fit(owner)


def read(text: str) -> Any:
    """A parameter as it is typed: a number, true or false, or a text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def row(words: str, found: Any, seconds: float) -> list[str]:
    """One line of the table: the fresh classifier, the best probe by AUROC, the worst re-identification."""
    fresh = [s for s in found.utility if s.metric == "accuracy" and s.attack == "fresh classifier"]
    useful = fresh[0] if fresh else next(s for s in found.utility if s.metric == "accuracy")
    hidden = max((s for s in found.attacks if s.metric == "auroc"), key=lambda s: s.value)
    looked = [s for s in found.attacks if s.threat == "reidentification" and s.metric == "rate"]
    again = max(looked, key=lambda s: s.value) if looked else None
    return [
        f"`{words}`",
        figure(useful),
        "–" if useful.control is None else f"{useful.control:.3f}",
        figure(hidden),
        f"`{hidden.attack}`",
        "–" if again is None else f"{again.value:.2f} (`{again.attack}`)",
        f"{seconds:.0f}",
    ]


def figure(score: Any) -> str:
    return f"{score.value:.3f} [{score.ci[0]:.3f}, {score.ci[1]:.3f}]"


if __name__ == "__main__":
    main()

"""``python -m benchmarks.peers [PEER…]``: ours and others on the same Adult records, with seconds and students.

Environments come from ``SFUMATO_PEERS`` or are made on first use (``sfumato.studies.peers``). Synthetic tables, scores
and ``peers.json`` end up in ``--out``; what is there already is not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from sfumato import load
from sfumato.studies.peers import PEERS
from sfumato.studies.synth_peers import LABEL, PeerEffort, compared


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"of {', '.join(PEERS)}; default mst, aim and ctgan")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--limit", type=float, default=900.0, help="seconds that a peer may take")
    parser.add_argument("--repeats", type=int, default=1, help="runs of ours, each with fresh noise")
    parser.add_argument("--rows", type=int, help="train and test on so many records only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/peers"))
    given = parser.parse_args()
    names = given.peers or ["mst", "aim", "ctgan"]
    if strangers := sorted(set(names) - set(PEERS)):
        parser.error(f"unknown peer {strangers[0]}; known: {', '.join(PEERS)}")
    train, test = (
        load("adult", utility=LABEL, private=(), part=part, limit=given.rows, seed=given.seed)
        for part in ("train", "test")
    )
    effort = PeerEffort(tuple(given.epsilon), tuple(names), given.limit, given.repeats, given.rows)
    rows = compared(
        train, test, effort, seed=given.seed, out=given.out, say=lambda said: print(said, file=sys.stderr, flush=True)
    )
    result = [row.to_json() for row in rows]
    (given.out / "peers.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    return 1 if any(row.holds is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

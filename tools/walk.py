"""What a user does with a fresh installation, small: run by the interpreter of that installation, in an empty folder.

Fit, audit, report and release; an audit of somebody else's table; a bundle that is exported, served and asked.
"""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

SFUMATO = [sys.executable, "-m", "sfumato"]


def main() -> None:
    os.environ |= {"OMP_NUM_THREADS": "1", "SFUMATO_STATE": str(Path("state").resolve())}
    sfumato("doctor", "--quick")
    fit = ("--data", "digits", "--utility", "odd", "--private", "ge5", "--limit", "600", "--set", "epochs=1")
    sfumato("fit", "ran", *fit, "--out", "run")
    sfumato("audit", "run", "--effort", "smoke")
    sfumato("report", "run", "--out", "report.html")
    sfumato("release", "run", "--data", "digits", "--unaudited", "--out", "outbox")  # so short an audit does not count
    tables()
    sfumato("audit", "--release", "made.csv", "--owner", "train.csv", "--holdout", "control.csv", "--out", "vendor")
    sfumato("export", "run", "--out", "bundle")
    served()
    print(f"{sys.version.split()[0]}: everything works")


def sfumato(*words: str) -> None:
    done = subprocess.run([*SFUMATO, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(
            f"sfumato {' '.join(words)} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )


def tables() -> None:
    """A release, the records it was made of, and people who were not in it."""
    draw = random.Random(0)
    for name in ("train", "control", "made"):
        with Path(f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("age", "job", "income"))
            for _ in range(300):
                age = draw.randint(18, 90)
                rows.writerow((age, draw.choice(("clerk", "cook", "driver")), round(age * 400 + draw.gauss(0, 5000))))


def served() -> None:
    """The cloud half answers over the Open Inference Protocol."""
    command = [*SFUMATO, "serve", "bundle", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
        try:
            assert service.stderr is not None
            url = next(json.loads(line)["url"] for line in service.stderr if '"url"' in line)
            model = ask(f"{url}/v2/models/bundle")
            (port,) = model["inputs"]
            shape = [1, *port["shape"][1:]]
            size = 1
            for length in shape:
                size *= length
            tensor = {"name": port["name"], "datatype": port["datatype"], "shape": shape, "data": [0.5] * size}
            answer = ask(f"{url}/v2/models/bundle/infer", {"inputs": [tensor]})
            assert answer["outputs"][0]["data"], answer
        finally:
            service.terminate()


def ask(url: str, body: object = None) -> dict[str, list[dict[str, object]]]:
    request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode())
    for attempt in range(20):
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            sys.exit(f"{url}: {error.code} {error.read().decode()[:500]}")
        except OSError:
            if attempt == 19:
                raise
            time.sleep(0.5)
    raise AssertionError


if __name__ == "__main__":
    main()

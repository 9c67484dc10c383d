"""The playground end to end: python playground/e2e/serve_and_run.py BUNDLES [--shots FOLDER]

Starts ``sfumato serve … --playground`` on a free port, opens the page in Chromium, and stops both.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("bundles", type=Path)
    asked.add_argument("--shots", type=Path, default=Path("build/playground/shots"))
    given = asked.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("there is no Chromium: apt-get install chromium, or install Chrome.")
    bundles = sorted(folder for folder in given.bundles.iterdir() if (folder / "manifest.json").is_file())
    command = [sys.executable, "-m", "sfumato", "serve", *map(str, bundles), "--playground", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            url = f"{address(server)}/playground/"
            page = ["node", str(HERE / "run.mjs"), url, chromium, str(given.shots.resolve())]
            sys.exit(subprocess.run(page, check=False).returncode)
        finally:
            server.terminate()


def address(server: subprocess.Popen[str]) -> str:
    """Where the service says that it listens; the rest of its log is passed over."""
    assert server.stderr is not None
    for line in server.stderr:
        said = json.loads(line) if line.startswith("{") else {}
        if said.get("event") == "listening" or "url" in said:
            return str(said["url"])
        if not said:
            sys.stderr.write(line)
    sys.exit("the service did not start.")


if __name__ == "__main__":
    main()

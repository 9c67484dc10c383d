"""``sfumato view`` as a process: an address on stdout, an end without noise."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest


def test_view_prints_its_address_serves_and_ends_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sfumato", "view", str(tmp_path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as view:
        assert view.stdout is not None and view.stderr is not None
        lines = [view.stdout.readline() for _ in range(3)]
        url = json.loads("".join(lines))["url"]
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url) as answer:
            assert b"Nothing has been audited yet" in answer.read()
        os.kill(view.pid, signal.SIGTERM)
        assert view.wait(10) == 0
        assert "Traceback" not in view.stderr.read()


@pytest.mark.parametrize(("words", "said"), [(["absent"], "absent is not a folder"), (["."] * 0, "Missing argument")])
def test_a_wrong_call_is_one_sentence(tmp_path: Path, words: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", "view", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode in (2, 3) and said in done.stderr and "Traceback" not in done.stderr

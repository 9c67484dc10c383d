"""The page's own script, where there is a browser: it runs to its end, draws, and runs nothing that files say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from report_phase_runs import phase_run
from report_runs import EMPIRICAL, attribute, latent_sweep, reconstruction, write_run

from sfumato.report import build_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def dom(*folders: Path) -> str:
    """The page after its script has run."""
    page = build_report(folders, folders[0].parent / "page.html", title="the report")
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--window-size=1280,900"]
    done = subprocess.run(
        [str(BROWSER), *words, "--dump-dom", page.as_uri()], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_every_part_of_the_page_comes_to_life(tmp_path: Path) -> None:
    text = dom(latent_sweep(tmp_path / "s"), phase_run(tmp_path / "p", 2, data="others"))
    assert re.search(r'id="front-0"[^>]*><p class="key">', text) and re.search(
        r'id="front-1"[^>]*><p class="key">', text
    )
    assert text.count('class="frame"') >= 2, "a field for each front"
    assert "record 1 of 8" in text and len(re.findall(r"<figure[^>]*><img", text)) >= 6
    assert "figures that match" in text, "the last thing that the script does"


def test_what_files_say_never_runs(tmp_path: Path) -> None:
    attacks = [dict(one, attack=HOSTILE) for one in reconstruction(0.01)] + attribute(0.2, target=HOSTILE)
    run = write_run(
        tmp_path / "r",
        HOSTILE,
        data=HOSTILE,
        params={"name": HOSTILE},
        attacks=attacks,
        guarantee=EMPIRICAL | {"statement": HOSTILE, "conditions": [HOSTILE]},
        classes=[HOSTILE] * 10,
        features=np.zeros((40, 3)).tolist(),
    )
    text = dom(run)
    assert "<title>the report</title>" in text and "figures that match" in text
    assert "<img src=x" not in text.replace("&lt;", "") and 'src="x"' not in text

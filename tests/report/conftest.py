from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.report import build_report


class Page:
    """A built page: its text without its own scripts, and the JSON that they read."""

    def __init__(self, text: str) -> None:
        self.scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        assert len(self.scripts) == 2
        self.text = re.sub(r"<script>.*?</script>", "<script></script>", text, flags=re.DOTALL)
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', self.text, re.DOTALL)
        assert found is not None
        self.data: dict[str, Any] = json.loads(found.group(1))
        self.visible = self.text.replace(found.group(0), "").replace("\u00a0", " ")


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Page]:
    """Build the page of some folders."""

    def build(*folders: Path, title: str | None = None) -> Page:
        out = build_report(folders, tmp_path / "out" / "report.html", title=title)
        return Page(out.read_text(encoding="utf-8"))

    return build

"""Three parties with 120 digits each, cut once."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.parties.partition import split_parties


@pytest.fixture(scope="session")
def trio(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders party-0 … party-2: label ``digit`` may be used, ``ge5`` is private."""
    out = tmp_path_factory.mktemp("trio") / "parties"
    return split_parties("digits", out, parties=3, utility=["digit"], private=["ge5"], limit=450, repeatable=True)

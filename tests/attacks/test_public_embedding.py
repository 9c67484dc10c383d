"""Vectors of an unknown model are aligned with a public embedding, and the text behind each is found there."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sfumato.core.errors import DataError
from sfumato.testing.attacks import TINY
from sfumato.workflow import audit_payloads

SCRIPT = Path(__file__).parents[2] / "examples" / "embeddings" / "notes.py"
LOOKING = replace(TINY, candidates=150, threats=("reidentification",))
Arrays = Mapping[str, npt.NDArray[Any]]


def _example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notes_example", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = _example()


@pytest.fixture(scope="module")
def texts() -> Arrays:
    pytest.importorskip("wordllama")
    found = example.notes(900)
    written = found["text"].tolist()
    return {**found, "v": example.embed(written), "public": example.embed_publicly(written)}


def looked_up(texts: Arrays, vectors: npt.NDArray[Any], public: Arrays | None) -> dict[str, Any]:
    records = {"note": texts["note"], "v": texts["v"]}
    release = {"note": texts["note"], "v": vectors}
    return audit_payloads(release, records, id="note", public=public, effort=LOOKING)


def rate(scores: Mapping[str, Any], attack: str) -> dict[str, Any]:
    return next(score for score in scores["attacks"] if score["attack"] == attack and score["metric"] == "rate")


def test_the_text_behind_a_vector_is_found_without_its_model(texts: Arrays) -> None:
    """The release is a secret rotation of the embeddings: nobody could compute it for a candidate."""
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(256, 256)))[0]
    public = {"note": texts["note"][::-1], "public": texts["public"][::-1]}  # lined up by id
    found = rate(looked_up(texts, (texts["v"] @ rotation).astype(np.float32), public), "reid-public")
    assert found["ci"][0] > 0.5 and found["baseline"] == pytest.approx(1 / 150)
    assert found["control"] == pytest.approx(found["value"], abs=0.05)


def test_noise_that_hides_the_text_is_seen_to_hide_it(texts: Arrays) -> None:
    noise = np.random.default_rng(1).normal(size=texts["v"].shape).astype(np.float32)
    found = rate(looked_up(texts, noise, {"note": texts["note"], "public": texts["public"]}), "reid-public")
    assert found["ci"][0] < 0.05


def test_without_a_public_embedding_nothing_is_aligned_with_one(texts: Arrays) -> None:
    scores = looked_up(texts, texts["v"], None)
    assert "reid-public" not in {score["attack"] for score in scores["attacks"]}


def test_a_public_embedding_that_lacks_records_is_refused(texts: Arrays) -> None:
    some = {"note": texts["note"][:500], "public": texts["public"][:500]}
    with pytest.raises(DataError, match="public lacks 400 records of records: give a vector for each"):
        looked_up(texts, texts["v"], some)


def test_the_notes_speak_of_everybody_and_everything_once() -> None:
    found = example.notes(600)
    assert len(set(found["text"].tolist())) == 600
    assert len(set(zip(found["topic"].tolist(), found["gender"].tolist(), strict=True))) == 12
    assert example.notes(600)["text"].tolist() == found["text"].tolist()
    assert not any("{" in text for text in found["text"].tolist())


def test_the_example_writes_files_that_can_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wordllama")
    import sfumato

    monkeypatch.setattr("sys.argv", ["notes.py", str(tmp_path / "notes.npz"), "200"])
    example.main()
    data = sfumato.load(str(tmp_path / "notes.npz"), x=["v"], utility=["topic"], private=["gender"], id="note")
    assert data.x.shape == (200, 256)
    assert len((tmp_path / "notes.txt").read_text().splitlines()) == 200

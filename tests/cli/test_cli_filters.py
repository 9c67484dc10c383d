"""A base by name, a folder of users as a whole, a public embedding: as typed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from desk import Call

from sfumato.auditing import effort as efforts
from sfumato.data import load_splits
from sfumato.testing.attacks import TINY

VECTORS = ("--data", "v.npz", "--x", "v", "--utility", "topic", "--private", "sex", "--id", "who")


@pytest.fixture
def vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Vectors of fifteen people, 110 each."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    topic, sex = rng.integers(0, 2, 1650), rng.integers(0, 2, 1650)
    v = 0.2 * rng.normal(size=(1650, 40))
    v[:, 0] += topic
    v[:, 1] += sex
    who = [f"p{row % 15}" for row in range(1650)]
    labels = {"topic": np.array(["a", "b"])[topic], "sex": np.array(["f", "m"])[sex], "who": np.array(who)}
    np.savez("v.npz", v=v.astype(np.float32), **labels)
    monkeypatch.setitem(efforts._NAMED, "smoke", TINY)
    return tmp_path


def test_a_base_is_made_by_name_or_taken_from_a_folder_of_that_name(vectors: Path, call: Call) -> None:
    few = ("--set", "steps=50", "--set", "components=20")
    done = call("fit", "filter-linear", *VECTORS, "--base", "pca", *few, "--out", "f")
    assert done.code == 0, done.err
    assert (vectors / "f/base/fixed.json").is_file()
    assert call("fit", "filter-linear", "--config", "f/config.toml", "--out", "again").code == 0
    assert call("fit", "leace", *VECTORS, "--out", "raw").code == 0
    done = call("fit", "filter-linear", "--base", "raw", "--utility", "topic", "--private", "sex", *few, "--out", "g")
    assert done.code == 0, done.err
    assert (vectors / "g/base/run/mechanism.json").is_file()  # the run in the folder, not the base of that name


def test_a_base_that_lost_the_utility_ends_the_command(vectors: Path, call: Call) -> None:
    quiet = ("--set", "components=1", "--out", "f")
    np.savez(
        "w.npz",
        **{**np.load("v.npz"), "v": np.load("v.npz")["v"] + 9 * np.random.default_rng(1).normal(size=(1650, 1))},
    )
    done = call("fit", "filter", "--data", "w.npz", *VECTORS[2:], "--base", "pca", *quiet)
    assert done.code == 2 and "the base lost it" in done.err
    assert not (vectors / "f").exists()


def test_users_are_fitted_by_id_and_audited_as_one(vectors: Path, call: Call) -> None:
    assert call("fit", "leace", *VECTORS, "--out", "l").code == 0
    mine = sorted(set(load_splits("v.npz", x=["v"], utility=["topic"], id="who", seed=0).owner.ids.tolist()))[:2]
    lines = [f"{name},sex,topic,{one}" for name, one in zip(("ann", "bob"), mine, strict=True)]
    Path("users.csv").write_text("\n".join(["user,private,utility,id", *lines]) + "\n")
    done = call("fit", "filter-linear", "--base", "l", "--users", "users.csv", "--set", "steps=50", "--out", "u")
    assert done.code == 0 and "next: sfumato audit u" in done.out, done.err
    audited = call("audit", "u", "--effort", "smoke", "--jobs", "1")
    assert audited.code == 0, audited.err
    assert "ann" in audited.out and "bob" in audited.out and "next: sfumato report u" in audited.out
    assert [
        one["point"] for one in call("audit", "u", "--effort", "smoke", "--jobs", "1", "--json").json()["points"]
    ] == [
        "ann",
        "bob",
    ]
    assert call("report", "u").code == 0
    assert call("gate", "u", "--max", "attribute=100%").code == 0


def test_payloads_are_aligned_with_a_public_embedding(vectors: Path, call: Call) -> None:
    given = np.load("v.npz")
    rng = np.random.default_rng(2)
    np.savez("release.npz", r=(given["v"] @ rng.normal(size=(40, 40))).astype(np.float32))
    np.savez("public.npz", e=(given["v"] @ rng.normal(size=(40, 30))).astype(np.float32))
    asked = ("--release", "release.npz", "--records", "v.npz", "--x", "v", "--effort", "smoke", "--out", "a")
    scores = call("audit", *asked, "--public", "public.npz", "--json").json()
    found = next(s for s in scores["attacks"] if s["attack"] == "reid-public" and s["primary"])
    assert found["value"] > 0.9
    refused = call(
        "audit", "--release", "release.npz", "--owner", "v.npz", "--holdout", "v.npz", "--public", "public.npz"
    )
    assert refused.code == 2 and "--public goes with --records" in refused.err

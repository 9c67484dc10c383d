"""The app on Flower's own engines: simulated, and deployed as separate processes with one party killed on the way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from deployment import deployed, stranger

from sfumato.core.randomness import Seeded
from sfumato.core.run_folder import read_json
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.mechanisms.device_secret import derived, drawn_secret, secret_bits
from sfumato.parties import ShareResult, lay_app, simulate, split_parties
from sfumato.parties.party_folder import open_party

SMALL = {"epochs": 1, "latent": 8, "variant": "published"}
PHASE_SECONDS = 180.0


def wait_until(there: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)


def payloads(folder: Path) -> dict[str, Any]:
    """The representations of each party in the one shared set below a party's folder."""
    (file,) = folder.glob("shared/*/shared.parquet")
    table = pq.read_table(file)
    z = np.stack([table.column(f"z{place}").to_numpy() for place in range(8)], axis=1)
    party = np.array(table.column("party").to_pylist())
    return {name: z[party == name] for name in sorted(set(party))}


def kept_back(folder: Path) -> dict[str, bytes]:
    """What a party must not send, as the bytes it would be sent as."""
    party = open_party({"data": str(folder)}, 0)
    data = party.records("train")
    ink = int(data.x.reshape(len(data), -1).sum(axis=1).argmax())
    pixels = np.array(pq.read_table(folder / "train.parquet").column("image").to_pylist()[ink], dtype=np.uint8)
    secret = derived(drawn_secret(Seeded(party.seed_for("release"))), "party", 0)
    found = {
        "record": data.x[ink].tobytes(),
        "pixels": pixels.tobytes(),
        "secret": secret,
        "mask": secret_bits(derived(secret, "mask"), 8).tobytes(),
        "private": data.private["ge5"].tobytes(),
        "private codes": data.private["ge5"].astype(np.uint8).tobytes(),
        "ids": data.ids[:4].tobytes(),
    }
    fitted = ARS(**SMALL, seed=party.seed_for("publish")).fit(data)
    member = ARS.join(fitted.publish(), data, seed=party.seed_for("join"))
    for name, tensor in (*fitted.state().items(), *member.state().items()):
        if not name.startswith("encoder") and tensor.numel() > 8:
            found[name] = tensor.numpy().tobytes()
    return found


def left_over(mark: str) -> list[str]:
    """The processes, this one apart, whose variables speak of ``mark``."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in file.read_bytes() and file.parent.name != str(os.getpid()):
                found.append((file.parent / "cmdline").read_text().replace("\0", " "))
    return found


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_a_deployment_survives_a_killed_party_and_gives_what_the_simulation_gives(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"params": SMALL, "learner": "logistic"}
    cut: dict[str, Any] = {"parties": 3, "utility": ["digit"], "private": ["ge5"], "limit": 450}
    folders = split_parties("digits", tmp_path / "parties", repeatable=True, **cut)
    server, record = tmp_path / "server", tmp_path / "record"
    app = lay_app(tmp_path / "app", parties=3, timeout=PHASE_SECONDS, out=str(server), record=str(record), **asked)
    (tmp_path / "home").mkdir()
    with deployed(tmp_path / "home", folders) as deployment:
        run = deployment.submit(app)
        try:
            wait_until(lambda: any(folders[0].glob("shared/*/published.json")) or run.poll() is not None, 240)
            assert run.poll() is None, (server / "error.json").read_text()
            deployment.kill("party-2")
            wait_until(lambda: all(any(one.glob("shared/*/joined.json")) for one in folders[:2]), PHASE_SECONDS)
            simulated = simulate("digits", out=tmp_path / "simulated", **cut, **asked)  # while the server waits
            assert "still there" not in stranger(tmp_path / "home", deployment, 180)
            assert run.wait(240) == 0
        finally:
            run.kill()
    assert simulated.shared == ("party-0", "party-1", "party-2")
    assert all(party.accuracy is not None for party in simulated.parties)
    result = ShareResult.from_json(read_json(server / "result.json"))
    assert [(party.name, party.status) for party in result.parties] == [
        ("party-0", "shared"), ("party-1", "shared"), ("party-2", "excluded"),
    ]  # fmt: skip
    assert "(share)" in result.parties[2].reason
    assert result.encoder == simulated.encoder
    theirs = payloads(tmp_path / "simulated" / "parties" / "party-0")
    for folder in folders[:2]:
        mine = payloads(folder)
        assert list(mine) == ["party-0", "party-1"]
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    assert not list(folders[2].glob("shared/*/shared.parquet"))
    inspect(record, folders, result)
    wait_until(lambda: not left_over(str(tmp_path)), 60)


def inspect(record: Path, folders: list[Path], result: ShareResult) -> None:
    """The recorded messages: all are there, and nothing that has to stay is in one of them."""
    messages = {file.name: file.read_bytes() for file in record.iterdir()}
    assert {name.split("-")[2].removeprefix("query.") for name in messages} == {"hello", "publish", "share", "learn"}
    assert sum(len(one) for name, one in messages.items() if "-up-" in name) == result.bytes_up
    sent = [one for name, one in messages.items() if "-up-query.share" in name]
    assert len(sent) == 2
    rows = sorted(party.rows for party in result.parties if party.status == "shared")
    for one, count in zip(sorted(sent, key=len), rows, strict=True):
        assert 0 < len(one) - count * (8 * 4 + 1) < 2500, "there is room for something else"
    for folder in folders:
        for what, content in kept_back(folder).items():
            assert not [name for name, one in messages.items() if content in one], f"{what} of {folder.name} crossed"

"""One company for ever: findings from files through the commands ``device``, ``fit`` and ``release``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from desk import Call, Outcome
from pyarrow import csv

from sfumato.core.errors import DataError, UsageError
from sfumato.data import load, stream
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.device_secret import SECRET_VARIABLE, secret_file
from sfumato.mechanisms.phase.mechanism import Phase
from sfumato.workflow import fit_run, releasing, resolve

CLIENTS = 60


def clients(count: int, seed: int = 0, wide: float = 1.0) -> list[list[str]]:
    """Rows of age, height, town and loan; ``wide`` stretches their ranges, so that a refit scales otherwise."""
    rng = np.random.default_rng(seed)
    return [
        [
            f"{rng.uniform(18, 60 * wide):.3f}",
            f"{rng.normal(170, 9 * wide):.2f}",
            str(rng.choice(["Bern", "Chur", "Basel"])),
            ("no", "yes")[row % 2],
        ]
        for row in range(count)
    ]


def write(path: Path, rows: Sequence[Sequence[str]], unused: str = "") -> Path:
    header = ["age", "height", "town", "loan", *(["unused"] if unused else [])]
    lines = [",".join([*row, *([unused] if unused else [])]) for row in rows]
    path.write_text("\n".join([",".join(header), *lines]) + "\n")
    return path


class Desk:
    """A working folder, a device's secret, and the commands."""

    def __init__(self, folder: Path, call: Call, patch: pytest.MonkeyPatch) -> None:
        self.folder, self._call, self._patch = folder, call, patch
        self.secret = folder / "device.key"

    def run(self, *words: str | Path, secret: str | Path | None = None) -> Outcome:
        self._patch.setenv(SECRET_VARIABLE, str(secret or self.secret))
        return self._call(*words)

    def fit(self, data: Path, name: str, *more: str) -> Path:
        run = self.folder / name
        words = ["fit", "phase", "--data", data, "--utility", "loan", "--set", "epochs=1", "--set", "batch=16"]
        assert self.run(*words, *more, "--quiet", "--out", run).code == 0
        return run

    def release(self, run: Path, data: Path, name: str, secret: str | Path | None = None) -> Outcome:
        return self.run(
            "release", run, "--unaudited", "--data", data, "--quiet", "--out", self.folder / name, secret=secret
        )

    def companies(self, run: Path, data: Path, name: str) -> list[frozenset[int]]:
        """For each message of a release, the rows of the file whose features lie in its span, not only close to it."""
        card = json.loads((self.folder / name / "release.json").read_text())
        column = pq.read_table(self.folder / name / "release.parquet").column("payload").combine_chunks()
        messages = torch.tensor(np.asarray(column.flatten()).reshape(card["rows"], card["payload_shape"][0], -1))
        mechanism = load_mechanism(run)
        assert isinstance(mechanism, Phase)
        with torch.inference_mode():
            features = mechanism.encoder_(torch.tensor(encoded(data, mechanism))).flatten(1)
        lines = torch.nn.functional.normalize(features.double(), dim=1)
        basis = torch.linalg.qr(messages.double().mT).Q  # (N, F, d)
        outside = 1 - (lines @ basis).square().sum(2)  # (N, rows)
        return [frozenset(np.flatnonzero(row < 1e-12).tolist()) for row in outside.numpy()]


def encoded(data: Path, mechanism: Phase) -> np.ndarray:
    return np.concatenate([batch.x for batch in stream(data, mechanism.schema_)])


@pytest.fixture
def bare(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, call, monkeypatch)


@pytest.fixture
def desk(bare: Desk) -> Desk:
    """With a secret."""
    assert bare.run("device", "init").code == 0
    return bare


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of clients and a run that was fitted on it."""
    folder = tmp_path_factory.mktemp("january")
    data = {"source": str(write(folder / "january.csv", clients(CLIENTS))), "utility": ["loan"]}
    fit_run(resolve("phase", data, {"epochs": 1, "batch": 16}, seed=0), folder / "run")
    return folder


@pytest.fixture
def january(fitted: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The file, and a run that nobody has released yet."""
    return fitted / "january.csv", shutil.copytree(fitted / "run", tmp_path / "run")


def says(result: Outcome, *words: str) -> None:
    assert result.code in (2, 3) and all(word in result.err for word in words), result.err


# secrets are made by a command


def test_device_init_makes_a_secret_for_its_owner_alone_and_never_another(bare: Desk) -> None:
    desk = bare
    made = desk.run("device", "init", "--json")
    about = made.json()
    assert about["secret"] == str(desk.secret) and desk.secret.stat().st_mode & 0o077 == 0
    assert secret_file(desk.secret).hex() not in made.out
    assert desk.run("device", "show", "--json").json() == about
    before = desk.secret.read_bytes()
    says(desk.run("device", "init"), "a secret is never replaced")
    assert desk.secret.read_bytes() == before


def test_a_mistyped_or_relative_secret_is_refused_and_none_is_made(
    desk: Desk, january: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, run = january
    mistyped = desk.folder / "devcie.key"
    says(desk.release(run, data, "one", mistyped), "sfumato device init", str(mistyped))
    monkeypatch.chdir(desk.folder)
    says(desk.release(run, data, "two", "device.key"), "absolute path")
    assert not mistyped.exists() and not (desk.folder / "one").exists() and not (desk.folder / "two").exists()


def test_a_run_is_released_under_one_secret(desk: Desk, tmp_path: Path) -> None:
    data = write(tmp_path / "clients.csv", clients(CLIENTS))
    run = desk.fit(data, "fitted")
    assert desk.release(run, data, "one").code == 0
    card = json.loads((desk.folder / "one" / "release.json").read_text())
    assert card["secret"] == desk.run("device", "show", "--json").json()["fingerprint"]
    other = tmp_path / "other.key"
    assert desk.run("device", "init", "--secret", other).code == 0
    says(desk.release(run, data, "two", other), "was released under the secret", card["secret"])


# one company for ever


def test_after_a_refit_on_more_rows_the_same_clients_stand_in_the_same_company(desk: Desk) -> None:
    """Finding 2: tags hung on the scaled record, and a refit scales otherwise."""
    january = write(desk.folder / "january.csv", clients(CLIENTS))
    first = desk.fit(january, "first")
    assert desk.release(first, january, "one").code == 0
    more = write(desk.folder / "more.csv", [*clients(CLIENTS), *clients(40, seed=1, wide=2.0)])
    second = desk.fit(more, "second")
    assert desk.release(second, january, "two").code == 0
    one, two = desk.companies(first, january, "one"), desk.companies(second, january, "two")
    assert all(len(set_) == 2 for set_ in one) and one == two
    assert desk.release(second, more, "three").code == 0  # and in a file that has grown
    assert desk.companies(second, more, "three")[:CLIENTS] == one


def test_another_d_or_other_columns_under_the_same_secret_are_refused(desk: Desk, january: tuple[Path, Path]) -> None:
    data, run = january
    assert desk.release(run, data, "one").code == 0
    wider = desk.fit(data, "wider", "--set", "d=3")
    says(desk.release(wider, data, "two"), "messages of d = 2", "d = 3")
    fewer = desk.fit(data, "fewer", "--x", "age", "--x", "height")
    says(desk.release(fewer, data, "three"), "other columns or kinds")


def test_company_does_not_depend_on_chunks_or_on_an_unused_wide_column(
    desk: Desk, january: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 5: groups formed inside chunks of the file."""
    data, run = january
    monkeypatch.setattr(releasing, "BATCH_ROWS", 7)
    assert desk.release(run, data, "one").code == 0
    one = desk.companies(run, data, "one")
    assert any(abs(min(set_) - max(set_)) > 7 for set_ in one)  # over the whole file
    monkeypatch.setattr("sfumato.data.readers.delimited.BLOCK_BYTES", 2**12)
    wide = write(desk.folder / "wide.csv", clients(CLIENTS), unused="w" * 300)
    assert desk.release(run, wide, "two").code == 0
    assert desk.companies(run, wide, "two") == one


def test_a_record_whose_mate_is_missing_is_refused_and_new_records_stand_among_themselves(
    desk: Desk, january: tuple[Path, Path]
) -> None:
    data, run = january
    assert desk.release(run, data, "one").code == 0
    says(desk.release(run, write(desk.folder / "fewer.csv", clients(CLIENTS)[1:]), "two"), "1 record(s)", "not here")
    assert not (desk.folder / "two").exists()
    new = clients(11, seed=5)
    says(desk.release(run, write(desk.folder / "alone.csv", [*clients(CLIENTS), new[0]]), "three"), "1 new record(s)")
    grown = write(desk.folder / "grown.csv", [*new, *clients(CLIENTS)])
    assert desk.release(run, grown, "four").code == 0
    sets = desk.companies(run, grown, "four")
    assert all(max(set_) < 11 for set_ in sets[:11])
    assert [frozenset(row - 11 for row in set_) for set_ in sets[11:]] == desk.companies(run, data, "one")


def test_copies_stand_in_different_groups_and_too_many_are_refused(desk: Desk, january: tuple[Path, Path]) -> None:
    """Finding 6: copies shared their decoys, so that most messages of a company were the copies'."""
    _, run = january
    rows = clients(30)
    repeated = write(desk.folder / "repeated.csv", [*rows, *([rows[0]] * 10)])
    assert desk.release(run, repeated, "one").code == 0
    sets = desk.companies(run, repeated, "one")
    copies = {0, *range(30, 40)}
    mates = [set_ - copies for set_ in sets if set_ & copies]
    assert len(mates) == 22 and all(len(set_) == 1 for set_ in mates)
    assert len(set(mates)) == 11 and all(mates.count(set_) == 2 for set_ in mates)  # one of the two is the copy's
    flooded = write(desk.folder / "flooded.csv", [*clients(20, seed=7), *([clients(1, seed=8)[0]] * 21)])
    says(desk.release(run, flooded, "two"), "21 of 41 record(s) are copies", "at most 20")


def test_a_failed_release_leaves_no_company_and_a_crash_after_it_no_second_one(
    desk: Desk, january: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, run = january
    kept = desk.folder / "device.key.companies"
    with monkeypatch.context() as patch:
        patch.setattr(releasing, "close_release", _fail)
        says(desk.release(run, data, "one"), "no room")
    assert not kept.exists() and not (desk.folder / "one").exists()
    with monkeypatch.context() as patch:  # the store is written, the folder not yet moved into place
        patch.setattr(releasing, "keep_mark", _fail)
        says(desk.release(run, data, "two"), "no room")
    assert kept.exists() and kept.stat().st_mode & 0o077 == 0 and not (desk.folder / "two").exists()
    before = kept.read_bytes()
    assert desk.release(run, data, "three").code == 0
    assert kept.read_bytes() == before


def _fail(*_: object) -> None:
    raise DataError("no room")


def test_the_store_holds_no_record_and_belongs_to_its_secret(desk: Desk, january: tuple[Path, Path]) -> None:
    data, run = january
    assert desk.release(run, data, "one").code == 0
    kept = desk.folder / "device.key.companies"
    stored, contents = kept.read_bytes(), load(data, utility=["loan"]).origin
    assert not any(each.tobytes() in stored for each in (*contents.contents, *contents.nonces))
    assert b"town" not in stored and desk.secret.read_bytes() not in stored
    desk.secret.unlink()
    assert desk.run("device", "init").code == 0
    phase = load_mechanism(run)
    assert isinstance(phase, Phase)
    with pytest.raises(DataError, match="written under another secret"):
        phase.device(secret=desk.secret).encrypt(load(data, utility=["loan"]))
    kept.write_bytes(stored[: len(stored) // 2])
    with pytest.raises(DataError, match="cannot be read"):
        phase.device(secret=desk.secret).encrypt(load(data, utility=["loan"]))


def test_a_device_and_the_command_know_one_company(desk: Desk, january: tuple[Path, Path]) -> None:
    data, run = january
    assert desk.release(run, data, "one").code == 0
    phase = load_mechanism(run)
    assert isinstance(phase, Phase)
    device = phase.device(secret=desk.secret)
    message, _ = device.encrypt(load(data, utility=["loan"]))
    spans = torch.linalg.qr(torch.tensor(message.features).flatten(2).double().mT).Q
    sets = desk.companies(run, data, "one")
    with torch.inference_mode():
        lines = phase.encoder_(torch.tensor(encoded(data, phase))).flatten(1).double()
    inside = (torch.nn.functional.normalize(lines, dim=1) @ spans).square().sum(2).numpy()
    assert [frozenset(np.flatnonzero(row > 1 - 1e-6).tolist()) for row in inside] == sets
    with pytest.raises(UsageError, match="other columns or kinds"):  # as arrays their scaling is all that is known
        device.encrypt(encoded(data, phase))


def test_a_store_that_is_gone_is_missed_and_one_secret_has_one_store(desk: Desk, january: tuple[Path, Path]) -> None:
    data, run = january
    link = desk.folder / "link.key"
    link.symlink_to(desk.secret)
    assert desk.release(run, data, "one", link).code == 0
    kept = desk.folder / "device.key.companies"
    assert kept.exists() and not (desk.folder / "link.key.companies").exists()
    kept.rename(desk.folder / "elsewhere")
    grown = write(desk.folder / "grown.csv", [*clients(CLIENTS), *clients(9, seed=5)])
    says(desk.release(run, grown, "two"), str(kept), "is gone", "restore it")
    assert not kept.exists()


def test_numbers_in_32_bits_are_the_same_records_as_in_text(desk: Desk, january: tuple[Path, Path]) -> None:
    data, run = january
    assert desk.release(run, data, "one").code == 0
    table = csv.read_csv(data)
    short = pa.schema(
        [pa.field(one.name, pa.float32() if one.type == pa.float64() else one.type) for one in table.schema]
    )
    pq.write_table(table.cast(short), desk.folder / "short.parquet")
    assert desk.release(run, desk.folder / "short.parquet", "two").code == 0
    assert desk.companies(run, desk.folder / "short.parquet", "two") == desk.companies(run, data, "one")


def test_clients_who_hid_are_not_sent_as_published(desk: Desk, january: tuple[Path, Path]) -> None:
    data, run = january
    assert desk.release(run, data, "one").code == 0
    published = desk.fit(data, "published", "--set", "variant=published")
    says(desk.release(published, data, "two"), "60 record(s) have hidden", "variant=published")
    assert desk.release(published, write(desk.folder / "new.csv", clients(20, seed=5)), "three").code == 0

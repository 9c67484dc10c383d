"""Named sets come from the user's folder, the cache, or the public source."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_samples import image_cells, png, tone, wav, write

from sfumato.core.errors import DataError
from sfumato.data import REGISTRY, entry, load, load_splits
from sfumato.data.download import fetch
from sfumato.data.registry import HubSource


class FakeHub:
    """The two calls of the client, answered from a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_repo_files(self, repo_id: str, *, repo_type: str) -> Iterable[str]:
        assert repo_type == "dataset"
        return [
            file.relative_to(self._folder / repo_id).as_posix() for file in (self._folder / repo_id).rglob("*.parquet")
        ]

    def hf_hub_download(self, repo_id: str, filename: str, *, repo_type: str) -> str:
        return str(self._folder / repo_id / filename)


def images(rows: int, side: int = 32) -> pa.Array:
    rng = np.random.default_rng(rows)
    return image_cells([png(rng.integers(0, 256, (side, side, 3))) for _ in range(rows)])


def test_shards_of_the_hub_become_one_renamed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("train", "test"):
        for shard in range(2):
            write(tmp_path / f"hub/uoft-cs/cifar10/plain_text/{part}-0000{shard}-of-00002.parquet",
                  img=images(20), label=pa.array(np.arange(20) % 10))  # fmt: skip
    fetch(entry("cifar10"), tmp_path / "own" / "cifar10", hub=FakeHub(tmp_path / "hub"))
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path / "own"))
    data = load("cifar10")
    assert data.x.shape == (80, 3, 32, 32)
    assert data.schema.classes("label")[3] == "cat"
    assert data.ids[0] == "train:0" and data.ids[-1] == "test:39"
    assert not list((tmp_path / "own" / "cifar10").glob(".*")), "no draft is left behind"


def test_speakers_are_read_from_file_names(tmp_path: Path) -> None:
    cells = pa.array(
        [{"bytes": wav(tone(300)), "path": f"{digit}_{who}_0.wav"} for digit in range(2) for who in ("theo", "lucas")]
    )
    for part in ("train", "test"):
        write(tmp_path / f"hub/mteb/free-spoken-digit-dataset/data/{part}-0.parquet",
              audio=cells, label=pa.array([0, 0, 1, 1]))  # fmt: skip
    found = fetch(entry("fsdd"), tmp_path / "cache" / "fsdd", hub=FakeHub(tmp_path / "hub"))
    assert pq.read_table(found["train"]).column("speaker").to_pylist() == ["theo", "lucas"] * 2
    assert load("fsdd").schema.classes("speaker") == ("lucas", "theo"), "the cache is found by name"


def test_images_of_any_size_are_cut_square_where_the_set_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = image_cells([png(np.full((218, 178, 3), 200)), png(np.full((90, 120), 100))] * 5)
    facts = {
        "Smiling": pa.array([True, False] * 5),
        "Male": pa.array([True, False] * 5),
        "identity": pa.array(range(10)),
    }
    write(tmp_path / "celeba" / "train.parquet", image=cells, **facts)
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    data = load("celeba")
    assert data.x.shape == (10, 3, 64, 64) and data.ids.tolist() == [str(one) for one in range(10)]


def test_adult_is_read_as_uci_ships_it(tmp_path: Path) -> None:
    row = "39, Private, 77516, Bachelors, 13, Divorced, ?, Unmarried, White, Male, 2174, 0, 40, Cuba, <=50K"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("adult.data", f"{row}\n{row.replace('<=50K', '>50K').replace(' Male', ' Female')}\n\n")
        archive.writestr("adult.test", f"|1x3 Cross validator\n{row}.\n{row.replace('<=50K', '>50K')}.\n")
    found = fetch(entry("adult"), tmp_path / "cache" / "adult", download=lambda url: packed.getvalue())
    assert pq.read_table(found["test"]).column("income").to_pylist() == ["<=50K", ">50K"]
    data = load("adult")
    assert len(data) == 4 and "sex" not in data.schema.x_columns and "income" not in data.schema.x_columns


def test_har_is_read_as_uci_ships_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        for part in ("train", "test"):
            for what in ("body_acc", "body_gyro", "total_acc"):
                for axis in "xyz":
                    text = "\n".join(" ".join(f"{v:.4f}" for v in row) for row in rng.normal(size=(6, 128)))
                    archive.writestr(f"UCI HAR Dataset/{part}/Inertial Signals/{what}_{axis}_{part}.txt", text)
            archive.writestr(f"UCI HAR Dataset/{part}/y_{part}.txt", "\n".join("123456"))
            archive.writestr(f"UCI HAR Dataset/{part}/subject_{part}.txt", "\n".join("112233"))
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("UCI HAR Dataset.zip", inner.getvalue())
    fetch(entry("har"), tmp_path / "cache" / "har", download=lambda url: outer.getvalue())
    data = load("har", part="train")
    assert data.x.shape == (6, 9, 128) and data.label("activity").tolist() == [0, 1, 2, 3, 4, 5]
    assert data.ids.tolist() == ["1", "1", "2", "2", "3", "3"]


def test_without_the_client_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DataError, match=r"pip install 'sfumato\[hub\]'.*\$SFUMATO_DATA/mnist"):
        load("mnist")


def test_without_the_network_the_message_names_the_folder(tmp_path: Path) -> None:
    def broken(url: str) -> bytes:
        raise OSError("no route to host")

    with pytest.raises(DataError, match=r"no route to host.*\$SFUMATO_DATA/adult"):
        fetch(entry("adult"), tmp_path / "adult", download=broken)
    assert not (tmp_path / "adult" / "train.parquet").exists()


def test_a_changed_layout_of_the_hub_is_told(tmp_path: Path) -> None:
    write(tmp_path / "hub/ylecun/mnist/other/train-0.parquet", image=images(1))
    with pytest.raises(DataError, match="layout may have changed"):
        fetch(entry("mnist"), tmp_path / "mnist", hub=FakeHub(tmp_path / "hub"))


@pytest.mark.parametrize("name", ["imagenet", "ubisound"])
def test_set_that_nobody_may_fetch_says_why_and_what_to_do(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    monkeypatch.setenv("SFUMATO_CACHE", str(tmp_path))
    with pytest.raises(DataError, match=rf"because .*SFUMATO_DATA/{name}, with '.*' and '.*' as columns"):
        load(name)


def test_every_entry_says_where_it_comes_from_and_under_which_licence() -> None:
    for one in REGISTRY.values():
        assert one.licence and one.utility and str(one.source)
        if isinstance(one.source, HubSource):
            assert set(one.source.files) == {"train", "test"}


# --- real data, where present ---


@pytest.mark.parametrize(
    ("name", "shape", "limit"),
    [
        ("mnist", (1, 28, 28), 700), ("cifar10", (3, 32, 32), 600), ("svhn", (3, 32, 32), 600),
        ("adult", None, None), ("har", (9, 128), None), ("celeba", (3, 64, 64), 1200),
        ("fsdd", (1, 32, 32), None),
    ],
)  # fmt: skip
def test_real_sets_split_without_shared_subjects(
    real_data: Path, name: str, shape: tuple[int, ...] | None, limit: int | None
) -> None:
    if not (real_data / name).is_dir():
        pytest.skip(f"SFUMATO_DATA has no {name}")
    parts = load_splits(name, seed=0, limit=limit)
    assert shape is None or parts.schema.shape == shape
    for part in (parts.owner, parts.attacker, parts.victim):
        assert part.x.min() >= 0 and part.x.max() <= 1
        for label in (*part.utility, *part.private):
            assert len(np.unique(part.label(label))) == len(part.schema.classes(label))
    if name == "har":
        assert abs(len(parts.owner) / (len(parts.owner) + len(parts.attacker)) - 0.75) < 0.05


def test_real_adult_keeps_the_private_column_out_of_x(real_data: Path) -> None:
    if not (real_data / "adult").is_dir():
        pytest.skip("SFUMATO_DATA has no adult")
    schema = load("adult", limit=10).schema
    assert not {"sex", "income"} & {column.name for column in schema.columns}
    assert len(schema.columns) == 13

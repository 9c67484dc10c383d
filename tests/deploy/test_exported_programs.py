"""What an exported bundle computes is what the mechanism computes, and it tells nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.deploy.conftest import Bundles, Made
from tests.deploy.made_records import made_records

from sfumato.core.errors import DataError, RuleBroken, UsageError
from sfumato.core.randomness import Seeded
from sfumato.deploy.bundle_files import preprocessing
from sfumato.deploy.exporting import export
from sfumato.deploy.manifest import read_bundle
from sfumato.deploy.program_checks import TOLERANCE, compared, session
from sfumato.deploy.shipped_mechanism import private_inputs
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.halves import Half
from sfumato.mechanisms.halves.shipped_networks import Added

EVERY = [
    ("ran", "image"),
    ("filter", "table"),
    ("phase", "image"),
    ("ars", "signal"),
    ("ars", "table", "variant=published"),
]
MORE = [
    *(("ran", kind) for kind in ("signal", "audio", "table", "vectors")),
    *(("phase", kind, "d=3") for kind in ("signal", "audio", "table", "vectors")),
    *(("ars", kind) for kind in ("image", "audio", "table", "vectors")),
    ("phase", "table", "variant=published"),
    ("ars", "image", "variant=published"),
    ("filter", "image", "base=vae", "output=data"),
    ("filter", "table", "base=pca", "output=data"),
    ("filter-linear", "signal"),
    ("dnn", "audio"),
    ("none", "table"),
    ("noisy", "signal"),
    ("dnn-resized", "image"),
    ("split", "image"),
    ("split-extra", "table"),
    ("split-noisy", "signal"),
    ("vae", "table"),
    ("gaussian", "vectors"),
    ("leace", "vectors"),
    ("vfae", "table"),
    ("lmifr", "image"),
    ("latent-noise", "table", "way=dithered"),
    ("latent-noise", "image", "way=pca"),
]


def key_name(key: tuple[str, ...]) -> str:
    return "-".join(key)


def check_parity(made: Made) -> None:
    manifest = read_bundle(made.folder).manifest
    assert [one.name for one in made.exported.figures] == list(manifest.programs)
    assert all(one.real and one.error <= TOLERANCE and one.jumped <= 0.01 for one in made.exported.figures)
    for program in manifest.programs.values():
        onnx.checker.check_model(str(made.folder / program.file), full_check=True)
        opened = session(made.folder / program.file)
        assert [one.name for one in opened.get_inputs()] == [port.name for port in program.inputs]
        assert [one.shape[1:] for one in opened.get_inputs()] == [list(port.row) for port in program.inputs]


@pytest.mark.parametrize("key", EVERY, ids=key_name)
def test_programs_compute_what_the_networks_do(bundles: Bundles, key: tuple[str, ...]) -> None:
    check_parity(bundles[key])


@pytest.mark.slow
@pytest.mark.parametrize("key", MORE, ids=key_name)
def test_so_do_those_of_other_kinds_and_baselines(bundles: Bundles, key: tuple[str, ...]) -> None:
    check_parity(bundles[key])


def test_a_wrong_program_is_never_written(bundles: Bundles, tmp_path: Path) -> None:
    made = bundles["ran", "image"]
    half = made.mechanism.halves().device  # type: ignore[attr-defined]
    other = Half(Added(half.network, 0.0), half.inputs, half.output)  # another network, of the same ports
    other.network.forward = lambda x: half.network(x) + 0.001  # type: ignore[method-assign]
    with pytest.raises(RuleBroken, match="away from the network"):
        compared(other, "device", made.folder / "device.onnx", None)


def run_device(made: Made, x: np.ndarray, **more: np.ndarray) -> np.ndarray:
    program = read_bundle(made.folder).manifest.programs["device"]
    given = {port.name: more.get(port.name, x) for port in program.inputs}
    out: np.ndarray = session(made.folder / program.file).run(None, given)[0]
    return out


def test_the_device_half_releases_what_the_mechanism_releases(bundles: Bundles) -> None:
    made = bundles["ran", "image"]
    x = made.data.x[:20]
    assert np.abs(run_device(made, x) - made.mechanism.transform(x)).max() <= TOLERANCE


def test_a_filter_with_the_same_noise_releases_the_same(bundles: Bundles) -> None:
    made = bundles["filter", "table"]
    some = made.data.take(slice(0, 20))
    wanted = made.mechanism.transform(some.x, private=some.private, seed=9)
    noise = read_bundle(made.folder).manifest.programs["device"].port("noise")
    drawn = Seeded(9).normal((20, *noise.row)).astype(np.float32)
    found = run_device(made, some.x, private=private_inputs(some.schema, some.private), noise=drawn)
    assert np.abs(found - wanted).max() <= TOLERANCE


def test_the_cloud_half_answers_what_the_mechanism_answers(bundles: Bundles) -> None:
    made = bundles["ran", "image"]
    payload = made.mechanism.transform(made.data.x[:20])
    scores = session(made.folder / "cloud.onnx").run(None, {"payload": payload})[0]
    assert np.abs(scores - made.mechanism.predict(payload)).max() <= TOLERANCE  # type: ignore[attr-defined]


def test_a_bundle_says_nothing_of_the_records_or_of_the_machine(bundles: Bundles) -> None:
    for key in EVERY:
        made = bundles[key]
        manifest = json.loads((made.folder / "manifest.json").read_text())
        del manifest["programs"]
        text = json.dumps(manifest) + (made.folder / "card.md").read_text()
        assert not re.search(rf"\b{len(made.data)}\b", text)  # how many records there were
        assert "made up" not in text  # what the data are called
        assert not {"splits", "params", "seed", "config"} & set(manifest)
        for file in made.folder.glob("*.onnx"):
            raw = file.read_bytes()
            assert str(Path(__file__).parents[2]).encode() not in raw
            model = onnx.load(file)
            everything = [model.graph, *model.graph.node, *model.graph.initializer, *model.graph.value_info]
            assert not model.metadata_props and not any(part.metadata_props for part in everything)
            assert not any(part.doc_string for part in everything)


def test_the_same_fit_gives_the_same_bundle(bundles: Bundles, tmp_path: Path) -> None:
    made = bundles["ran", "image"]
    again = export(made.mechanism, tmp_path / "again", name="ran", real=made.data).folder
    for file in ("device.onnx", "cloud.onnx", "manifest.json"):
        ours, theirs = (json_without_card(folder / file) for folder in (again, made.folder))
        assert ours == theirs


def json_without_card(path: Path) -> Any:
    if path.suffix != ".json":
        return path.read_bytes()
    found = json.loads(path.read_text())
    return {**found, "files": None}  # the card tells how fast this machine was


def test_digests_are_those_of_the_files(bundles: Bundles) -> None:
    folder = bundles["phase", "image"].folder
    lines = [line.split("  ") for line in (folder / "SHA256SUMS").read_text().splitlines()]
    files = {file.name for file in folder.iterdir()} - {"SHA256SUMS"}
    assert {name for _, name in lines} == files
    assert all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest for digest, name in lines)


def test_what_has_no_halves_says_so(tmp_path: Path) -> None:
    data = made_records("table")
    columns = mechanism_class("ars")(parties=2, split="columns", **{"epochs": 1, "batch": 64}).fit(data)
    with pytest.raises(UsageError, match="split=rows"):
        export(columns, tmp_path / "columns")
    assert not (tmp_path / "columns").exists()


def test_a_folder_in_use_and_an_odd_name_are_refused(bundles: Bundles, tmp_path: Path) -> None:
    mechanism = bundles["ran", "image"].mechanism
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").touch()
    with pytest.raises(DataError, match="already used"):
        export(mechanism, tmp_path / "full")
    with pytest.raises(UsageError, match="cannot name a bundle"):
        export(mechanism, tmp_path / "new", name="../up")


@pytest.mark.parametrize("kind", ["image", "signal", "audio", "table", "vectors"])
def test_preprocessing_has_what_each_kind_needs(kind: str) -> None:
    schema = made_records(kind).schema
    said = preprocessing(schema)
    assert said["kind"] == kind and tuple(said["shape"]) == schema.shape


def test_a_damaged_bundle_is_one_sentence(bundles: Bundles, tmp_path: Path) -> None:
    import shutil

    for number, damage in enumerate((edit, cut, remove, link, promise_more)):
        folder = tmp_path / str(number)
        shutil.copytree(bundles["ran", "image"].folder, folder)
        damage(folder)
        with pytest.raises(DataError, match=r"^[^\n]*\.$"):
            read_bundle(folder)


def edit(folder: Path) -> None:
    raw = bytearray((folder / "cloud.onnx").read_bytes())
    raw[-1] ^= 1
    (folder / "cloud.onnx").write_bytes(raw)


def cut(folder: Path) -> None:
    (folder / "cloud.onnx").write_bytes((folder / "cloud.onnx").read_bytes()[:-1])


def remove(folder: Path) -> None:
    (folder / "device.onnx").unlink()


def link(folder: Path) -> None:
    (folder / "device.onnx").rename(folder / "other.onnx")
    (folder / "device.onnx").symlink_to(folder / "other.onnx")


def promise_more(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["programs"]["cloud"]["inputs"][0]["shape"] = [-1, 2**30]
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_where_phase_pools_two_computers_may_choose_otherwise(bundles: Bundles) -> None:
    table = mechanism_class("phase")(**{"epochs": 1, "batch": 64}).fit(made_records("table"))
    assert bundles["phase", "image"].mechanism.halves().cloud.jump == np.inf
    assert table.halves().cloud.jump == 0.0

"""A device prepares files as the data room does, in an environment that has numpy and onnxruntime alone."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.deploy.conftest import Bundles

from sfumato.core.errors import DataError
from sfumato.core.schema import Schema
from sfumato.data import load
from sfumato.data.file_errors import Place
from sfumato.deploy.bundle_files import preprocessing
from sfumato.deploy.manifest import Preprocessing
from sfumato.device.incoming_records import IncomingRecords
from sfumato.device.png_pictures import png_pixels

SRC = Path(__file__).parents[2] / "src"


def incoming(schema: Schema) -> IncomingRecords:
    said = preprocessing(schema)
    about = {name: value for name, value in said.items() if name not in ("kind", "shape")}
    return IncomingRecords(Preprocessing(said["kind"], tuple(said["shape"]), about))


def png(pixels: np.ndarray, mode: str | None = None, **options: int) -> bytes:
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(file, format="PNG", **options)
    return file.getvalue()


def wav(samples: np.ndarray, rate: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1), writer.setsampwidth(2), writer.setframerate(rate)
        writer.writeframes((samples * 32767).astype("<i2").tobytes())
    return file.getvalue()


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_become_the_records_of_a_fit(tmp_path: Path, channels: int) -> None:
    chance = np.random.default_rng(0)
    for number in range(12):
        side = tmp_path / "pictures" / ("ab"[number % 2])
        side.mkdir(parents=True, exist_ok=True)
        shape = (20, 20, 3) if channels == 3 else (20, 20)
        (side / f"{number:02}.png").write_bytes(png(chance.integers(0, 256, shape, dtype=np.uint8)))
    data = load(tmp_path / "pictures")
    device = incoming(data.schema)
    files = sorted((tmp_path / "pictures").rglob("*.png"))
    found, single = device.encoded(files)
    assert not single
    wanted = {row.tobytes() for row in data.x}
    assert {row.tobytes() for row in found} == wanted


def test_a_photo_of_another_size_is_cropped_and_scaled() -> None:
    device = incoming(Schema("image", (1, 16, 16), x_columns=("image",)))
    photo = np.tile(np.linspace(0, 255, 60, dtype=np.uint8), (40, 1))
    record, single = device.encoded(png(photo))
    assert single and record.shape == (1, 1, 16, 16)
    assert record[0, 0, :, 0].mean() > 0.1  # the left border of the photo is black, of its central square it is not


def test_pngs_are_read_without_pillow_as_with_it() -> None:
    chance = np.random.default_rng(1)
    smooth = np.add.outer(np.arange(23), np.arange(31)).astype(np.uint8) * 3
    noisy = chance.integers(0, 256, (23, 31, 3), dtype=np.uint8)
    files = [
        *(png(smooth, mode) for mode in ("L", "LA", "1", "P", "RGB", "RGBA")),
        *(png(noisy, mode) for mode in ("L", "RGB", "RGBA", "P")),
        png(smooth, "P", bits=4),
    ]
    for data in files:
        with Image.open(io.BytesIO(data)) as image:
            grey = image.mode in ("1", "L", "LA")
            wanted = np.asarray(image.convert("L" if grey else "RGB"))
        found, is_grey = png_pixels(data, Place("x"))
        assert is_grey == grey
        assert np.array_equal(found[:, :, 0] if grey else found, wanted)


@pytest.mark.parametrize("cut", [0, 7, 20, 45])
def test_a_broken_png_is_one_sentence(cut: int) -> None:
    data = png(np.zeros((9, 9), dtype=np.uint8))[:cut]
    with pytest.raises(DataError, match=r"^[^\n]*\.$"):
        png_pixels(data, Place("x"))


def test_recordings_become_the_records_of_a_fit(tmp_path: Path) -> None:
    for number in range(8):
        side = tmp_path / "sounds" / "ab"[number % 2]
        side.mkdir(parents=True, exist_ok=True)
        tone = 0.5 * np.sin(np.arange(3000) * (0.1 + 0.02 * number))
        (side / f"{number}.wav").write_bytes(wav(tone, 8000))
    data = load(tmp_path / "sounds")
    found, _ = incoming(data.schema).encoded(sorted((tmp_path / "sounds").rglob("*.wav")))
    assert {row.tobytes() for row in found} == {row.tobytes() for row in data.x}


TABLE = """age,hours,work,born,seen,gain,rate
17,40.5,public,1980-03-31,2024-05-01 10:00,1,5.0
90,,private,1990-12-01,2024-05-02 23:30,2,5.5
33,12,?,2001-01-01,2024-06-07 00:15,,7
45,99, none ,1975-06-30,2024-05-09 12:00,0,6.25
"""


def test_rows_of_a_table_become_the_records_of_a_fit(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text(TABLE + "\n".join(TABLE.splitlines()[1:]) * 0)
    data = load(file, x=["age", "hours", "work", "born", "seen", "gain"], utility=["rate:number"])
    device = incoming(data.schema)
    found, _ = device.encoded(file)
    assert np.array_equal(found, data.x)
    row = dict(zip(TABLE.splitlines()[0].split(","), TABLE.splitlines()[1].split(","), strict=True))
    typed = {**row, "age": 17, "hours": np.float64(40.5), "gain": 1.0}
    assert np.array_equal(device.encoded(typed)[0][0], data.x[0])
    for wrong in ({"age": "old"}, {"age": ""}, {"work": "retired"}, {"born": "yesterday"}, {"age": float("inf")}):
        with pytest.raises(DataError, match=r"^[^\n]*\.$"):
            device.encoded({**row, **wrong})
    del row["age"]
    with pytest.raises(DataError, match="column 'age'"):
        device.encoded(row)


def test_signals_and_vectors_are_scaled_by_the_ranges_of_the_fit(tmp_path: Path) -> None:
    schema = Schema("signal", (2, 4), ranges=((-1.0, 1.0), (0.0, 10.0)), x_columns=("s",))
    window = np.array([[-1.0, 0.0, 1.0, 3.0], [0.0, 5.0, 10.0, -2.0]])
    np.save(tmp_path / "one.npy", window)
    wanted = np.array([[0.0, 0.5, 1.0, 1.0], [0.0, 0.5, 1.0, 0.0]], dtype=np.float32)
    device = incoming(schema)
    assert np.array_equal(device.encoded(tmp_path / "one.npy")[0][0], wanted)
    assert np.array_equal(device.encoded(window, raw=True)[0][0], wanted)
    lines = "\n".join(["a,b", *(",".join(map(str, moment)) for moment in window.T)])
    (tmp_path / "one.csv").write_text(lines)
    assert np.array_equal(device.encoded(tmp_path / "one.csv")[0][0], wanted)
    with pytest.raises(DataError, match="lie in"):
        device.encoded(window)


@pytest.mark.parametrize("given", [b"", b"GIF", "missing.png", "table.csv", np.zeros((3, 3)), np.array(["a"]), []])
def test_what_is_no_record_is_one_sentence(tmp_path: Path, given: object) -> None:
    device = incoming(Schema("image", (1, 16, 16), x_columns=("image",)))
    given = tmp_path / given if isinstance(given, str) else given
    with pytest.raises(DataError, match=r"^[^\n]*\.$"):
        device.encoded(given)


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in ALLOWED and name.split(".")[0] in OTHERS:
            raise ImportError(f"{name} is not installed here")
OTHERS = {"torch", "scipy", "sklearn", "pyarrow", "safetensors", "PIL", "typer", "rich", "jinja2", "tomli_w", "onnx",
          "pandas", "threadpoolctl", "plotly", "starlette", "uvicorn", "httpx"}
ALLOWED = set()
sys.meta_path.insert(0, Block())
"""


def alone(code: str, *arguments: str) -> str:
    """What a program prints in an environment without the packages of a fit."""
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + code, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_device_is_light() -> None:
    code = "import time; t = time.perf_counter(); import sfumato.device\n"
    code += "took = time.perf_counter() - t; heavy = {'numpy', 'onnxruntime', 'torch'} & set(sys.modules)\n"
    code += "from sfumato.device import Device, RemoteModel\nprint(took if not heavy else heavy)"
    assert min(float(alone(code)) for _ in range(2)) < 0.3


def test_a_device_needs_numpy_and_onnxruntime_alone(bundles: Bundles, tmp_path: Path) -> None:
    picture = tmp_path / "one.png"
    picture.write_bytes(png(np.full((16, 16), 90, dtype=np.uint8)))
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(32)))
    row = json.dumps({"age": 40, "hours": "38.5", "work": "public", "gain": None, "who": "f"})
    code = "import json, numpy as np; from sfumato.device import Device\n"
    code += "ran, phase, table, picture, secret, row = sys.argv[1:]\n"
    code += "print(Device(ran).encode(picture).shape)\n"
    code += "device = Device(phase, secret=secret, pool=np.random.rand(4, 1, 16, 16).astype('f'))\n"
    code += "message, key = device.encrypt(picture); print(message.shape)\n"
    code += "print(Device(table).encode(json.loads(row)).shape)\n"
    code += "assert 'torch' not in sys.modules and 'pyarrow' not in sys.modules"
    folders = [str(bundles[key].folder) for key in (("ran", "image"), ("phase", "image"), ("filter", "table"))]
    shapes = alone(code, *folders, str(picture), str(secret), row).splitlines()
    assert shapes == ["(32, 1, 1)", "(1, 2, 16, 8, 8)", "(7,)"]
    assert (tmp_path / "secret.companies").exists()

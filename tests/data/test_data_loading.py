"""Every kind of source becomes the same kind of data set."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from data_samples import image_cells, png, table_columns, tone, wav, write

from sfumato.core.errors import DataError, UsageError
from sfumato.core.schema import Schema
from sfumato.data import describe, load, names


def test_importing_the_room_is_light() -> None:
    heavy = ("pyarrow", "PIL", "sklearn", "pandas", "torch", "mlxtend")
    code = f"import sys, sfumato.data; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_embedded_digits_need_no_download() -> None:
    data = load("digits", private="circle")
    assert data.x.shape == (5000, 1, 28, 28)
    assert data.x.dtype == np.float32 and data.x.min() == 0 and data.x.max() == 1
    circle = np.isin(data.label("digit"), [0, 6, 8, 9])
    assert (data.label("circle") == circle).all()
    assert data.schema.classes("circle") == ("no", "yes")


def test_derived_digit_labels_answer_their_question() -> None:
    data = load("digits", utility=["digit", "odd", "ge5", "small=digit < 3"], limit=100)
    digit = data.label("digit")
    assert (data.label("odd") == digit % 2).all()
    assert (data.label("ge5") == (digit >= 5)).all()
    assert (data.label("small") == (digit < 3)).all()


def test_limit_is_kept_about_and_seeded() -> None:
    one, two = load("digits", limit=200, seed=1), load("digits", limit=200, seed=1)
    assert abs(len(one) - 200) < 60
    assert one.ids.tolist() == two.ids.tolist() and (one.x == two.x).all()
    assert one.ids.tolist() != load("digits", limit=200, seed=2).ids.tolist()


def test_a_larger_limit_keeps_what_a_smaller_one_kept() -> None:
    few, many = (set(load("digits", limit=limit).ids.tolist()) for limit in (100, 300))
    assert few < many


def test_limit_keeps_record_and_label_together() -> None:
    whole, part = load("digits"), load("digits", limit=50)
    where = {name: place for place, name in enumerate(whole.ids.tolist())}
    for place, name in enumerate(part.ids.tolist()):
        assert (whole.x[where[name]] == part.x[place]).all()
        assert whole.label("digit")[where[name]] == part.label("digit")[place]


def test_encoded_images_are_scaled_and_channels_first(tmp_path: Path) -> None:
    colour = np.zeros((4, 6, 3), dtype=np.uint8)
    colour[..., 2] = 255
    path = write(tmp_path / "c.parquet", image=image_cells([png(colour)] * 3), label=pa.array([0, 1, 0]))
    data = load(path, utility="label")
    assert data.x.shape == (3, 3, 4, 6)
    assert data.x[:, 2].min() == 1 and data.x[:, :2].max() == 0


@pytest.mark.parametrize("kind", [pa.uint8(), pa.int64()])
def test_lists_of_pixels_are_images(tmp_path: Path, kind: pa.DataType) -> None:
    pixels = np.arange(3 * 64).reshape(3, 64)
    path = write(tmp_path / "p.parquet", pixels=pa.array(pixels.tolist(), pa.list_(kind)), y=pa.array(["a", "b", "a"]))
    data = load(path, utility="y")
    assert data.schema.kind == "image" and data.schema.shape == (1, 8, 8)
    np.testing.assert_allclose(data.x.reshape(3, 64), pixels / 255, atol=1e-6)


def test_flat_colour_pixels_take_the_shape_that_is_given(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.parquet",
        pixels=pa.array(np.zeros((2, 48), np.uint8).tolist(), pa.list_(pa.uint8(), 48)),
    )
    assert load(path, x="pixels:3x4x4").schema.shape == (3, 4, 4)
    with pytest.raises(DataError, match="do not fill"):
        load(path, x="pixels:3x5x5")


def test_npz_arrays_become_images_signals_and_vectors(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    label = np.array(["a", "b", "a", "b"])
    channels_last = rng.integers(0, 256, (4, 5, 6, 3), dtype=np.uint8)
    np.savez(tmp_path / "i.npz", x=channels_last, label=label)
    images = load(tmp_path / "i.npz", utility="label")
    assert images.schema.shape == (3, 5, 6)
    np.testing.assert_allclose(images.x, np.moveaxis(channels_last, -1, 1) / 255, atol=1e-6)
    signals = rng.normal(size=(4, 2, 9))
    np.savez_compressed(tmp_path / "s.npz", x=np.asfortranarray(signals), label=label)
    data = load(tmp_path / "s.npz", utility="label")
    assert data.schema.kind == "signal" and data.schema.shape == (2, 9)
    low, high = signals.min(axis=(0, 2)), signals.max(axis=(0, 2))
    np.testing.assert_allclose(data.schema.ranges, np.stack([low, high], axis=1))
    np.testing.assert_allclose(data.x, (signals - low[:, None]) / (high - low)[:, None], atol=1e-6)
    np.savez(tmp_path / "v.npz", x=signals[:, 0], label=label)
    vectors = load(tmp_path / "v.npz", utility="label")
    assert vectors.schema.kind == "table" and vectors.schema.shape == (9,)
    assert vectors.x.min() == 0 and vectors.x.max() == 1


def test_image_folder_labels_come_from_sub_folders(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        for place in range(3):
            file = tmp_path / "pets" / name / f"{place}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(png(np.full((4, 4), place * 10)))
    data = load(tmp_path / "pets")
    assert data.schema.classes("class") == ("cat", "dog")
    assert data.label("class").tolist() == [0, 0, 0, 1, 1, 1]
    (tmp_path / "pets" / "labels.csv").write_text("file,who,age\ncat/0.png,anna,3\ndog/2.png,bob,9\n")
    listed = load(tmp_path / "pets", utility="class", private="who", id="who")
    assert len(listed) == 2 and listed.ids.tolist() == ["anna", "bob"]
    (tmp_path / "pets" / "labels.csv").write_text("file,who\n../../etc/passwd,anna\n")
    with pytest.raises(DataError, match=r"line 2.*outside the folder"):
        load(tmp_path / "pets", utility="who")


def test_csv_and_parquet_of_the_same_table_load_alike(tmp_path: Path) -> None:
    import pyarrow.csv as pc

    path = write(tmp_path / "t.parquet", **table_columns())
    pc.write_csv(pa.table(table_columns()), tmp_path / "t.csv")
    a = load(path, utility="income", private="sex")
    b = load(tmp_path / "t.csv", utility="income", private="sex")
    np.testing.assert_allclose(a.x, b.x, atol=1e-6)
    assert a.schema.utility == b.schema.utility and [c.kind for c in a.schema.columns] == [
        c.kind for c in b.schema.columns
    ]
    assert (a.label("sex") == b.label("sex")).all()


def test_csv_numbers_that_turn_to_text_late_are_categories(tmp_path: Path) -> None:
    lines = ["v,y", *(f"{row % 7},{'ab'[row % 2]}" for row in range(9000)), "x,a"]
    (tmp_path / "late.csv").write_text("\n".join(lines))
    column = load(tmp_path / "late.csv", utility="y").schema.columns[0]
    assert column.kind == "categorical" and set(column.categories) == {*map(str, range(7)), "x"}


def test_labels_and_id_are_never_part_of_x(people: Path) -> None:
    data = load(people, utility="income", private=["sex", "old=age >= 50"])
    assert {column.name for column in data.schema.columns} == {"height", "job"}
    with pytest.raises(UsageError, match="cannot be part of x"):
        load(people, x=["height", "sex"], utility="income", private="sex")


def test_question_mark_empty_and_null_are_missing(tmp_path: Path) -> None:
    path = write(
        tmp_path / "m.parquet",
        number=pa.array([1.0, None, 3.0, float("nan")]),
        word=pa.array(["a", "?", "", None]),
        y=pa.array([0, 1, 0, 1]),
    )
    data = load(path, utility="y")
    number, word = data.schema.columns
    assert number.nullable and word.nullable and word.categories == ("a",)
    np.testing.assert_allclose(data.x, [[0, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1]])


def test_silence_and_a_full_scale_tone_fill_the_fixed_range(tmp_path: Path) -> None:
    sounds = [
        wav(np.zeros(8000)),
        wav(tone(1000)),
        wav(tone(1000, seconds=0.2), width=4),
        wav(tone(440), width=1),
    ]
    path = write(tmp_path / "a.parquet", audio=image_cells(sounds), label=pa.array([0, 1, 1, 1]))
    data = load(path, utility="label")
    assert data.schema.kind == "audio" and data.schema.shape == (1, 32, 32)
    assert data.x[0].max() == 0
    assert 0.9 < data.x[1].max() <= 1
    assert data.x[2, 0, :, 10:].max() == 0, "what follows the recording is silence"
    assert np.argmax(data.x[3, 0].mean(axis=1)) < np.argmax(data.x[1, 0].mean(axis=1)), "mels are ordered by pitch"


def test_a_recording_at_another_rate_gives_nearly_the_same_picture(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", audio=image_cells([wav(tone(700)), wav(tone(700, rate=16000), 16000)]))
    x = load(path).x
    assert np.abs(x[0] - x[1])[0, :24].mean() < 0.05


def test_class_names_of_the_hub_note_are_used(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    note = {"info": {"features": {"label": {"_type": "ClassLabel", "names": ["cat", "dog"]}}}}
    table = pa.table({"v": [1.0, 2.0], "label": [1, 0]}).replace_schema_metadata({"huggingface": json.dumps(note)})
    pq.write_table(table, tmp_path / "h.parquet")
    data = load(tmp_path / "h.parquet", utility="label")
    assert data.schema.classes("label") == ("cat", "dog") and data.label("label").tolist() == [1, 0]


# --- with a schema ---


def test_a_schema_survives_json_and_encodes_alike(people: Path) -> None:
    data = load(people, utility="rich=income in {high}", private="sex")
    schema = Schema.from_json(json.loads(json.dumps(data.schema.to_json())))
    again = load(people, schema=schema)
    assert (again.x == data.x).all() and (again.label("rich") == data.label("rich")).all()


def test_values_outside_the_training_range_are_clipped(tmp_path: Path, people: Path) -> None:
    schema = load(people, utility="income", private="sex").schema
    columns = table_columns(seed=1)
    columns["age"] = pa.array(np.where(np.arange(60) == 0, 500, -500))
    x = load(write(tmp_path / "new.parquet", **columns), schema=schema).x
    assert x[0, 0] == 1 and x[1, 0] == 0


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("job", "pilot", r"column 'job', row 7: 'pilot' is not among"),
        ("income", "none", r"column 'income', row 7: 'none' is not a class of 'income'"),
        ("sex", None, r"column 'sex', row 7: the label 'sex' is missing"),
        ("height", None, r"column 'height', row 7: the value is missing"),
        ("height", float("inf"), r"column 'height', row 7: the value is infinite"),
    ],
)
def test_what_training_never_had_is_named_with_file_column_and_row(
    tmp_path: Path, people: Path, column: str, value: object, said: str
) -> None:
    schema = load(people, utility="income", private="sex").schema
    columns = table_columns(rows=9)
    cells = columns[column].to_pylist()  # type: ignore[attr-defined]
    cells[7] = value
    path = write(tmp_path / "new.parquet", **{**columns, column: pa.array(cells)})
    with pytest.raises(DataError, match=r"new\.parquet, " + said) as caught:
        load(path, schema=schema)
    assert ";" in str(caught.value), "every message names a remedy"


def test_a_subset_still_names_the_row_of_the_file(tmp_path: Path, people: Path) -> None:
    schema = load(people, utility="income", private="sex").schema
    columns = table_columns(rows=60)
    jobs = columns["job"].to_pylist()  # type: ignore[attr-defined]
    columns["job"] = pa.array([*jobs[:41], *(["pilot"] * 19)])
    with pytest.raises(DataError, match=r"row 4\d|row 5\d"):
        load(write(tmp_path / "new.parquet", **columns), schema=schema, limit=30)


def test_labels_may_be_absent_where_none_are_needed(tmp_path: Path, people: Path) -> None:
    schema = load(people, utility="income", private="sex").schema
    columns = {name: cells for name, cells in table_columns().items() if name not in ("income", "sex")}
    path = write(tmp_path / "bare.parquet", **columns)
    assert load(path, schema=schema, require_labels=False).utility == {}
    with pytest.raises(DataError, match="label 'income' is missing"):
        load(path, schema=schema)
    with pytest.raises(DataError, match="column 'job': the column is missing"):
        load(write(tmp_path / "less.parquet", age=columns["age"], height=columns["height"]), schema=schema)


def test_another_image_size_is_a_fault(tmp_path: Path, pictures: Path) -> None:
    schema = load(pictures, utility="label").schema
    images = [png(np.zeros((8, 8))), png(np.zeros((9, 8)))]
    path = write(tmp_path / "new.parquet", image=image_cells(images))
    with pytest.raises(DataError, match=r"column 'image', row 1: the image is 1×9×8, expected 1×8×8"):
        load(path, schema=schema, require_labels=False)


# --- hostile and broken files ---


def test_unreadable_images_and_recordings_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "b.parquet", image=image_cells([png(np.zeros((4, 4))), b"not an image"]))
    with pytest.raises(DataError, match=r"row 1: the image cannot be read"):
        load(path)
    path = write(tmp_path / "a.parquet", audio=image_cells([wav(tone(500)), b"RIFF____WAVE"]))
    with pytest.raises(DataError, match=r"row 1: the recording cannot be read"):
        load(path)


def test_a_decompression_bomb_is_refused_before_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.data.encoding.images.MAX_PIXELS", 100)
    path = write(tmp_path / "big.parquet", image=image_cells([png(np.zeros((11, 11)))]))
    with pytest.raises(DataError, match="more than 100"):
        load(path)


def test_pickled_arrays_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "o.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="never loaded"):
        load(tmp_path / "o.npz")


def test_an_npz_header_that_lies_is_refused(tmp_path: Path) -> None:
    import io
    import zipfile

    body = io.BytesIO()
    np.lib.format.write_array_header_1_0(body, {"descr": "|u1", "fortran_order": False, "shape": (2**30, 28, 28)})
    with zipfile.ZipFile(tmp_path / "lie.npz", "w") as archive:
        archive.writestr("x.npy", body.getvalue() + b"\0" * 10)
    with pytest.raises(DataError, match="header promises"):
        load(tmp_path / "lie.npz")


@pytest.mark.parametrize("name", ["bad.parquet", "bad.npz", "bad.csv", "bad.xyz"])
def test_files_that_are_not_what_they_claim_are_data_errors(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\xff\xfe\x00garbage")
    with pytest.raises(DataError, match=name.replace(".", r"\.")):
        load(tmp_path / name)


def test_mistyped_names_suggest_the_right_one(people: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'mnist'"):
        load("mnsit")
    with pytest.raises(UsageError, match="did you mean 'income'"):
        load(people, utility="incom")
    with pytest.raises(UsageError, match="did you mean 'digit'"):
        load("digits", utility="digti")
    with pytest.raises(UsageError, match="has no part 'train'"):
        load("digits", part="train")
    with pytest.raises(DataError, match="does not exist"):
        load("nowhere/data.parquet")


def test_a_measured_column_has_no_classes(people: Path) -> None:
    with pytest.raises(DataError, match=r"a label needs classes.*'height >= 0.5'"):
        load(people, utility="height:class")


def test_describe_is_plain_json(people: Path) -> None:
    told = describe(load(people, utility="income", private="sex"))
    assert json.loads(json.dumps(told))["utility"]["income"]["classes"] == {"high": 40, "low": 20}
    assert told["records"] == 60 and told["kind"] == "table"


def test_every_registered_name_is_listed() -> None:
    assert names()[0] == "digits" and len(names()) == 13

"""The border lets through what was agreed and refuses everything else, whatever it is."""

from __future__ import annotations

import io
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flwr.app import Array
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfumato.parties.message_checks import (
    MessageRefused,
    check_arrays,
    check_encoder,
    check_hello,
    check_metrics,
    check_shared,
    check_size,
    plain_array,
)
from sfumato.parties.wire_precision import packed, steps, unpacked

HELLO = {
    "name": "a-1", "size": 4, "rows": 3, "held-out": 2, "schema": "s", "ids": "", "labels": '{"y": ["no", "yes"]}'
}  # fmt: skip
Z = np.arange(12, dtype=np.float32).reshape(3, 4)
Y = np.array([0, 1, 1], dtype=np.uint8)


def forged(**changes: Any) -> SimpleNamespace:
    """An honest array with some fields replaced."""
    good = Array(Z)
    fields = {"dtype": good.dtype, "shape": good.shape, "stype": good.stype, "data": good.data}
    return SimpleNamespace(**{**fields, **changes})


def shared(**changes: Any) -> dict[str, Any]:
    arrays = {"z": Array(Z), "label.y": Array(Y), **changes}
    return {"shared": arrays, "about": {"encoder": "e", "schema": "s", "wire": "float32"}}


def accept(content: dict[str, Any]) -> Any:
    return check_shared(content, encoder="e", schema="s", wire="float32", rows=3, classes={"y": 2})


@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)))
def test_an_honest_array_arrives_as_it_was(values: np.ndarray[Any, Any]) -> None:
    assert np.array_equal(plain_array(Array(values), "z", ("float32",)), values, equal_nan=True)


@settings(max_examples=300)
@given(
    st.binary(max_size=200),
    st.sampled_from(["float32", "object", "int64", "<U9", "", "void"]),
    st.lists(st.integers(-2, 2**62), max_size=3),
)
def test_garbage_is_refused_and_never_breaks_the_reader(data: bytes, dtype: str, shape: list[int]) -> None:
    with pytest.raises(MessageRefused):
        plain_array(
            SimpleNamespace(dtype=dtype, shape=tuple(shape), stype="numpy.ndarray", data=data), "z", ("float32",)
        )


@settings(max_examples=200)
@given(st.integers(0, 400), st.integers(0, 255))
def test_a_changed_byte_is_refused_or_changes_a_number_only(place: int, value: int) -> None:
    data = bytearray(Array(Z).data)
    data[place % len(data)] = value
    with suppress(MessageRefused):
        assert plain_array(forged(data=bytes(data)), "z", ("float32",), (3, 4)).shape == (3, 4)


def test_a_header_that_promises_terabytes_is_refused_unread() -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 4)})
    with pytest.raises(MessageRefused, match="length"):
        plain_array(forged(shape=(2**40, 4), data=stream.getvalue()), "z", ("float32",))


def test_pickled_objects_are_refused() -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(MessageRefused):
        plain_array(forged(dtype="object", shape=(1,), data=stream.getvalue()), "z", ("float32",))


def test_an_honest_share_is_accepted() -> None:
    found = accept(shared())
    assert np.array_equal(found.z, Z) and np.array_equal(found.labels["y"], Y)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"z": Array(np.where(Z == 5, np.nan, Z))}, "NaN"),
        ({"z": Array(np.where(Z == 5, np.inf, Z))}, "infinite"),
        ({"z": Array(Z[:2])}, "shape"),
        ({"z": Array(Z.ravel())}, "shape"),
        ({"z": Array(Z[:, :0])}, "0 numbers"),
        ({"z": Array(Z.astype(np.float64))}, "float64"),
        ({"z": forged(stype="pickle")}, "plain array"),
        ({"label.y": Array(Y[:2])}, "shape"),
        ({"label.y": Array(Y + 1)}, "outside 0 … 1"),
        ({"label.y": Array(Y.astype(np.int64) - 1)}, "outside"),
        ({"label.y": Array(Y.astype(np.float32))}, "float32"),
        ({"ids": Array(Y)}, "also has ids"),
        ({"mask": Array(Z[0])}, "also has mask"),
        ({"label.sex": Array(Y)}, "also has label.sex"),
    ],
)
def test_a_wrong_share_is_refused_with_its_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(MessageRefused, match=reason):
        accept(shared(**change))


def test_a_share_made_with_another_encoder_or_schema_is_refused() -> None:
    for field, reason in (("encoder", "another encoder"), ("schema", "another schema"), ("wire", "precision")):
        content = shared()
        content["about"][field] = "other"
        with pytest.raises(MessageRefused, match=reason):
            accept(content)


def test_an_encoder_that_is_not_what_its_digest_says_is_refused() -> None:
    about = {"params": "{}", "schema": "{}", "digest": "0" * 64}
    with pytest.raises(MessageRefused, match="digest"):
        check_encoder({"encoder": {"w": Array(Z)}, "about": about})
    with pytest.raises(MessageRefused, match="empty"):
        check_encoder({"encoder": {}, "about": about})
    with pytest.raises(MessageRefused, match="JSON"):
        check_encoder({"encoder": {"w": Array(Z)}, "about": {**about, "params": "[1]"}})


def test_a_hello_must_be_complete_and_plain() -> None:
    assert check_hello({"hello": HELLO}).utility == {"y": ("no", "yes")}
    for change in ({"name": "../up"}, {"rows": 0}, {"rows": True}, {"labels": "{"}, {"labels": '{"y": 2}'}, {"ids": 3}):
        with pytest.raises(MessageRefused):
            check_hello({"hello": {**HELLO, **change}})
    with pytest.raises(MessageRefused, match="also has seed"):
        check_hello({"hello": {**HELLO, "seed": 1}})


def test_a_report_holds_shares_and_the_number_of_records_that_was_named() -> None:
    good = {"rows": 90, "held-out": 7, "accuracy.y": 1}
    assert check_metrics({"metrics": good}, 7) == {"rows": 90.0, "held-out": 7.0, "accuracy.y": 1.0}
    odd: list[dict[str, Any]] = [
        {"a": float("nan")}, {"a": [1.0]}, {"a" * 201: 1.0}, {"accuracy.y": 1e300}, {"accuracy.y": -0.1},
        {"held-out": 0}, {"held-out": 10**18},
    ]  # fmt: skip
    for bad in odd:
        with pytest.raises(MessageRefused):
            check_metrics({"metrics": {**good, **bad}}, 7)
    with pytest.raises(MessageRefused, match="7 held-out records"):
        check_metrics({"metrics": {"accuracy.y": 0.9}}, 7)


def test_an_oversized_message_is_refused() -> None:
    check_size(10, 10)
    with pytest.raises(MessageRefused, match="11 bytes; 10 are allowed"):
        check_size(11, 10)


@pytest.mark.parametrize("wire", ["uint8", "uint4"])
@given(hnp.arrays(np.float32, (6, 3), elements=st.floats(-50, 50, width=32)))
def test_counted_numbers_are_off_by_half_a_step_at_most(wire: str, z: np.ndarray[Any, Any]) -> None:
    scale = steps(z, wire)
    sent = {"z": Array(packed(z, wire, **scale)), **{name: Array(values) for name, values in scale.items()}}
    found = check_arrays(sent, wire=wire, rows=6, classes={}, held_out=None).z
    assert found.shape == z.shape and (np.abs(found - z) <= scale["step"] * 0.501 + 1e-4).all()


def test_floats_are_sent_as_they_are() -> None:
    assert steps(Z, "float32") == {}
    assert np.array_equal(unpacked(packed(Z, "float32"), "float32"), Z)


def test_a_scale_that_does_not_fit_is_refused() -> None:
    scale = steps(Z, "uint4")
    good = {"z": packed(Z, "uint4", **scale), **scale}
    for name, value in (("low", scale["low"][:-1]), ("step", scale["step"][:-2]), ("low", scale["low"] * np.nan)):
        arrays = {key: Array(values) for key, values in {**good, name: value}.items()}
        with pytest.raises(MessageRefused):
            check_arrays(arrays, wire="uint4", rows=3, classes={}, held_out=None)

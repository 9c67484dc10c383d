"""A run of the app, client and server for real, in one process: who behaves gets the set, who does not is left out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from hall import RUN, SMALL, Hall, meet, outcome

from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import read_json, write_json
from sfumato.mechanisms.ars.published_encoder import Published
from sfumato.mechanisms.device_secret import make_secret
from sfumato.parties.byte_counter import wire_bytes
from sfumato.parties.message_checks import check_encoder
from sfumato.parties.partition import split_parties
from sfumato.parties.party_folder import DEVICE, open_party
from sfumato.parties.run_terms import Terms
from sfumato.testing.second_device import second_device


def got(out: Path, party: str) -> Any:
    return pq.read_table(out / party / str(RUN) / "shared.parquet")


def copy(folders: list[Path], to: Path) -> list[Path]:
    return [Path(shutil.copytree(folder, to / folder.name)) for folder in folders]


def kinds(hall: Hall) -> list[str]:
    return [message.metadata.message_type for message in hall.seen]


class Held:
    """A run that went well, for several tests to look at; nobody changes it."""

    def __init__(self, folders: list[Path], out: Path) -> None:
        self.out, self.hall = out, meet(folders, out)
        self.result = outcome(out)

    def question(self, kind: str, node: int) -> Message:
        """A copy of what a node was asked."""
        asked = [m for m in self.hall.seen if m.metadata.message_type == f"query.{kind}"]
        content = next(m.content for m in asked if m.metadata.dst_node_id == node)
        own = RecordDict({name: type(record)(dict(record)) for name, record in content.items()})
        question = Message(own, node, f"query.{kind}")
        question.metadata.__dict__["_message_id"] = "again"
        return question

    def answer(self, question: Message, node: int, out: Path, *, again: bool = False) -> Message:
        """What the node says to that, with a copy of its folder below ``out``: as it was before it had answered, or
        after that (``again``)."""
        node_config = self.hall.nodes[node].node_config
        own = Path(str(node_config["out"]))
        there = {**node_config, "out": str(shutil.copytree(own, out / own.name))}
        marks = {"query.share": ("joined.json", "card.json"), "query.learn": ("card.json",)}
        if not again:
            for mark in marks.get(question.metadata.message_type, ()):
                (out / own.name / str(RUN) / mark).unlink()
        return self.hall.app(question, Context(RUN, node, there, RecordDict(), {}))


@pytest.fixture(scope="module")
def held(trio: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Held:
    return Held(trio, tmp_path_factory.mktemp("held"))


def test_every_party_ends_with_the_same_set_and_a_classifier(held: Held) -> None:
    result, tmp_path = held.result, held.out
    assert result.shared == ("party-0", "party-1", "party-2")
    assert all(party.accuracy is not None and party.rows > 90 for party in result.parties)
    tables = [got(tmp_path, name) for name in result.shared]
    assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])
    assert tables[0].column_names == [*(f"z{i}" for i in range(8)), "digit", "party"]
    assert tables[0].num_rows == sum(party.rows for party in result.parties) and set(
        tables[0].column("digit").to_pylist()
    ) <= set("0123456789")
    assert "not raw records" in (tmp_path / "party-1" / str(RUN) / "README.md").read_text()
    assert read_json(tmp_path / "server" / "status.json")["state"] == "done"


def test_only_representations_labels_encoder_digests_and_metrics_cross(held: Held) -> None:
    hall = held.hall
    allowed = {
        "query.hello": {"terms", "hello"},
        "query.publish": {"terms", "encoder", "about"},
        "query.share": {"terms", "encoder", "about", "shared"},
        "query.learn": {"terms", "shared", "metrics"},
    }
    for message in hall.seen:
        assert set(message.content) <= allowed[message.metadata.message_type]
        for name, record in message.content.items():
            if isinstance(record, ArrayRecord) and name == "shared":
                assert {key.rpartition("/")[2] for key in record} <= {"z", "label.digit"}
            if isinstance(record, ConfigRecord):
                assert "ge5" not in str(dict(record)), "a private label was named"
    encoders = [m.content["encoder"] for m in hall.seen if "encoder" in m.content]
    assert all(not [name for name in record if "decoder" in name] for record in encoders)


def change_z(change: Callable[[Any], Any]) -> Callable[[Message], Message]:
    def tamper(reply: Message) -> Message:
        record = reply.content["shared"]
        record["z"] = Array(change(record["z"].numpy().copy()))
        return reply

    return tamper


def garbage(reply: Message) -> Message:
    z = reply.content["shared"]["z"]
    z.data = b"\x93NUMPY" + b"\xff" * (len(z.data) - 6)
    return reply


def more(reply: Message) -> Message:
    reply.content["shared"]["ids"] = Array(np.arange(120))
    return reply


def other_encoder(reply: Message) -> Message:
    reply.content["about"]["encoder"] = "f" * 64
    return reply


def labels_beyond(reply: Message) -> Message:
    record = reply.content["shared"]
    record["label.digit"] = Array(record["label.digit"].numpy() + 1)
    return reply


@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        (change_z(lambda z: np.where(z == z[0, 0], np.nan, z).astype(np.float32)), "NaN"),
        (change_z(lambda z: z[:-1]), "shape"),
        (change_z(lambda z: z[:, :-1]), "7 numbers per record, the others have 8"),
        (change_z(lambda z: z.astype("complex64")), "complex64"),
        (change_z(lambda z: np.tile(z, (400, 1))), "bytes; 1,200,000 are allowed"),
        (garbage, "garbage"),
        (more, "also has ids"),
        (other_encoder, "another encoder"),
        (labels_beyond, "codes outside 0 … 9"),
        (lambda _: None, "no answer within 0.2 seconds"),
    ],
    ids=["nan", "rows", "width", "dtype", "oversized", "garbage", "extra", "encoder", "labels", "late"],
)
def test_a_bad_party_is_reported_and_the_rest_go_on(
    trio: list[Path], tmp_path: Path, tamper: Callable[[Message], Message | None], reason: str
) -> None:
    meet(trio, tmp_path, {(3, "share"): tamper}, most_bytes=1_200_000)
    result = outcome(tmp_path)
    bad = result.parties[2]
    assert (bad.status, bad.rows) == ("excluded", 0) and reason in bad.reason and "(share)" in bad.reason
    assert result.shared == ("party-0", "party-1") and result.accuracy is not None
    assert set(got(tmp_path, "party-0").column("party").to_pylist()) == {"party-0", "party-1"}
    assert not (tmp_path / "party-2" / str(RUN) / "shared.parquet").exists()


def test_a_party_can_protect_later_records_in_the_same_way(held: Held, trio: list[Path]) -> None:
    from sfumato.mechanisms import load_mechanism

    tmp_path = held.out
    party = open_party({"data": str(trio[1])}, RUN)
    pipeline = load_mechanism(tmp_path / "party-1" / str(RUN) / "mechanism")
    again = pipeline.release(party.records("train"), seed=party.seed_for("release")).payload
    table = got(tmp_path, "party-1").filter(pa.compute.equal(got(tmp_path, "party-1").column("party"), "party-1"))
    assert np.array_equal(again, np.stack([table.column(f"z{i}").to_numpy() for i in range(8)], axis=1))


def test_the_initiator_refuses_another_encoder_than_its_own(held: Held, tmp_path: Path) -> None:
    question = held.question("share", 1)
    assert "encoder" not in question.content
    question.content["terms"]["encoder"] = "b" * 64
    assert dict(held.answer(question, 1, tmp_path).content["refused"])["why"] == "terms"


def test_a_party_that_says_nothing_at_the_end_stays_in_the_set(trio: list[Path], tmp_path: Path) -> None:
    meet(trio, tmp_path, {(2, "learn"): lambda _: None})
    result = outcome(tmp_path)
    assert result.parties[1].status == "shared" and "no answer" in result.parties[1].reason
    assert len(result.shared) == 3 and result.parties[1].accuracy is None and result.accuracy is not None


def test_one_party_alone_is_an_error(trio: list[Path], tmp_path: Path) -> None:
    silent = {(2, "share"): lambda _: None, (3, "share"): garbage}
    with pytest.raises(DataError, match=r"1 party is left and 2 are needed .*party-1: no answer.*party-2: .*garbage"):
        meet(trio, tmp_path, silent)
    assert read_json(tmp_path / "server" / "error.json")["kind"] == "DataError"


def test_an_initiator_that_fails_ends_the_run_clearly(trio: list[Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="initiator 'party-1' published no encoder: no answer"):
        meet(trio, tmp_path / "a", {(2, "publish"): lambda _: None}, initiator="party-1")
    with pytest.raises(DataError, match="initiator 'hospital' is not there; present: party-0, party-1, party-2"):
        meet(trio, tmp_path / "b", initiator="hospital")


def test_different_schemas_end_the_run_before_anything_is_shared(trio: list[Path], tmp_path: Path) -> None:
    folders = copy(trio, tmp_path / "own")
    schema = read_json(folders[1] / "schema.json")
    schema["ranges"] = [[0.0, 17.0]]
    write_json(folders[1] / "schema.json", schema)
    hall = Hall(folders, tmp_path)
    from sfumato.parties.server import serve

    with pytest.raises(DataError, match=r"different schemas \(unlike the others: party-1\). Nothing was shared"):
        serve(hall, Terms(out=str(tmp_path / "server"), params=SMALL, wait=0.1), str(RUN))
    assert set(kinds(hall)) == {"query.hello"}


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"lam": "0.5,0.5"}, "lam in its party.toml"),
        ({"latnt": 3}, "did you mean 'latent'"),
    ],
)
def test_wrong_settings_are_refused_before_anyone_is_asked(params: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Terms(out="x", params=params)


def test_a_party_with_wrong_weights_is_excluded_at_the_door(trio: list[Path], tmp_path: Path) -> None:
    folders = copy(trio, tmp_path / "own")
    with (folders[2] / "party.toml").open("a") as file:
        file.write('lam = "0.9,0.9"\n')
    meet(folders, tmp_path)
    assert "does not agree to the terms" in outcome(tmp_path).parties[2].reason
    assert "add up to 1" in (tmp_path / "party-2" / str(RUN) / "refused.txt").read_text()


@pytest.mark.parametrize("choice", ["least_epsilon = 2.0", 'variant = "hardened"'])
def test_a_party_does_not_share_with_another_defence_than_it_wants(
    trio: list[Path], tmp_path: Path, choice: str
) -> None:
    folders = copy(trio, tmp_path / "own")
    with (folders[2] / "party.toml").open("a") as file:
        file.write(f"{choice}\n")
    hall = meet(folders, tmp_path)
    assert "(hello)" in outcome(tmp_path).parties[2].reason
    assert not [m for m in hall.seen if m.metadata.src_node_id == 3 and "shared" in m.content]


def test_an_encoder_from_another_initiator_is_refused_before_sharing(trio: list[Path], tmp_path: Path) -> None:
    folders = copy(trio, tmp_path / "own")
    with (folders[2] / "party.toml").open("a") as file:
        file.write(f'encoder = "{"a" * 64}"\n')
    hall = meet(folders, tmp_path)
    assert "does not agree" in outcome(tmp_path).parties[2].reason
    assert "another initiator" in (tmp_path / "party-2" / str(RUN) / "refused.txt").read_text()
    assert not [m for m in hall.seen if m.metadata.src_node_id == 3 and "shared" in m.content]


def test_a_tampered_encoder_is_refused(held: Held, tmp_path: Path) -> None:
    question = held.question("share", 2)
    name = next(iter(question.content["encoder"]))
    question.content["encoder"][name] = Array(question.content["encoder"][name].numpy() + 1)
    reply = held.answer(question, 2, tmp_path)
    assert dict(reply.content["refused"]) == {"why": "terms", "name": "party-1"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("wire", "float64"),
        ("names", '["party-0", "party-1", "../party-2"]'),
        ("names", '["party-0", "party-1", "party-0"]'),
        ("names", '{"party-0": 1}'),
        ("names", '["party-0", "party-1"]'),
    ],
    ids=["wire", "path", "twice", "no list", "too few"],
)
def test_a_party_checks_what_the_server_sends_at_the_end(held: Held, key: str, value: str, tmp_path: Path) -> None:
    question = held.question("learn", 2)
    question.content["terms"][key] = value
    assert dict(held.answer(question, 2, tmp_path).content["refused"])["why"] == "terms"


@pytest.mark.parametrize(("kind", "node"), [("publish", 1), ("share", 2), ("learn", 2)])
def test_a_party_answers_once_in_a_run(held: Held, kind: str, node: int, tmp_path: Path) -> None:
    refused = held.answer(held.question(kind, node), node, tmp_path, again=True).content["refused"]
    assert dict(refused)["why"] == "terms"
    (told,) = tmp_path.glob("*/*/refused.txt")
    assert "already answered this request" in told.read_text()


def test_a_party_that_reports_nonsense_does_not_spoil_the_others_result(trio: list[Path], tmp_path: Path) -> None:
    def boast(reply: Message) -> Message:
        reply.content["metrics"]["accuracy.digit"] = 1e300
        return reply

    meet(trio, tmp_path, {(2, "learn"): boast})
    found = {party.name: party for party in outcome(tmp_path).parties}
    assert outcome(tmp_path).accuracy is not None and found["party-1"].accuracy is None
    assert "between 0 and 1" in found["party-1"].reason


def test_a_party_does_not_let_its_noise_be_drawn_anew(held: Held, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="keyed"):
        Terms(out="x", params={"keyed": False})
    question = held.question("share", 2)
    encoder = check_encoder({name: question.content[name] for name in ("encoder", "about")})
    forged = Published({**encoder.params, "keyed": False}, encoder.schema, encoder.tensors)
    question.content["about"]["params"] = json.dumps(dict(forged.params))
    question.content["about"]["digest"] = question.content["terms"]["encoder"] = forged.digest
    assert dict(held.answer(question, 2, tmp_path).content["refused"])["why"] == "data"
    (told,) = tmp_path.glob("*/*/refused.txt")
    assert "see 'keyed'" in told.read_text()


def test_a_party_that_lies_about_its_records_is_found_at_the_door(trio: list[Path], tmp_path: Path) -> None:
    for place, (key, value) in enumerate((("size", 10**12), ("labels", '{"digit": ["0", "1"]}'))):

        def lie(reply: Message, key: str = key, value: Any = value) -> Message:
            reply.content["hello"][key] = value
            return reply

        with pytest.raises(DataError, match=r"different schemas \(unlike the others: party-0\)"):
            meet(trio, tmp_path / str(place), {(1, "hello"): lie}, mode="fedavg", params={}, rounds=1)


def test_what_goes_wrong_before_a_folder_is_open_stays_here_too(
    held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise OSError("/home/clinic/ward-7 cannot be read")

    monkeypatch.setattr("sfumato.parties.client.open_party", broken)
    reply = held.answer(held.question("hello", 2), 2, tmp_path)
    assert not reply.has_error() and dict(reply.content["refused"]) == {"why": "settings", "name": "nameless"}


def test_a_failure_says_nothing_of_the_records(trio: list[Path], tmp_path: Path) -> None:
    folders = copy(trio, tmp_path / "own")
    table = pq.read_table(folders[2] / "train.parquet")
    bad = table.set_column(table.column_names.index("label"), "label", pa.array([4711] * table.num_rows))
    pq.write_table(bad, folders[2] / "train.parquet")
    hall = meet(folders, tmp_path)
    assert "its own log says why" in outcome(tmp_path).parties[2].reason
    assert "4711" in (tmp_path / "party-2" / str(RUN) / "refused.txt").read_text()
    assert all("4711" not in str(dict(m.content)) for m in hall.seen)


def test_without_a_seed_the_mask_comes_from_a_secret_that_stays(trio: list[Path], tmp_path: Path) -> None:
    folders = copy(trio, tmp_path / "own")
    for folder in folders:
        text = f'name = "{folder.name}"\nlike = "digits"\ninitiator = true\n[accepts]\nepochs = 1\n'
        (folder / "party.toml").write_text(text)
    with pytest.raises(DataError, match="sfumato device init"):
        open_party({"data": str(folders[0])}, RUN).secret()
    for folder in folders:
        make_secret(folder / "secret")
    hall = meet(folders, tmp_path, params={"epochs": 1, "latent": 8})
    secrets = [(folder / "secret").read_bytes() for folder in folders]
    assert len(set(secrets)) == 3 and all(len(secret) == 32 for secret in secrets)
    assert (folders[0] / "secret").stat().st_mode & 0o077 == 0
    from sfumato.parties.byte_counter import serialised

    crossed = b"".join(piece for message in hall.seen for piece in serialised(message))
    assert all(secret not in crossed for secret in secrets)


def test_fewer_bits_take_fewer_bytes_and_all_still_have_the_same_set(trio: list[Path], tmp_path: Path) -> None:
    sizes, encoders = [], []
    for wire in ("float32", "float16", "uint8", "uint4"):
        hall = meet(trio, tmp_path / wire, wire=wire)
        sizes.append(sum(wire_bytes(m) for m in hall.seen if "shared" in m.content and "about" in m.content))
        encoders.append(outcome(tmp_path / wire).by_phase["publish"]["up"])
        tables = [got(tmp_path / wire, f"party-{number}") for number in range(3)]
        assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])
        assert outcome(tmp_path / wire).shared == ("party-0", "party-1", "party-2")
    numbers = 3 * 120 * 8
    assert sizes[0] - sizes[1] == pytest.approx(2 * numbers, rel=0.02)
    assert sizes[2] - sizes[3] == pytest.approx(numbers / 2, rel=0.02)
    assert encoders[1] == encoders[2] == encoders[3] < 0.53 * encoders[0]


def test_counted_bytes_are_those_of_the_messages(held: Held) -> None:
    hall, result = held.hall, held.result
    up = [m for m in hall.seen if m.metadata.reply_to_message_id]
    assert result.bytes_up == sum(map(wire_bytes, up))
    assert result.bytes_up == sum(party.bytes_up for party in result.parties)
    assert result.by_phase["share"]["up"] > 3 * 120 * (8 * 4 + 1)
    assert result.bytes_down == sum(one["down"] for one in result.by_phase.values())


def test_a_party_takes_part_in_federated_averaging_only_if_it_says_so(trio: list[Path], tmp_path: Path) -> None:
    folders = copy(trio, tmp_path / "own")
    (folders[2] / "party.toml").write_text('name = "party-2"\nlike = "digits"\n')
    hall = meet(folders, tmp_path, mode="fedavg", params={}, rounds=1)
    assert {m.metadata.dst_node_id for m in hall.seen if m.metadata.message_type == "train"} == {0, 1, 2}
    question = next(m for m in hall.seen if m.metadata.message_type == "train" and m.metadata.src_node_id == 0)
    assert hall.app(question, hall.nodes[3]).has_error()


def test_two_parties_of_one_name_are_an_error(trio: list[Path], tmp_path: Path) -> None:
    folders = copy(trio, tmp_path / "own")
    (folders[1] / "party.toml").write_text('name = "party-0"\nlike = "digits"\nseed = 1\n')
    with pytest.raises(DataError, match="two parties are called 'party-0'"):
        meet(folders, tmp_path)


def test_a_node_without_a_folder_does_not_read_where_the_server_points(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--node-config"):
        open_party({"partition-id": 0}, RUN)


def test_each_party_hides_its_own_label_with_a_filter_and_one_with_nothing_to_hide_refuses(tmp_path: Path) -> None:
    folders = split_parties(
        "digits", tmp_path / "p", parties=3, utility=["odd"], private=["ge5"], limit=450, repeatable=True
    )
    schema = read_json(folders[2] / "schema.json")
    write_json(folders[2] / "schema.json", {**schema, "private": {}})
    hall = meet(folders, tmp_path, mode="filter", params={"latent": 4, "epochs": 40, "steps": 50, "budget": 50.0})
    result = outcome(tmp_path)
    assert result.shared == ("party-0", "party-1")
    assert "its records cannot be used" in result.parties[2].reason
    assert got(tmp_path, "party-1").column_names == ["z0", "z1", "z2", "z3", "odd", "party"]
    assert read_json(tmp_path / "party-0" / str(RUN) / "card.json")["mechanism"] == "filter"
    assert all("ge5" not in str(dict(m.content)) for m in hall.seen)
    encoder = next(m.content["encoder"] for m in hall.seen if "encoder" in m.content)
    assert encoder and not [name for name in encoder if "filter" in name]
    question = next(m for m in hall.seen if m.metadata.message_type == "query.share" and m.metadata.dst_node_id == 2)
    encoder = check_encoder({name: question.content[name] for name in ("encoder", "about")})
    forged = Published({**encoder.params, "output": "data"}, encoder.schema, encoder.tensors)
    question.content["about"]["params"] = json.dumps(dict(forged.params))
    question.content["about"]["digest"] = question.content["terms"]["encoder"] = forged.digest
    (tmp_path / "party-1" / str(RUN) / "joined.json").unlink()  # as before it shared
    assert dict(hall.app(question, hall.nodes[2]).content["refused"])["why"] == "data"


def test_parties_may_compute_on_another_device(trio: list[Path], tmp_path: Path) -> None:
    with second_device():
        meet(trio, tmp_path)
    assert outcome(tmp_path).shared == ("party-0", "party-1", "party-2")


def test_a_party_without_the_device_that_it_was_told_refuses(
    trio: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEVICE, "a fast one")
    with pytest.raises(DataError):
        meet(trio, tmp_path)
    assert "--device is 'a fast one'" in (tmp_path / "party-0" / str(RUN) / "refused.txt").read_text()

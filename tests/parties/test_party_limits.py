"""A party's floor is its own: no server and no initiator gets more out of it than it agreed to."""

from __future__ import annotations

import json
import math
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from hall import RUN, Hall, meet, outcome
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import UsageError
from sfumato.core.run_folder import read_json, write_json
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.mechanisms.ars.published_encoder import Published
from sfumato.mechanisms.device_secret import make_secret
from sfumato.parties import party_mechanisms, pooled_learning, simulation
from sfumato.parties.message_checks import check_encoder
from sfumato.parties.party_folder import open_party
from sfumato.parties.party_limits import ACCEPTS, PartyLimits, signal, spend
from sfumato.parties.run_terms import Terms

SAFE = PartyLimits.chosen({})
BRIEF = {"epochs": 5}
"""As few as a party accepts by default."""


def settled(folders: list[Path], to: Path, more: str = "") -> list[Path]:
    """The folders of parties that are no experiment: they have the default limits, and ``more``."""
    copies = [Path(shutil.copytree(folder, to / folder.name)) for folder in folders]
    for copy in copies:
        text = f'name = "{copy.name}"\nlike = "digits"\ninitiator = {str(copy.name == "party-0").lower()}\n{more}'
        (copy / "party.toml").write_text(text)
        make_secret(copy / "secret")
    return copies


def ask(hall: Hall, kind: str, content: dict[str, Any], node: int = 2, run: int = RUN) -> dict[str, Any]:
    """What a node says to a message."""
    question = Message(RecordDict(content), node, kind)
    question.metadata.__dict__["_message_id"] = "asked"
    reply = hall.app(question, Context(run, node, hall.nodes[node].node_config, RecordDict(), {}))
    return {"error": True} if reply.has_error() else {name: dict(each) for name, each in reply.content.items()}


def hello(hall: Hall, params: dict[str, Any], node: int = 2) -> dict[str, Any]:
    terms = ConfigRecord({"mode": "horizontal", "salt": "s", "params": json.dumps(params)})
    return ask(hall, "query.hello", {"terms": terms}, node)


def reason(out: Path) -> str:
    (told,) = out.glob(f"party-1/{RUN}*/refused.txt")
    return told.read_text()


@pytest.fixture(scope="module")
def door(trio: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Hall:
    """Three parties with the default limits, whom a server may ask."""
    out = tmp_path_factory.mktemp("door")
    return Hall(settled(trio, out / "own"), out)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"keep": 1024}, "1024 numbers with epsilon=1 have a signal of 1024, above most_signal=64"),
        ({"latent": 65}, "above most_signal=64"),
        ({"epsilon": 0.99}, "below least_epsilon=1"),
        ({"epsilon": 0}, "below least_epsilon=1"),
        ({"variant": "published"}, "variant=published is not the one that party-1 requires, hardened"),
        ({"keep": 4096, "epsilon": 100.0}, "keep=4096 is not what party-1 accepts, 0 … 1024"),
        ({"strength": 0.0}, "strength=0.0 is not what party-1 accepts, 0.1 … 10"),
        ({"epochs": 1}, "epochs=1"),
        ({"epochs": 10_000}, "epochs=10000"),
        ({"rate": 1e-5}, "rate=1e-05"),
        ({"batch": 65_536}, "batch=65536"),
        ({"n": 1}, "n=1"),
        ({"masked": False}, "masked=False is not what party-1 accepts, True"),
        ({"keyed": False}, "keyed"),
    ],
)
def test_weaker_terms_than_a_partys_own_are_refused_at_the_door(door: Hall, params: dict[str, Any], said: str) -> None:
    assert hello(door, params)["refused"] == {"why": "terms", "name": "party-1"}
    assert said in reason(Path(str(door.nodes[2].node_config["out"])).parent)


@pytest.mark.parametrize("params", [{}, BRIEF, {"keep": 1024, "epsilon": 4.0}, {"latent": 16, "strength": 1}])
def test_the_defaults_and_what_has_no_more_signal_are_accepted(door: Hall, params: dict[str, Any]) -> None:
    assert "hello" in hello(door, params)


@pytest.mark.parametrize("mode", party_mechanisms.MODES)
def test_every_setting_of_a_run_has_a_limit_and_its_default_is_inside(mode: str) -> None:
    known = party_mechanisms.settings(mode)
    assert set(known) - {"epsilon", "variant"} <= set(ACCEPTS)
    SAFE.check(known, "x")
    SAFE.check_noise(ARS().epsilon, ARS().width, ARS().variant, "x")


@pytest.mark.parametrize(("setting", "by"), [("beta", 0.01), ("adversary_steps", -1), ("budget", -1), ("steps", -1)])
def test_no_setting_of_a_filter_may_be_weaker_than_its_default(setting: str, by: float) -> None:
    default = party_mechanisms.settings("filter")[setting]
    with pytest.raises(UsageError, match=setting):
        SAFE.check({setting: default + by}, "x")


def test_a_question_for_labels_holds_nothing_else(door: Hall) -> None:
    assert "labels" in ask(door, "query.labels", {})
    assert ask(door, "query.labels", {"terms": ConfigRecord({})})["refused"]["why"] == "terms"


def test_a_hello_tells_nothing_of_private_labels(trio: list[Path], tmp_path: Path) -> None:
    answers = []
    for place, sources in enumerate(({}, {"ge5": "label >= 5"}, {"ge5": "label >= 5", "ge3": "label >= 3"})):
        folders = settled(trio, tmp_path / str(place))
        schema = read_json(folders[1] / "schema.json")
        private = {label: ["no", "yes"] for label in sources}
        changed = {"private": private, "sources": {"digit": "label", **sources}}
        write_json(folders[1] / "schema.json", {**schema, **changed})
        hall = Hall(folders, tmp_path / str(place))
        probes = [{}, {"lam": ""}, {"lam": "1"}, {"lam": "0.5,0.5"}, {"lam": "0.5,0.25,0.25"}, {"lam": "0,1"}]
        answers.append([hello(hall, probe) for probe in probes])
    assert len(open_party({"data": str(folders[1])}, RUN).records("train").private) == 2
    assert answers[0] == answers[1] == answers[2]
    assert "hello" in answers[0][0] and "refused" in answers[0][3]


class Meeting:
    """A run of parties with the default limits, and what its server or initiator may try afterwards."""

    def __init__(self, folders: list[Path], out: Path) -> None:
        self.folders, self.out = folders, out
        self.hall = meet(folders, out, params=BRIEF, timeout=60.0)
        asked = [m for m in self.hall.seen if m.metadata.message_type == "query.share"]
        content = next(m.content for m in asked if m.metadata.dst_node_id == 2)
        self.terms = dict(content["terms"])
        self.encoder = check_encoder({name: content[name] for name in ("encoder", "about")})

    def learning(self, **terms: str) -> dict[str, Any]:
        """What the server asks a party at the end, with other terms."""
        asked = [m for m in self.hall.seen if m.metadata.message_type == "query.learn" and "terms" in m.content]
        content = dict(next(m.content for m in asked if m.metadata.dst_node_id == 2))
        return {**content, "terms": ConfigRecord({**content["terms"], **terms})}

    def share(self, encoder: Published, folder: Path, out: Path) -> dict[str, Any]:
        """What a party answers to an encoder."""
        hall = Hall([self.folders[0], folder], out)
        about = {"params": json.dumps(dict(encoder.params)), "schema": json.dumps(dict(encoder.schema))}
        content = {
            "terms": ConfigRecord({**self.terms, "encoder": encoder.digest}),
            "encoder": ArrayRecord({name: Array(values) for name, values in encoder.tensors.items()}),
            "about": ConfigRecord({**about, "digest": encoder.digest}),
        }
        return ask(hall, "query.share", content)


@pytest.fixture(scope="module")
def meeting(trio: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Meeting:
    out = tmp_path_factory.mktemp("meeting")
    return Meeting(settled(trio, out / "own"), out)


def scaled(encoder: Published, factor: float) -> Published:
    last = [name for name in encoder.tensors if name.endswith("running_var")][-1]
    tensors = {**encoder.tensors, last: encoder.tensors[last] * np.float32(factor)}
    return Published(encoder.params, encoder.schema, tensors)


def test_parties_with_the_default_limits_meet_under_the_default_terms(meeting: Meeting) -> None:
    assert outcome(meeting.out).shared == ("party-0", "party-1", "party-2")
    for folder in meeting.folders:
        (note,) = (folder / "sent").glob("*.json")
        assert read_json(note) == {"signal": 64.0}
        assert meeting.encoder.digest not in note.name


def test_an_encoder_that_was_scaled_up_carries_no_more_signal(
    meeting: Meeting, trio: list[Path], tmp_path: Path
) -> None:
    (folder,) = settled(trio[1:2], tmp_path / "own")
    reply = meeting.share(scaled(meeting.encoder, 1e-10), folder, tmp_path)
    sent = reply["shared"]["z"].numpy()
    party = open_party({"data": str(folder)}, RUN)
    pipeline: Any = load_mechanism(tmp_path / "party-1" / str(RUN) / "mechanism")
    latents = pipeline.parties_[0].latents(party.records("train").x)
    assert (sent - latents).std() == pytest.approx(1.0, rel=0.05)
    assert (latents**2).sum(axis=1).max() <= 64 * (1 + 1e-5)
    assert np.abs(sent).max() < 8 + 8.6  # the radius, and the largest number that the noise can be


def test_an_encoder_of_many_numbers_with_little_noise_is_refused(
    meeting: Meeting, trio: list[Path], tmp_path: Path
) -> None:
    (folder,) = settled(trio[1:2], tmp_path / "own")
    wide = ARS(**BRIEF, keep=512).fit(open_party({"data": str(trio[0])}, RUN).records("train")).publish()
    assert meeting.share(wide, folder, tmp_path)["refused"]["why"] == "terms"
    assert "512 numbers with epsilon=1 have a signal of 512" in reason(tmp_path)
    assert not (folder / "sent").exists()


def test_runs_under_other_encoders_add_up_and_the_same_encoder_is_free(
    meeting: Meeting, trio: list[Path], tmp_path: Path
) -> None:
    (folder,) = settled(trio[1:2], tmp_path / "own")
    first = meeting.share(meeting.encoder, folder, tmp_path / "first")["shared"]["z"].numpy()
    again = meeting.share(meeting.encoder, folder, tmp_path / "again")["shared"]["z"].numpy()
    assert np.array_equal(first, again)
    other = scaled(meeting.encoder, 1.001)
    assert meeting.share(other, folder, tmp_path / "other")["refused"]["why"] == "terms"
    assert "a signal of 128 would have left party-1" in reason(tmp_path / "other")
    with (folder / "party.toml").open("a") as file:
        file.write("most_signal = 128\n")
    assert "shared" in meeting.share(other, folder, tmp_path / "raised")


def test_a_party_is_tested_once_under_an_encoder_in_whatever_run_and_folder(meeting: Meeting, tmp_path: Path) -> None:
    """Runs under one encoder cost no signal: without end, tests would spell out the labels of held-out records."""
    assert "shared" in meeting.share(meeting.encoder, meeting.folders[1], tmp_path)
    reply = ask(Hall(meeting.folders[:2], tmp_path), "query.learn", meeting.learning())
    assert reply["refused"]["why"] == "terms" and "tested a classifier under this encoder before" in reason(tmp_path)


def test_a_server_cannot_turn_a_run_into_one_of_columns_at_the_end(
    meeting: Meeting, trio: list[Path], tmp_path: Path
) -> None:
    """It would lay columns of its choice beside held-out records, whose labels it must not know."""
    (folder,) = settled(trio[1:2], tmp_path / "own")
    assert "shared" in meeting.share(meeting.encoder, folder, tmp_path)
    hall = Hall([meeting.folders[0], folder], tmp_path)
    assert "refused" in ask(hall, "query.learn", meeting.learning(mode="vertical"))
    assert "not made in the mode" in reason(tmp_path)
    assert "metrics" in ask(hall, "query.learn", meeting.learning())


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0.0, 50.0)), max_size=12))
def test_whatever_is_asked_the_signals_of_all_releases_stay_below_the_limit(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[str, float]]
) -> None:
    folder = tmp_path_factory.mktemp("spent")
    left: dict[str, float] = {}
    for name, amount in asked:
        try:
            spend(folder, name, amount, SAFE, "x")
        except UsageError:
            assert name not in left and sum(left.values()) + amount > SAFE.most_signal
        else:
            left.setdefault(name, amount)
        assert sum(left.values()) <= SAFE.most_signal


def test_of_runs_that_ask_at_once_as_many_are_served_as_the_limit_allows(tmp_path: Path) -> None:
    def served(name: str) -> bool:
        gate.wait()
        try:
            spend(folder, name, 64.0, SAFE, "x")
        except UsageError:
            return False
        return True

    for turn in range(20):
        folder, gate = tmp_path / str(turn), threading.Barrier(6)
        folder.mkdir()
        with ThreadPoolExecutor(6) as runs:
            found = dict(zip("abcdef", runs.map(served, "abcdef"), strict=True))
        assert sum(found.values()) == 1
        assert [note.stem for note in (folder / "sent").glob("*.json")] == [name for name in found if found[name]]


@given(st.integers(1, 4096), st.floats(1e-3, 1e3), st.sampled_from(["hardened", "published"]))
def test_the_floor_holds_for_every_width_and_noise(width: int, epsilon: float, variant: str) -> None:
    try:
        SAFE.check_noise(epsilon, width, variant, "x")
    except UsageError:
        return
    bits = width / 2 * math.log2(1 + 1 / epsilon**2)
    assert signal(width, epsilon) <= 64 and bits <= 64 / (2 * math.log(2)) and variant == "hardened"


def test_numbers_that_are_none_are_no_noise() -> None:
    for epsilon in (math.nan, -1.0, 0.0):
        with pytest.raises(UsageError, match="least_epsilon"):
            SAFE.check_noise(epsilon, 64, "hardened", "x")


def test_a_server_cannot_make_a_party_the_initiator(trio: list[Path], tmp_path: Path) -> None:
    hall = Hall(settled(trio, tmp_path / "own"), tmp_path)
    terms = ConfigRecord({"mode": "horizontal", "params": json.dumps(BRIEF), "wire": "float32"})
    assert ask(hall, "query.publish", {"terms": terms})["refused"]["why"] == "terms"
    assert "publishes no encoder trained on its records" in reason(tmp_path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lik = 'digits'", "unknown key .* 'lik': did you mean 'like'"),
        ("least_epsilom = 2.0", "did you mean 'least_epsilon'"),
        ("variant = 'hardend'", "did you mean 'hardened'"),
        ("modes = ['horizonal']", "did you mean 'horizontal'"),
        ("most_signal = nan", "most_signal must be a number from 0 on"),
        ("least_epsilon = -1", "least_epsilon must be a number from 0 on"),
        ("[accepts]\nepoch = 3", "did you mean 'epochs'"),
        ("[accepts]\nepochs = [3, 2]", r"epochs must be a value or \[low, high\]"),
        ("[accepts]\nepochs = {}", r"epochs must be a value or \[low, high\]"),
    ],
)
def test_a_wrong_choice_is_refused_and_not_passed_over(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "party.toml").write_text(f"name = 'x'\n{line}\n")
    with pytest.raises(UsageError, match=said):
        open_party({"data": str(tmp_path)}, RUN)


def test_a_misspelt_data_set_is_refused_with_the_right_one(trio: list[Path], tmp_path: Path) -> None:
    (folder,) = settled(trio[1:2], tmp_path)
    (folder / "party.toml").write_text('like = "digist"\n')
    with pytest.raises(UsageError, match="did you mean 'digits'"):
        open_party({"data": str(folder)}, RUN).records("train")


def test_a_partys_own_choices_replace_the_default_limits() -> None:
    chosen = PartyLimits.chosen({"least_epsilon": 0.5, "accepts": {"epochs": 3, "strength": [0.5, 1], "masked": False}})
    chosen.check({"epochs": 3, "strength": 0.7, "masked": False, "latent": 64}, "x")
    chosen.check_noise(0.5, 16, "hardened", "x")
    for setting, value in (("epochs", 5), ("strength", 0.1), ("masked", True), ("latent", 2000), ("epochs", "3")):
        with pytest.raises(UsageError, match=f"{setting}={value}"):
            chosen.check({setting: value}, "x")
    PartyLimits.chosen({"seed": 1}).check_noise(0.0, 4096, "published", "x")
    with pytest.raises(UsageError, match="least_epsilon=2"):
        PartyLimits.chosen({"seed": 1, "least_epsilon": 2}).check_noise(1.0, 1, "hardened", "x")


@pytest.mark.parametrize("learner", pooled_learning.LEARNERS)
def test_one_row_beyond_all_others_does_not_spoil_the_learning(learner: str) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 1200)
    z = (0.45 * (2 * labels[:, None] - 1) + rng.standard_normal((1200, 12))).astype(np.float32)
    own, held_out = slice(0, 600), slice(600, None)

    def accuracy(more: list[float]) -> float:
        shared = np.concatenate([z[own], np.array(more, dtype=np.float32)[:, None] * np.ones((1, 12), np.float32)])
        codes = {"y": np.concatenate([labels[own], np.zeros(len(more), dtype=np.int64)])}
        return pooled_learning.learn(shared, codes, z[held_out], {"y": labels[held_out]}, learner)[0]["accuracy.y"]

    clean = accuracy([])
    assert clean > 0.9
    assert accuracy([1000.0]) > clean - 0.02 and accuracy([1e6, -1e6, 1e6]) > clean - 0.02


@pytest.mark.parametrize(
    "change",
    [{"epochs": 10**6}, {"batch": 0}, {"rate": 1e9}, {"rate": math.nan}, {"server-round": 10**9}, {"epochs": -1}],
)
def test_a_round_of_averaging_beyond_bounds_is_refused(
    trio: list[Path], tmp_path: Path, change: dict[str, Any]
) -> None:
    from sfumato.parties.local_training import first_arrays

    hall = Hall(trio, tmp_path)
    asked = {"epochs": 1, "batch": 32, "rate": 0.05, "server-round": 1}
    arrays = first_arrays(784, 10, 0)
    assert "arrays" in ask(hall, "train", {"config": ConfigRecord(asked), "arrays": arrays})
    assert ask(hall, "train", {"config": ConfigRecord({**asked, **change}), "arrays": arrays}) == {"error": True}
    name = next(iter(arrays))
    for bad in (np.nan, 1e7):
        broken = ArrayRecord({**arrays, name: Array(np.full(arrays[name].shape, bad, np.float32))})
        assert ask(hall, "train", {"config": ConfigRecord(asked), "arrays": broken}) == {"error": True}


def test_in_a_simulation_lambda_is_every_partys_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Terms] = []

    def run(folder: Path, terms: Terms) -> Any:
        seen.append(terms)
        assert 'lam = "0.7,0.3"' in (folder / "parties" / "party-1" / "party.toml").read_text()
        raise UsageError("enough")

    monkeypatch.setattr(simulation, "simulate_folder", run)
    asked: dict[str, Any] = {"parties": 2, "private": ["ge5"], "limit": 100, "out": tmp_path / "run"}
    with pytest.raises(UsageError, match="enough"):
        simulation.simulate("digits", params={"lam": "0.7,0.3", "latent": 8}, **asked)
    assert dict(seen[0].params) == {"latent": 8}


def test_the_page_names_every_setting_and_the_default_limits() -> None:
    page = (Path(__file__).parents[2] / "docs" / "parties.md").read_text()
    section = page.split("## What a party can rely on")[1].split("## Deployment")[0]
    assert not [setting for setting in ACCEPTS if f"`{setting}`" not in section]
    for key, value in (("least_epsilon", SAFE.least_epsilon), ("most_signal", SAFE.most_signal)):
        assert f"default {value:g} |" in next(line for line in page.splitlines() if line.startswith(f"| `{key}`"))

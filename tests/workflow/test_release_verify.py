"""A release folder: what its papers say, and that whoever changes anything in it is found out."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from releasable import EASY, features_run, proven, synthetic_run
from sfumato.core.errors import DataError, GateFailed, UsageError
from sfumato.core.policy import Policy, policy_of
from sfumato.core.run_folder import read_json, write_json
from sfumato.workflow import UNAUDITED, Check, Warrant, release_run, sample_run, verify_release
from sfumato.workflow.gate import Gate, keep
from sfumato.workflow.release_folder import complete, digests

STRICT = policy_of(["attribute=0%"])
MERE = date.today() + timedelta(days=5)


def key_pair(folder: Path, name: str, kind: str = "ed25519") -> Path:
    """``NAME.pem`` and ``NAME.pub``, made as the documents say."""
    pem, public = folder / f"{name}.pem", folder / f"{name}.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", kind, "-out", pem], check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", pem, "-pubout", "-out", public], check=True, capture_output=True)
    return pem


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("releases")
    for name in ("owner", "stranger"):
        key_pair(folder, name)
    return folder


@pytest.fixture(scope="module")
def features(desk: Path) -> Path:
    (desk / "f").mkdir()
    return features_run(desk / "f")


@pytest.fixture(scope="module")
def synthetic(desk: Path) -> Path:
    (desk / "s").mkdir()
    return synthetic_run(desk / "s")


@pytest.fixture(scope="module")
def _signed(desk: Path, features: Path) -> Path:
    about = replace(EASY, name="easy", owner="Data office", recipient="University", purpose="A study", review=MERE)
    warrant = Warrant(about, key=desk / "owner.pem")
    release_run(features, str(desk / "f" / "people.csv"), desk / "signed", warrant=warrant)
    return desk / "signed"


@pytest.fixture(scope="module")
def drawn(desk: Path, synthetic: Path) -> Path:
    """A dp release."""
    sample_run(synthetic, 50, desk / "drawn", warrant=Warrant(proven(epsilon_total=3.0)))
    return desk / "drawn"


@pytest.fixture
def signed(_signed: Path, tmp_path: Path) -> Path:
    """A release of features that is in order, to be changed."""
    return shutil.copytree(_signed, tmp_path / "signed")


def wrong(checks: tuple[Check, ...]) -> list[str]:
    return [check.because for check in checks if not check.passed]


def rewritten(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """``release.json`` changed, and every paper and digest made anew: all that somebody without the key can do."""
    record = read_json(folder / "release.json")
    change(record)
    complete(folder, record)


def test_a_release_as_it_was_made_is_in_order(signed: Path, desk: Path) -> None:
    policy = Policy.from_json(read_json(signed / "release.json")["gate"]["policy"])
    found = verify_release(signed, policy=policy, key=desk / "owner.pub")
    assert wrong(found) == [] and len(found) >= 13
    assert subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=signed, check=False).returncode == 0


def edit_card(folder: Path) -> None:
    card = folder / "README.md"
    card.write_text(card.read_text().replace("LEAKS", "no better than guessing").replace("University", "Press"))


def edit_card_and_sums(folder: Path) -> None:
    edit_card(folder)
    sums = "".join(f"{digest}  {name}\n" for name, digest in digests(folder).items())
    (folder / "SHA256SUMS").write_text(sums)


def loosen_policy(folder: Path) -> None:
    record = read_json(folder / "release.json")
    record["gate"]["policy"]["thresholds"][0]["value"] = 0.9
    write_json(folder / "release.json", record)


def swap_payload(folder: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "release.parquet")
    pq.write_table(table.take(list(range(len(table) - 1, -1, -1))), folder / "release.parquet")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (edit_card, "changed: README.md"),
        (edit_card_and_sums, "README.md was edited: it does not say what release.json says"),
        (loosen_policy, "the policy was edited: it does not have the digest that the card states"),
        (swap_payload, "the payload is not the one that release.json and the card speak of"),
        (lambda folder: (folder / "croissant.json").unlink(), "missing: croissant.json"),
        (lambda folder: (folder / "release.json").unlink(), "missing: release.json"),
        (lambda folder: (folder / "SHA256SUMS").unlink(), "SHA256SUMS is missing: nothing says what the files were"),
        (lambda folder: (folder / "more.csv").write_text("x"), "not of the release: more.csv"),
        (lambda folder: (folder / "release.json").write_text("{"), "release.json does not have the form"),
        (lambda folder: (folder / "release.json").write_text('{"format": 2}'), "release.json does not have the form"),
        (lambda folder: (folder / "SHA256SUMS").write_bytes(b"\xff\xfe"), "SHA256SUMS does not have the form"),
    ],
)
def test_whatever_is_changed_is_named_in_a_sentence(signed: Path, change: Callable[[Path], Any], said: str) -> None:
    change(signed)
    assert any(said in sentence for sentence in wrong(verify_release(signed)))


def put_strict_policy(record: dict[str, Any]) -> None:
    record["gate"] = {
        "policy": STRICT.to_json(),
        "digest": STRICT.digest,
        "passed": True,
        "checks": [{**one, "passed": True, "outcome": "passed"} for one in record["gate"]["checks"]],
    }


def test_a_card_whose_gate_was_not_passed_is_found_though_every_file_agrees(signed: Path) -> None:
    rewritten(signed, put_strict_policy)
    found = wrong(verify_release(signed))
    assert any("the figures do not pass the policy: max attribute:diagnosis = 0%" in one for one in found)
    assert any("another result of the gate" in one for one in found)


def better_figures(record: dict[str, Any]) -> None:
    for score in record["audit"]["worst"].values():
        score["leakage_ci"] = [0.0, 0.0]


def test_figures_changed_in_every_file_are_found_by_the_signature_alone(signed: Path, desk: Path) -> None:
    rewritten(signed, better_figures)
    assert any("about other files than these" in one for one in wrong(verify_release(signed, key=desk / "owner.pub")))


def test_a_policy_that_was_replaced_everywhere_is_not_the_one_given(signed: Path) -> None:
    def loosened(record: dict[str, Any]) -> None:
        loose = replace(Policy.from_json(record["gate"]["policy"]), thresholds=())
        record["gate"] = {**record["gate"], "policy": loose.to_json(), "digest": loose.digest}

    mine = Policy.from_json(read_json(signed / "release.json")["gate"]["policy"])
    rewritten(signed, loosened)
    assert any("names another policy, 'easy'" in one for one in wrong(verify_release(signed, policy=mine)))


def test_the_key_of_a_stranger_no_signature_and_a_forged_statement_are_told_apart(signed: Path, desk: Path) -> None:
    (said,) = wrong(verify_release(signed, key=desk / "stranger.pub"))[:1]
    assert "is not signed with the key of" in said
    envelope = signed / "release.intoto.json"
    stored = read_json(envelope)
    statement = json.loads(base64.b64decode(stored["payload"]))
    statement["predicate"]["result"] = "WARNED"
    write_json(envelope, {**stored, "payload": base64.b64encode(json.dumps(statement).encode()).decode()})
    assert "or was changed since" in wrong(verify_release(signed, key=desk / "owner.pub"))[0]
    envelope.write_text("[]")
    assert "is not a DSSE envelope" in wrong(verify_release(signed, key=desk / "owner.pub"))[0]
    envelope.unlink()
    assert "it is not signed" in wrong(verify_release(signed, key=desk / "owner.pub"))[0]


def test_the_signed_statement_is_in_toto_and_names_every_file_and_the_policy(signed: Path) -> None:
    statement = json.loads(base64.b64decode(read_json(signed / "release.intoto.json")["payload"]))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert statement["predicate"]["result"] == "PASSED" and statement["predicate"]["passedTests"]
    assert {one["name"]: one["digest"]["sha256"] for one in statement["subject"]} == digests(signed)
    digest = read_json(signed / "release.json")["gate"]["digest"]
    assert statement["predicate"]["configuration"][0]["digest"]["sha256"] == digest


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_keys_as_openssl_makes_them_sign(features: Path, desk: Path, tmp_path: Path, kind: str) -> None:
    key = key_pair(tmp_path, "mine", kind)
    release_run(features, str(desk / "f" / "people.csv"), tmp_path / "out", warrant=Warrant(EASY, key=key))
    assert wrong(verify_release(tmp_path / "out", key=tmp_path / "mine.pub")) == []


def test_what_is_no_key_is_said_before_a_record_is_read(
    features: Path, signed: Path, desk: Path, tmp_path: Path
) -> None:
    for key, said in ((desk / "owner.pub", "no private key"), (tmp_path / "nowhere.pem", "cannot read the key")):
        with pytest.raises(UsageError, match=said):
            release_run(features, "no-such-file.csv", tmp_path / "out", warrant=Warrant(EASY, key=key))
    with pytest.raises(UsageError, match="no public key"):
        verify_release(signed, key=desk / "owner.pem")


def test_a_release_is_valid_until_its_policy_is_to_be_reviewed(signed: Path) -> None:
    assert wrong(verify_release(signed, today=MERE)) == []
    (said,) = wrong(verify_release(signed, today=MERE + timedelta(days=1)))
    assert said == f"it was valid until {MERE}: a new audit is due"


def test_what_is_no_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no release"):
        verify_release(tmp_path)


def test_a_run_that_nobody_audited_releases_only_as_unaudited_and_the_card_begins_with_that(
    features: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(features, tmp_path / "run")
    (run / "scores.json").unlink()
    source = str(features.parent / "people.csv")
    with pytest.raises(GateFailed, match=r"no audit has attacked this run. Run 'sfumato audit"):
        release_run(run, source, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    release_run(run, source, tmp_path / "out", warrant=UNAUDITED)
    first = (tmp_path / "out" / "README.md").read_text().split("---\n")[2].strip().splitlines()[0]
    assert first.startswith("**UNAUDITED: no audit has attacked this run.")
    assert any("it left unaudited" in one for one in wrong(verify_release(tmp_path / "out")))


def test_a_policy_that_is_not_passed_stops_the_release_also_if_only_the_gate_kept_it(
    features: Path, tmp_path: Path
) -> None:
    source, run = str(features.parent / "people.csv"), shutil.copytree(features, tmp_path / "run")
    for policy in (STRICT, None):
        with pytest.raises(GateFailed, match="does not pass its policy: max attribute:diagnosis = 0%"):
            release_run(run, source, tmp_path / "out", warrant=Warrant(policy))
        keep(Gate(run, ()), STRICT)
    release_run(run, source, tmp_path / "out", warrant=Warrant(unaudited=True))
    assert "UNAUDITED: the policy was not passed: max attribute:diagnosis" in (tmp_path / "out/README.md").read_text()
    assert any("do not pass the policy" in one for one in wrong(verify_release(tmp_path / "out")))


@pytest.mark.parametrize("name", ["mechanism.json", "scores.json"])
def test_an_audit_of_other_weights_or_other_attacks_counts_as_none(features: Path, tmp_path: Path, name: str) -> None:
    run = shutil.copytree(features, tmp_path / "run")
    if name == "scores.json":
        scores = read_json(run / name)
        scores["audited"]["attacks"] = dict.fromkeys(scores["audited"]["attacks"], 0)
        write_json(run / name, scores)
    else:
        (run / name).write_text((run / name).read_text() + "\n")
    with pytest.raises(GateFailed, match=r"its audit (is of other weights|has no attack)"):
        release_run(run, str(features.parent / "people.csv"), tmp_path / "out")


def test_the_card_says_for_whom_what_for_what_was_tried_and_what_was_not(signed: Path) -> None:
    import yaml

    _, head, body = (signed / "README.md").read_text().split("---\n", 2)
    about = yaml.safe_load(head)
    assert about["valid_until"] == str(MERE) and about["audited"] is True and "sfumato" in about["tags"]
    assert about["configs"] == [{"config_name": "default", "data_files": "release.parquet"}]
    assert "| For | University: A study |" in body and "| Owner | Data office |" in body
    for threat in ("Reconstruction", "Attribute", "Membership", "Singling out", "Linkability", "Inference"):
        assert re.search(rf"^\| {threat}", body, re.MULTILINE), threat
    assert "NOT TESTED" in body and "**Floor.** Whoever reads sex" in body and "Worst group" in body
    for section in (
        "What the policy asked",
        "What is guaranteed",
        "Limits",
        "When a new audit is due",
        "How to verify",
    ):
        assert f"## {section}" in body


def test_hugging_face_reads_the_head_of_the_card(signed: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    data = hub.DatasetCard((signed / "README.md").read_text()).data
    assert data.license == "other" and data.size_categories == ["n<1K"]


def numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from numbers_in(one)
    elif isinstance(value, float):
        yield value


def test_a_dp_release_tells_no_count_no_person_and_no_figure_of_more_than_two_digits(drawn: Path) -> None:
    record = read_json(drawn / "release.json")
    audit = {name: value for name, value in record["audit"].items() if name != "threats"}
    told = json.dumps(audit)
    assert not re.search(r'"(n|people|id|seconds|most_exposed|rows)":', told)
    assert all(float(f"{number:.2g}") == number for number in numbers_in(audit))
    assert not re.search(r"\bp\d+\b", told)  # nobody's id
    texts = [(drawn / name).read_text() for name in ("README.md", "croissant.json", "dp-deployment.yaml")]
    assert not any(re.search(r"\b\d[\d,]* (people|persons|records|victims)\b", text) for text in texts)
    assert "without noise: the promise is for what leaves" in texts[0]


def test_a_dp_card_puts_what_was_measured_beside_what_any_attacker_could_get(drawn: Path) -> None:
    card, record = (drawn / "README.md").read_text(), read_json(drawn / "release.json")
    mu = record["bounds"]["mu"]
    assert f"ε = 3, δ = 1e-05, μ = {mu:.4g} (exact: all noise is Gaussian, on all records)" in card
    rows = dict(
        re.findall(r"^\| (ε of the whole release|advantage over guessing|right at .*?) \| (.*?) \|", card, re.M)
    )
    assert rows["ε of the whole release"] == "3"
    assert rows["advantage over guessing"] == f"{record['bounds']['advantage']:.3g}"
    assert set(rows) >= {"right at 1 % false alarms", "right at 0.1 % false alarms"}
    assert "not measured: that takes more people" in card
    assert "All private fits and releases of these records together: ε = 3" in card


def test_a_dp_release_verifies_with_its_policy_and_what_all_cost(drawn: Path) -> None:
    assert wrong(verify_release(drawn, policy=proven(epsilon_total=3.0))) == []


def test_croissant_is_accepted_by_its_validator_and_finds_the_records(signed: Path, drawn: Path) -> None:
    croissant = pytest.importorskip("mlcroissant")
    for folder, columns in ((signed, {"payload"}), (drawn, {"age", "sex", "smoker", "weight"})):
        found = croissant.Dataset(jsonld=str(folder / "croissant.json"))
        assert not found.metadata.ctx.issues.errors and not found.metadata.ctx.issues.warnings
        first = next(iter(found.records("records")))
        names = {field["name"] for field in read_json(folder / "croissant.json")["recordSet"][0]["field"]}
        assert columns <= names and len(first) == len(names)


def test_the_registry_entry_has_the_form_of_its_public_schema(drawn: Path) -> None:
    import os

    import jsonschema
    import yaml

    schema = Path(os.environ.get("SFUMATO_DATA", "")) / "schemas" / "opendp-deployments-schema.yaml"
    entry = yaml.safe_load((drawn / "dp-deployment.yaml").read_text())
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 3.0, "delta": 1e-05}
    if not schema.is_file():
        pytest.skip(
            "needs opendp-deployments-schema.yaml of github.com/opendp/deployments-registry-data in SFUMATO_DATA"
        )
    jsonschema.validate(entry, yaml.safe_load(schema.read_text()))


def test_only_dp_releases_have_a_registry_entry(signed: Path) -> None:
    assert not (signed / "dp-deployment.yaml").exists()

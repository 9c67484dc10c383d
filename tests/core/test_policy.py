"""Policies: what a file and the flags ask, and every way in which they cannot be meant."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import DataError, SfumatoError, UsageError
from sfumato.core.policy import Policy, Threshold, policy_of, read_policy

EXAMPLES = Path(__file__).parents[2] / "examples" / "policies"


def written(folder: Path, text: str, name: str = "policy.toml") -> Path:
    file = folder / name
    file.write_text("version = 1\n" + text)
    return file


def test_percent_is_leakage_and_a_bare_number_the_metric() -> None:
    found = policy_of(["attribute=10%", "attribute:sex=0.05"], ["accuracy=0.7", "reconstruction=0.03"])
    assert found.thresholds == (
        Threshold("max", "attribute", 0.1, share=True),
        Threshold("max", "attribute", 0.05, label="sex"),
        Threshold("min", "accuracy", 0.7),
        Threshold("min", "reconstruction", 0.03),
    )


def test_a_file_says_the_same_as_the_flags(tmp_path: Path) -> None:
    text = '[max]\nattribute = "10%"\n[min]\naccuracy = 0.7\n[max-group]\nattribute = "20%"\n'
    text += '[guarantee]\nrequire = "dp"\nepsilon = 3\n'
    flags = policy_of(["attribute=10%", "epsilon=3"], ["accuracy=0.7"], ["attribute=20%"], "dp")
    assert set(read_policy(written(tmp_path, text)).thresholds) == set(flags.thresholds)
    assert (flags.require, flags.epsilon) == ("dp", 3.0)


def test_a_policy_takes_over_what_it_extends_and_replaces_what_it_says_itself(tmp_path: Path) -> None:
    written(tmp_path, 'owner = "A"\nreview = 2030-01-01\n[max]\nattribute = "10%"\nreconstruction = "30%"', "base.toml")
    found = read_policy(written(tmp_path, 'extends = "base.toml"\nname = "b"\n[max]\nattribute = "5%"'))
    assert {(one.what, one.value) for one in found.thresholds} == {("attribute", 0.05), ("reconstruction", 0.3)}
    assert (found.owner, found.name, found.review) == ("A", "b", datetime.date(2030, 1, 1))


def test_policy_survives_json_and_its_digest_hangs_on_every_word() -> None:
    found = read_policy(EXAMPLES / "hospital-extract.toml")
    assert Policy.from_json(found.to_json()) == found
    assert found.digest != found.extended(policy_of(["membership=11%"])).digest


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.stem)
def test_every_example_can_be_read_and_asks_for_something(file: Path) -> None:
    assert not read_policy(file).empty


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[max]\nattribut = "10%"', "did you mean 'attribute'"),
        ('[max]\nattribute = "110%"', "between 0% and 100%"),
        ("[max]\nattribute = -1", "at least 0"),
        ("[max]\nattribute = true", "at least 0|expected a number"),
        ("[max]\nreconstruction = 0.3", "of which more is safer"),
        ("[min]\nattribute = 0.3", "of which less is safer"),
        ('[min]\nattribute = "3%"', "upper limit only"),
        ('[min]\naccuracy = "90%"', "percent is leakage"),
        ("[min]\naccuracy = 90", "between 0 and 1"),
        ("[max-group]\nattribute = 0.1", "in percent"),
        ('[guarantee]\nrequire = "k-anonymity"', "expected one of"),
        ("[guarantee]\nepsilon = 3", "needs a proof"),
        ('[guarantee]\nrequire = "dp"\nunit = "household"', "record or person"),
        ('[guarantee]\nrequire = "dp"\nepsilon = 0', "above 0"),
        ('review = "soon"', "must be a day"),
        ("owner = 3", "must be a text"),
        ("limits = 3", "unknown entry of a policy"),
        ("max = 3", "as a table"),
        ('extends = "policy.toml"', "extends itself"),
        ('[max]\nattribute = "10%"\n"attribute:sex" = "20%"', "contradicts 'max attribute = 10%'"),
        ('[min]\naccuracy = 0.9\n"accuracy:sex" = 0.8', "contradicts 'min accuracy = 0.9'"),
        ('[guarantee]\nrequire = "dp"\nepsilon = 3\nepsilon-total = 2', "contradicts epsilon ≤ 3"),
        ("[min]\naccuracy = 1", "no audit can show that accuracy is 1"),
        ("[max]\naccuracy = 0.9", "larger accuracy is better"),
        ("[min]\nmae = 5", "smaller mae is better"),
        ("[max-share]\nattribute = 0.1", "share of people in percent"),
        ('extends = "other.toml"', "cannot read the policy"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises((UsageError, DataError), match=said) as raised:
        read_policy(written(tmp_path, text))
    assert "policy.toml" in str(raised.value) or "other.toml" in str(raised.value)


def test_a_policy_of_another_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text("version = 2\n")
    with pytest.raises(UsageError, match="version = 1"):
        read_policy(file)


def test_the_same_limit_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="given twice"):
        policy_of(least=["accuracy=0.7", "accuracy=0.8"])


@given(st.text(max_size=30))
def test_any_flag_is_a_policy_or_a_clear_error(text: str) -> None:
    try:
        assert policy_of([text]).to_json()
    except SfumatoError as error:
        assert len(str(error)) > 10

"""Declared hyper-parameters: constructor, checks, help and signature come from one place."""

from __future__ import annotations

import inspect

import pytest
from sklearn.base import clone

from sfumato import ARS, RAN, Filter, LinearFilter, Phase, Synth
from sfumato.core.errors import UsageError
from sfumato.mechanisms.parameters import Parametrised, anything, choice, flag, number, text, whole


class Toy(Parametrised):
    name = "toy"

    net: object = anything(default="auto", kw_only=False, help="a network")
    amount: float = number(default=0.5, low=0.0, high=1.0, above_low=True, help="how much")
    rounds: int = whole(default=3, low=1, high=9, help="how often")
    way: str = choice(default="fast", options=("fast", "slow"), help="which way")
    loud: bool = flag(default=False, help="whether")
    note: str = text(default="", help="anything")


class Changed(Toy):
    name = "changed"

    more: int = whole(default=1, low=0, high=5, help="one more")
    rounds = 7


def test_constructor_takes_what_is_declared_and_nothing_else() -> None:
    assert Toy().get_params() == {"net": "auto", "amount": 0.5, "rounds": 3, "way": "fast", "loud": False, "note": ""}
    assert Toy("mine", rounds=4).get_params()["net"] == "mine"
    with pytest.raises(UsageError, match="unknown parameter of toy 'amout': did you mean 'amount'"):
        Toy(amout=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Toy("mine", 0.5)  # type: ignore[misc]
    with pytest.raises(TypeError, match="two values for 'net'"):
        Toy("mine", net="other")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"amount": 0.0}, r"toy: amount must lie in \(0, 1\], got 0.0"),
        ({"amount": float("nan")}, "amount must lie in"),
        ({"amount": "much"}, "toy: amount must be a number, got 'much'"),
        ({"rounds": 2.5}, "toy: rounds must be a whole number, got 2.5"),
        ({"rounds": True}, "rounds must be a whole number, got True"),
        ({"rounds": 10}, r"rounds must lie in \[1, 9\]"),
        ({"way": "fats"}, "unknown way of toy 'fats': did you mean 'fast'"),
        ({"loud": 1}, "toy: loud must be true or false, got 1"),
        ({"note": 3}, "toy: note must be a text, got 3"),
    ],
)
def test_value_of_another_kind_or_out_of_range_is_refused(params: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Toy(**params)._check_params()  # type: ignore[arg-type]


def test_subclass_changes_a_default_with_a_plain_value_and_keeps_its_range() -> None:
    assert Changed().rounds == 7 and Toy().rounds == 3
    with pytest.raises(UsageError, match=r"changed: rounds must lie in \[1, 9\]"):
        Changed(rounds=0)._check_params()
    assert list(Changed.parameters()) == ["more", "net", "amount", "rounds", "way", "loud", "note"]


def test_signature_shows_names_and_defaults() -> None:
    assert str(inspect.signature(LinearFilter)).count("steps=600") == 1
    assert next(iter(inspect.signature(Phase).parameters)) == "model"
    assert repr(RAN(lam=0.5)) == "RAN(lam=0.5)"


@pytest.mark.parametrize("cls", [RAN, Filter, Phase, Synth, ARS])
def test_scikit_learn_can_clone_a_mechanism(cls: type) -> None:
    given = cls(seed=5)
    again = clone(given)
    assert again is not given and again.get_params() == given.get_params()

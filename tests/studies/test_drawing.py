"""Pictures of the studies: what is drawn can be told apart."""

from __future__ import annotations

from sfumato.studies.drawing import colour_of, marker_of


def test_ten_digits_have_ten_colours_and_further_curves_another_marker() -> None:
    assert len({colour_of(place) for place in range(10)}) == 10
    assert len({(colour_of(place), marker_of(place)) for place in range(100)}) == 100

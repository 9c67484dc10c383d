"""What a mechanism is, as one value that is stored with every run: readers never need to know its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

Role = Literal["control", "baseline", "mechanism"]


@dataclass(frozen=True)
class Traits:
    """What is true of every release of a mechanism with these hyper-parameters.

    role              a control leaves something unprotected on purpose, a baseline is there to compare with
    unprotected       what a control leaves as it is: the ``record``, or the ``latent`` that others protect
    variant           tells apart settings that are methods of their own ("published", "hardened")
    compared_with     the baseline that the paper claims to beat
    randomised        two releases of one record differ
    needs_labels      there is nothing to learn without a utility label
    reads_private     a release needs each record's private labels; they shape the noise and never leave
    hides_result      the receiver is not to learn the utility label either
    synthetic         the payload is drawn from a model of the owner's records and belongs to none of them
    gives_records     the payload is a record of the owner's kind, written in its original columns
    parties           how many parties share the owner's records; 0 for a mechanism without parties
    rows_per_message  how many records share one message
    smallest_batch    minimum number of records per release
    """

    role: Role = "mechanism"
    unprotected: Literal["", "record", "latent"] = ""
    variant: str = ""
    compared_with: str = ""
    randomised: bool = False
    needs_labels: bool = True
    reads_private: bool = False
    hides_result: bool = False
    synthetic: bool = False
    gives_records: bool = False
    parties: int = 0
    rows_per_message: int = 1
    smallest_batch: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Traits:
        """Stored traits; one that this version does not know is passed over."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: found for name, found in value.items() if name in known})

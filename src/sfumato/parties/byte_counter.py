"""A Flower grid that counts the bytes of every message passing through it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects


def serialised(message: Message) -> list[bytes]:
    """Return the message as Flower sends it: one piece per object in it, including headers."""
    return [piece.deflate() for piece in get_all_nested_objects(message).values()]


def wire_bytes(message: Message) -> int:
    """Return the size of the message on the wire, without the transport's own headers."""
    return sum(len(piece) for piece in serialised(message))


class CountingGrid(Grid):
    """Wraps a grid and counts the bytes of its messages by kind and node, in both directions.

    With ``record``, every message is also written to that folder, one file per message, for inspection. ``only``
    restricts the nodes to those that were not excluded.
    """

    def __init__(self, inner: Grid, record: Path | None = None) -> None:
        self._inner = inner
        self._record = record
        self.only: list[int] | None = None
        self.up: Counter[tuple[str, int]] = Counter()
        self.down: Counter[tuple[str, int]] = Counter()

    def total(self, counter: Counter[tuple[str, int]], *, kind: str | None = None, node: int | None = None) -> int:
        """Sum the bytes of ``up`` or ``down``, optionally for one kind of message or one node."""
        return sum(count for (which, who), count in counter.items() if kind in (None, which) and node in (None, who))

    def by_kind(self) -> dict[str, dict[str, int]]:
        """Return the bytes of each kind of message in both directions."""
        kinds = dict.fromkeys(kind for kind, _ in (*self.down, *self.up))
        return {
            kind.removeprefix("query."): {
                "up": self.total(self.up, kind=kind),
                "down": self.total(self.down, kind=kind),
            }
            for kind in kinds
        }

    def set_run(self, run: Any) -> None:
        self._inner.set_run(run)

    @property
    def run(self) -> Any:
        return self._inner.run

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        return self._inner.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        return self._inner.get_node_ids() if self.only is None else self.only

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return self._inner.push_messages(self._sent(messages))

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return self._received(self._inner.pull_messages(message_ids))

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return self._received(self._inner.send_and_receive(self._sent(messages), timeout=timeout))

    def _sent(self, messages: Iterable[Message]) -> list[Message]:
        listed = list(messages)
        for message in listed:
            self._count(self.down, message, message.metadata.dst_node_id, "down")
        return listed

    def _received(self, messages: Iterable[Message]) -> list[Message]:
        listed = list(messages)
        asked = {node for _, node in self.down}
        for message in listed:
            if message.metadata.src_node_id in asked:  # otherwise Flower reports that a node is lost
                self._count(self.up, message, message.metadata.src_node_id, "up")
        return listed

    def _count(self, counter: Counter[tuple[str, int]], message: Message, node: int, direction: str) -> None:
        pieces = serialised(message)
        kind = message.metadata.message_type
        counter[kind, node] += sum(len(piece) for piece in pieces)
        if self._record is not None:
            self._record.mkdir(parents=True, exist_ok=True)
            place = len(list(self._record.iterdir()))
            said = kind.replace("/", "_")  # in an answer, the party chose this text
            (self._record / f"{place:04d}-{direction}-{said}-{node}.bin").write_bytes(b"".join(pieces))

"""The participants of a run: who is present, who was excluded and why, and how requests are sent and answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from flwr.app import Message, RecordDict
from flwr.common.constant import ErrorCode

from sfumato.core.errors import DataError
from sfumato.parties.byte_counter import CountingGrid, wire_bytes
from sfumato.parties.message_checks import Anything, Hello, MessageRefused, check_keys, check_size, name_of, text_of

FEWEST = 2
PULL_SECONDS = 0.3
Checked = TypeVar("Checked")
_ERRORS = {
    ErrorCode.NODE_UNAVAILABLE: "it is gone",
    ErrorCode.MESSAGE_UNAVAILABLE: "no answer in time",
    ErrorCode.REPLY_MESSAGE_UNAVAILABLE: "its answer was lost",
    ErrorCode.CLIENT_APP_RAISED_EXCEPTION: "its side failed; its own log says why",
    ErrorCode.CLIENT_APP_CRASHED: "its side crashed",
}
_WHY = {
    "terms": "it does not agree to the terms; its own log says why",
    "data": "its records cannot be used; its own log says why",
    "settings": "it has no folder or an invalid configuration; its own log says why",
    "failed": "its side failed; its own log says why",
}


class Roll:
    """The nodes of a run. A node that fails to answer correctly is excluded, with a reason, and not asked again."""

    def __init__(self, grid: CountingGrid, timeout: float, most_bytes: int) -> None:
        self.grid = grid
        self.timeout = timeout
        self.most_bytes = most_bytes
        self.members: dict[int, Hello] = {}
        self.present: list[int] = []
        self.excluded: dict[int, str] = {}
        self._names: dict[int, str] = {}

    def wait_for(self, parties: int, seconds: float) -> None:
        """Wait for the given number of nodes; after the time limit, go on with those present if they are enough."""
        end = time.monotonic() + seconds
        nodes = sorted(self.grid.get_node_ids())
        while len(nodes) < parties and time.monotonic() < end:
            time.sleep(0.2)
            nodes = sorted(self.grid.get_node_ids())
        self.present = nodes
        self.enough(f"{parties} were expected within {seconds:g} seconds")

    def name(self, node: int) -> str:
        """Return the name a node gave itself, or else its number."""
        return self.members[node].name if node in self.members else self._names.get(node, f"node {node}")

    def node(self, name: str) -> int | None:
        """Return the node of that name, if it is present."""
        return next((node for node in self.present if self.name(node) == name), None)

    def exclude(self, node: int, reason: str) -> None:
        """Exclude a node for the rest of the run."""
        self.excluded[node] = reason
        self.present.remove(node)

    def enough(self, why: str) -> None:
        """Raise unless at least two parties are left."""
        if len(self.present) < FEWEST:
            lost = "; ".join(f"{self.name(node)}: {reason}" for node, reason in self.excluded.items())
            left = "1 party is" if len(self.present) == 1 else "no parties are"
            raise DataError(f"{left} left and {FEWEST} are needed ({why}{'; ' + lost if lost else ''}).")

    def ask(
        self,
        action: str,
        questions: Mapping[int, RecordDict],
        read: Callable[[int, Anything], Checked],
    ) -> tuple[dict[int, Checked], dict[int, str]]:
        """Ask some nodes; return the checked answers, and for the other nodes the reason why there is none."""
        messages = {
            node: Message(content, node, f"query.{action}", ttl=self.timeout) for node, content in questions.items()
        }
        replies = self._replies(messages)
        good, bad = {}, {}
        for node in questions:
            try:
                good[node] = read(node, self._content(node, replies.get(node)))
            except MessageRefused as error:
                bad[node] = f"{error} ({action})"
        return good, bad

    def _replies(self, messages: Mapping[int, Message]) -> dict[int, Message]:
        """Return the answers that arrive in time. For a node that is lost, Flower itself answers."""
        self.grid.push_messages(messages.values())
        end = time.monotonic() + self.timeout
        waiting = {message.metadata.message_id: node for node, message in messages.items()}
        found: dict[int, Message] = {}
        while waiting:
            for reply in self.grid.pull_messages(list(waiting)):
                node = waiting.pop(reply.metadata.reply_to_message_id, None)
                if node is not None:
                    found[node] = reply
            if time.monotonic() >= end:
                break
            time.sleep(PULL_SECONDS if waiting else 0)
        return found

    def _content(self, node: int, reply: Message | None) -> Anything:
        if reply is None:
            raise MessageRefused(f"no answer within {self.timeout:g} seconds")
        if reply.has_error():
            raise MessageRefused(_ERRORS.get(reply.error.code, f"Flower reported error {reply.error.code}"))
        check_size(wire_bytes(reply), self.most_bytes)
        content = dict(reply.content)
        if "refused" in content:
            told = dict(content["refused"])
            check_keys(told, ("why", "name"), "refusal")
            self._names[node] = name_of(told)
            raise MessageRefused(_WHY.get(text_of(told, "why"), "it refused"))
        return content

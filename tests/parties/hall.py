"""Parties in one process: a grid that hands each message to the real ClientApp, and lets a test tamper with answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from sfumato.core.run_folder import read_json
from sfumato.parties.client import party_app
from sfumato.parties.results import ShareResult
from sfumato.parties.run_terms import Terms
from sfumato.parties.server import serve

Tamper = Callable[[Message], Message | None]
RUN = 7
SMALL = {"epochs": 1, "latent": 8, "variant": "published"}


class Hall(Grid):
    """Nodes 1, 2 … stand for party folders. ``tamper`` changes or swallows a node's answers of one kind."""

    def __init__(
        self, folders: Iterable[Path], out: Path, tamper: Mapping[tuple[int, str], Tamper] | None = None
    ) -> None:
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, 0, 1
        self.app: ClientApp = party_app()
        self.nodes: dict[int, Context] = {}
        for number, folder in enumerate(folders, 1):
            node = {"data": str(folder), "out": str(out / folder.name)}
            self.nodes[number] = Context(RUN, number, node, RecordDict(), {})  # type: ignore[arg-type]
        self.tamper = dict(tamper or {})
        self.seen: list[Message] = []
        self._waiting: dict[str, Message] = {}

    def set_run(self, run: Any) -> None:
        pass

    @property
    def run(self) -> Any:
        return None

    def create_message(self, *_: Any, **__: Any) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        sent = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(uuid4())
            self.seen.append(message)
            node = message.metadata.dst_node_id
            reply: Message | None = self.app(message, self.nodes[node])
            change = self.tamper.get((node, message.metadata.message_type.removeprefix("query.")))
            reply = reply if change is None or reply is None else change(reply)
            if reply is not None:
                self.seen.append(reply)
                self._waiting[message.metadata.message_id] = reply
            sent.append(message.metadata.message_id)
        return sent

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return [self._waiting.pop(one) for one in list(message_ids) if one in self._waiting]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        return self.pull_messages(self.push_messages(list(messages)))


def meet(
    folders: Iterable[Path], out: Path, tamper: Mapping[tuple[int, str], Tamper] | None = None, **terms: Any
) -> Hall:
    """A run of the app in this process; the result is in ``out/server``."""
    hall = Hall(folders, out, tamper)
    asked = {"params": SMALL, "learner": "logistic", "parties": len(hall.nodes), "wait": 0.1, "timeout": 0.2}
    serve(hall, Terms(**{**asked, "out": str(out / "server"), **terms}), str(RUN))
    return hall


def outcome(out: Path) -> ShareResult:
    """What the server wrote down."""
    return ShareResult.from_json(read_json(out / "server" / "result.json"))

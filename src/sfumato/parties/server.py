"""The server's side of the Flower app: relays encoders and representations and checks every message."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, RecordDict
from flwr.serverapp import Grid, ServerApp

from sfumato.core.errors import DataError, SfumatoError
from sfumato.core.run_folder import RunFolder, write_json
from sfumato.mechanisms.ars.published_encoder import Published
from sfumato.parties.averaging import average
from sfumato.parties.byte_counter import CountingGrid
from sfumato.parties.flower_records import config, encoder_records
from sfumato.parties.message_checks import (
    Hello,
    Shared,
    check_encoder,
    check_hello,
    check_keys,
    check_labels,
    check_metrics,
    check_shared,
)
from sfumato.parties.participants import Roll
from sfumato.parties.results import PartyResult, ShareResult
from sfumato.parties.run_terms import Terms

RESULT = "result.json"
ERROR = "error.json"


def server_app() -> ServerApp:
    """Return the ServerApp of ``sfumato share``."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        serve(grid, Terms.from_run_config(context.run_config), str(context.run_id))

    return app


def serve(grid: Grid, terms: Terms, run: str) -> None:
    """Run once and write ``result.json`` to the run folder ``terms.out``, or ``error.json`` if the run failed."""
    asked = {name: value for name, value in terms.to_run_config().items() if name != "params"}
    settings = {"run": {"command": "share", **asked}, "data": {}, "params": dict(terms.params)}
    folder = RunFolder.create(Path(terms.out), settings)
    counting = CountingGrid(grid, Path(terms.record) if terms.record else None)
    roll = Roll(counting, terms.timeout, terms.most_bytes)
    try:
        roll.wait_for(terms.parties, terms.wait)
        check_in(roll, terms, run)
        result = average(roll, terms) if terms.mode == "fedavg" else share(roll, terms)
        write_json(folder.path / RESULT, result.to_json())
        folder.finish()
    except SfumatoError as error:
        write_json(folder.path / ERROR, {"kind": type(error).__name__, "message": str(error)})
        raise
    except Exception as error:
        message = f"the run failed: {type(error).__name__}: {error}"
        write_json(folder.path / ERROR, {"kind": "SfumatoError", "message": message})
        raise


def check_in(roll: Roll, terms: Terms, run: str) -> None:
    """Let every party introduce itself, and end the run before anything is shared if they do not fit together."""
    salt = hashlib.sha256(f"sfumato {run}".encode()).hexdigest()
    question = RecordDict({"terms": config({"mode": terms.mode, "salt": salt, "params": _params(terms)})})
    found, bad = roll.ask("hello", dict.fromkeys(roll.present, question), lambda _, content: check_hello(content))
    roll.members.update(found)
    for node, reason in bad.items():
        roll.exclude(node, reason)
    roll.enough("the others did not check in")
    names = Counter(hello.name for hello in found.values())
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise DataError(f"two parties are called '{twice[0]}': give each node its own name (--node-config).")
    if terms.mode != "vertical":
        for what in ("schema", "size", "utility"):  # a party could send the digest of another
            _same(found, what, "their records or labels have different schemas")
        if not next(iter(found.values())).utility:
            raise DataError("the parties have no utility label, so there is nothing to learn: name one in party.toml.")
    if terms.mode == "fedavg":
        return
    if terms.initiator not in names:
        raise DataError(f"the initiator '{terms.initiator}' is not there; present: {', '.join(sorted(names))}.")
    if terms.mode == "vertical":
        _same(found, "ids", "their records are not aligned: ids, their order and their number must be the same")
        has = next((hello for hello in found.values() if hello.name == terms.labels_from), None)
        if has is None or not has.utility:
            raise DataError(f"'{terms.labels_from}' should provide the labels but has none, or is not there.")


def _same(found: Mapping[int, Hello], what: str, complaint: str) -> None:
    said = {hello.name: json.dumps(getattr(hello, what), sort_keys=True) for hello in found.values()}
    values = Counter(said.values())
    if len(values) > 1:
        common = values.most_common(1)[0][0]
        odd = sorted(name for name, value in said.items() if value != common)
        raise DataError(f"{complaint} (unlike the others: {', '.join(odd)}). Nothing was shared.")


def share(roll: Roll, terms: Terms) -> ShareResult:
    """Run the phases publish, share and learn."""
    started = time.monotonic()
    initiator = roll.node(terms.initiator)
    if initiator is None:
        raise DataError(f"the initiator '{terms.initiator}' was excluded.")
    encoder = None if terms.mode == "vertical" else _published(roll, terms, initiator)
    accepted = _collected(roll, terms, initiator, encoder)
    reports = _learnt(roll, terms, accepted, encoder)
    grid = roll.grid
    first = next(iter(_classes(roll, terms)))
    parties = [
        PartyResult(
            name=roll.name(node),
            status="shared" if node in accepted else "excluded",
            reason=roll.excluded.get(node, "" if node in reports[0] else reports[1].get(node, "")),
            rows=len(accepted[node].z) if node in accepted else 0,
            bytes_up=grid.total(grid.up, node=node),
            bytes_down=grid.total(grid.down, node=node),
            accuracy=reports[0].get(node, {}).get(f"accuracy.{first}"),
            metrics=reports[0].get(node, {}),
        )
        for node in (*roll.present, *roll.excluded)
    ]
    told = [party for party in parties if party.accuracy is not None]
    weights = [party.metrics["held-out"] for party in told]
    return ShareResult(
        mode=terms.mode,
        initiator=terms.initiator,
        encoder="" if encoder is None else encoder.digest,
        parties=tuple(sorted(parties, key=lambda party: party.name)),
        accuracy=float(np.average([party.accuracy or 0.0 for party in told], weights=weights)) if told else None,
        bytes_up=grid.total(grid.up),
        bytes_down=grid.total(grid.down),
        by_phase=grid.by_kind(),
        seconds=round(time.monotonic() - started, 3),
    )


def _published(roll: Roll, terms: Terms, initiator: int) -> Published:
    question = RecordDict({"terms": config({"mode": terms.mode, "params": _params(terms), "wire": terms.wire})})
    found, bad = roll.ask("publish", {initiator: question}, lambda _, content: check_encoder(content))
    if initiator not in found:
        raise DataError(f"the initiator '{terms.initiator}' published no encoder: {bad[initiator]}.")
    return found[initiator]


def _collected(roll: Roll, terms: Terms, initiator: int, encoder: Published | None) -> dict[int, Shared]:
    """Collect the shares that pass the checks, at least two."""
    asked = {"mode": terms.mode, "params": _params(terms), "wire": terms.wire}
    asked["classes"] = json.dumps(_classes(roll, terms))
    classes = {label: len(names) for label, names in _classes(roll, terms).items()}
    vertical = terms.mode == "vertical"
    question = (
        _labels(roll, terms, classes) if encoder is None else encoder_records(encoder, half=terms.wire != "float32")
    )
    question["terms"] = config({**asked, "encoder": "" if encoder is None else encoder.digest})
    questions = dict.fromkeys(roll.present, question)
    if encoder is not None:
        questions[initiator] = RecordDict({"terms": question["terms"]})  # it already has the encoder

    def read(node: int, content: Mapping[str, Any]) -> Shared:
        hello = roll.members[node]
        return check_shared(
            content,
            encoder="" if encoder is None else encoder.digest,
            schema=hello.schema,
            wire=terms.wire,
            rows=hello.rows,
            classes={} if vertical else classes,
            held_out=hello.held_out if vertical else None,
        )

    found, bad = roll.ask("share", questions, read)
    if terms.mode != "vertical":
        bad |= _odd_widths(found, initiator)
    for node, reason in bad.items():
        roll.exclude(node, reason)
        found.pop(node, None)
    roll.enough("the others shared nothing usable")
    return found


def _labels(roll: Roll, terms: Terms, classes: Mapping[str, int]) -> RecordDict:
    """Vertical: get the labels from the party that has them, for all parties."""
    giver = roll.node(terms.labels_from)
    if giver is None:
        raise DataError(f"'{terms.labels_from}', which should provide the labels, was excluded.")

    def read(_: int, content: Mapping[str, Any]) -> dict[str, Array]:
        check_keys(content, ("labels",))
        check_labels(content["labels"], rows=roll.members[giver].rows, classes=classes)
        return dict(content["labels"])

    found, bad = roll.ask("labels", {giver: RecordDict()}, read)
    if giver not in found:
        raise DataError(f"'{terms.labels_from}' provided no labels: {bad[giver]}.")
    return RecordDict({"labels": ArrayRecord(found[giver])})


def _odd_widths(found: Mapping[int, Shared], initiator: int) -> dict[int, str]:
    """Find parties whose representations differ in width from the initiator's (or, without it, from most)."""
    if not found:
        return {}
    widths = {node: one.z.shape[1] for node, one in found.items()}
    right = widths.get(initiator) or Counter(widths.values()).most_common(1)[0][0]
    return {
        node: f"'z' has {width} numbers per record, the others have {right} (share)"
        for node, width in widths.items()
        if width != right
    }


def _learnt(
    roll: Roll, terms: Terms, accepted: Mapping[int, Shared], encoder: Published | None
) -> tuple[dict[int, dict[str, float]], dict[int, str]]:
    """Send everyone the others' shares and collect the reports. A party that reports nothing stays in the set."""
    order = sorted(accepted, key=roll.name)
    asked = {
        "mode": terms.mode,
        "wire": terms.wire,
        "learner": terms.learner,
        "encoder": "" if encoder is None else encoder.digest,
        "names": json.dumps([roll.name(node) for node in order]),
        "classes": json.dumps(_classes(roll, terms)),
    }
    questions = {}
    for node in order:
        others = {
            f"{place}/{name}": array
            for place, other in enumerate(order)
            if other != node
            for name, array in accepted[other].arrays.items()
        }
        questions[node] = RecordDict({"terms": config(asked), "shared": ArrayRecord(others)})
    return roll.ask("learn", questions, lambda node, content: check_metrics(content, roll.members[node].held_out))


def _params(terms: Terms) -> str:
    return json.dumps(dict(terms.params))


def _classes(roll: Roll, terms: Terms) -> Mapping[str, tuple[str, ...]]:
    """Return the labels of the run with their classes."""
    if terms.mode == "vertical":
        return next(hello.utility for hello in roll.members.values() if hello.name == terms.labels_from)
    return next(iter(roll.members.values())).utility

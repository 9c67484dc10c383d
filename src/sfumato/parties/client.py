"""A party's side of the Flower app: answers the server from the party's own folder and sends nothing private.

A party that cannot or will not answer sends a single word as the reason and writes the details to its own log and
folder. An error message may quote a record, so it is never sent.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode

from sfumato.core import compute
from sfumato.core.dataset import Dataset
from sfumato.core.errors import DataError, UsageError
from sfumato.core.release import Release
from sfumato.core.run_folder import read_json, write_json
from sfumato.parties import local_training, pooled_learning
from sfumato.parties.digests import ids_digest, schema_digest
from sfumato.parties.flower_records import arrays, config, encoder_records, metrics
from sfumato.parties.message_checks import (
    MessageRefused,
    by_party,
    check_arrays,
    check_encoder,
    check_keys,
    check_labels,
    classes_of,
    names_of,
    object_of,
    text_of,
    wire_of,
)
from sfumato.parties.party_folder import DEVICE, PartyFolder, open_party
from sfumato.parties.pooled_learning import CARD, HELD_OUT, OWN, Piece, below, beside
from sfumato.parties.published_copy import has_encoder, keep_encoder, kept_encoder, rounded
from sfumato.parties.results import write_right
from sfumato.parties.wire_precision import packed, steps, unpacked

_JOINED = "joined.json"
LOG = logging.getLogger("sfumato.parties")
Work = Callable[[Message, PartyFolder], RecordDict]
Refusal = Callable[[Message, str, Exception, PartyFolder | None], Message]


def party_app() -> ClientApp:
    """Return the ClientApp of ``sfumato share``."""
    app = ClientApp()
    queries = {"hello": hello, "publish": publish, "labels": labels, "share": share, "learn": learn}
    for action, work in queries.items():
        app.query(action)(_answering(work))
    app.train()(_answering(local_training.train, _error))
    app.evaluate()(_answering(local_training.evaluate, _error))
    return app


def _answering(work: Work, refusal: Refusal | None = None) -> Callable[[Message, Context], Message]:
    refuse = refusal or _refusal

    def answer(message: Message, context: Context) -> Message:
        try:
            party = open_party(context.node_config, context.run_id)
        except Exception as error:  # Flower would send the message of an exception not caught here
            return refuse(message, "settings", error, None)
        try:
            with compute.using(compute.Compute(device=os.environ.get(DEVICE, "cpu"))):
                return Message(work(message, party), reply_to=message)
        except (MessageRefused, UsageError) as error:
            return refuse(message, "terms", error, party)
        except DataError as error:
            return refuse(message, "data", error, party)
        except Exception as error:
            return refuse(message, "failed", error, party)

    return answer


def _refusal(message: Message, why: str, error: Exception, party: PartyFolder | None) -> Message:
    """Answer with one word and the party's name; the details stay here."""
    _note(message, why, error, party)
    told = {"why": why, "name": party.name if party else "nameless"}
    return Message(RecordDict({"refused": config(told)}), reply_to=message)


def _error(message: Message, why: str, error: Exception, party: PartyFolder | None) -> Message:
    """Answer with one of Flower's own errors, which its strategies skip."""
    _note(message, why, error, party)
    return Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, why), reply_to=message)


def _note(message: Message, why: str, error: Exception, party: PartyFolder | None) -> None:
    text = "".join(traceback.format_exception(error)) if why == "failed" else str(error)
    LOG.warning("%s refused %s: %s", party.name if party else "a node", message.metadata.message_type, text)
    if party is not None:
        party.out.mkdir(parents=True, exist_ok=True)
        (party.out / "refused.txt").write_text(f"{message.metadata.message_type}: {text}\n")


def hello(message: Message, party: PartyFolder) -> RecordDict:
    """Send name, record counts and digests, so that the server can check that everything fits before sharing."""
    check_keys(message.content, ("terms",))
    terms = message.content["terms"]
    check_keys(terms, ("mode", "salt", "params"))
    mode = text_of(terms, "mode")
    party.check_mode(mode)
    if mode != "fedavg":
        from sfumato.parties import party_mechanisms  # imports torch

        party_mechanisms.check_choices(mode, _terms(terms)[1], party)
    train, test = party.records("train"), party.records("test")
    vertical = mode == "vertical"
    about = {
        "name": party.name,
        "size": party.schema.size,
        "rows": len(train),
        "held-out": len(test),
        "schema": "" if vertical else schema_digest(party.schema),
        "ids": ids_digest(train.ids, test.ids, text_of(terms, "salt")) if vertical else "",
        "labels": json.dumps(party.schema.to_json()["utility"]),
    }
    return RecordDict({"hello": config(about)})


def publish(message: Message, party: PartyFolder) -> RecordDict:
    """Train an encoder on the initiator's own records and publish it."""
    from sfumato.parties import party_mechanisms

    check_keys(message.content, ("terms",))
    mode, params = _terms(message.content["terms"])
    party.check_mode(mode)
    party.check_initiator()
    _only_once(has_encoder(party.out))
    party_mechanisms.check_choices(mode, params, party)
    made = party_mechanisms.publish(mode, params, party.records("train"), party)
    half = wire_of(message.content["terms"]) != "float32"
    made = rounded(made) if half else made
    keep_encoder(party.out, made)
    return encoder_records(made, half=half)


def labels(message: Message, party: PartyFolder) -> RecordDict:
    """Vertical: send the utility labels of the records that all parties have in common."""
    check_keys(message.content, ())
    party.check_mode("vertical")
    return RecordDict({"labels": arrays(_label_arrays(party.records("train")))})


def share(message: Message, party: PartyFolder) -> RecordDict:
    """Send the party's representations, with utility labels unless all parties have them, and nothing else."""
    from sfumato.parties import party_mechanisms

    content = dict(message.content)
    if "terms" not in content:
        raise MessageRefused("the message has no terms")
    terms = content.pop("terms")
    mode, params = _terms(terms)
    party.check_mode(mode)
    _only_once((party.out / _JOINED).exists())  # with nearly identical encoders, noise could be averaged away
    seen: Counter[bytes] = Counter()  # a copy in the held-out part is a further copy: both may leave
    train, test = (replace(party.records(part), earlier=seen) for part in ("train", "test"))
    encoder = None
    if mode == "vertical":
        party_mechanisms.check_choices(mode, params, party)  # again: the terms may differ from those of the hello
        train = _labelled(train, content, classes_of(terms, "classes"))
    else:
        encoder = check_encoder(content) if "encoder" in content else kept_encoder(party.out)
        _check_expected(encoder.digest, text_of(terms, "encoder"), party)
        party_mechanisms.check_choices(mode, party_mechanisms.offered(mode, encoder), party)
    release = party_mechanisms.releaser(mode, encoder, params, train, party)
    wire = wire_of(terms)
    shared, held_out = release(train), release(test)
    sent, scale = _sent(shared, held_out, wire)
    digest = "" if encoder is None else encoder.digest
    classes = dict(train.schema.utility)
    pooled_learning.write_piece(party.out / OWN, unpacked(sent["z"], wire, **scale), train.utility, classes)
    pooled_learning.write_piece(party.out / HELD_OUT, unpacked(sent["held-out"], wire, **scale), test.utility, classes)
    promise = {"mechanism": shared.mechanism, "guarantee": shared.guarantee.statement, "encoder": digest, "mode": mode}
    write_json(party.out / _JOINED, {**promise, "repeatable": party.seed is not None})
    if mode != "vertical":
        del sent["held-out"]
        sent |= _label_arrays(train)
    about = {"encoder": digest, "schema": "" if mode == "vertical" else schema_digest(party.schema), "wire": wire}
    return RecordDict({"shared": arrays({**sent, **scale}), "about": config(about)})


def learn(message: Message, party: PartyFolder) -> RecordDict:
    """Store all accepted representations in the party's folder, train a classifier on them and send its figures."""
    from sfumato.parties import party_mechanisms

    check_keys(message.content, ("terms", "shared"))
    terms, theirs = message.content["terms"], message.content["shared"]
    mode, learner, wire = text_of(terms, "mode"), text_of(terms, "learner"), wire_of(terms)
    _only_once((party.out / CARD).exists())  # each answer reveals something about held-out records
    joined = read_json(party.out / _JOINED)
    if (mode, text_of(terms, "encoder")) != (joined["mode"], joined["encoder"]):
        raise MessageRefused(
            "the representations were not made in the mode and with the encoder that this party accepted"
        )
    party_mechanisms.check_test(mode, joined["encoder"], party)
    vertical = mode == "vertical"
    classes = classes_of(terms, "classes") if vertical else dict(party.schema.utility)
    own, codes = pooled_learning.read_piece(party.out / OWN, classes)
    held_out, truth = pooled_learning.read_piece(party.out / HELD_OUT, classes)
    pieces, sent = [], by_party(theirs)
    names = names_of(terms, "names")
    check_keys(sent, [str(place) for place, name in enumerate(names) if name != party.name], "set")
    for place, name in enumerate(names):
        if name == party.name:
            pieces.append(Piece(name, own, codes, held_out))
            continue
        read = check_arrays(
            sent[str(place)],
            wire=wire,
            rows=len(own) if vertical else None,
            classes={} if vertical else {label: len(names) for label, names in classes.items()},
            held_out=len(held_out) if vertical else None,
        )
        pieces.append(Piece(name, read.z, codes if vertical else read.labels, read.held_out))
    shared = (beside if vertical else below)(pieces)
    pooled_learning.write_shared(party.out, shared, pieces, classes, joined)
    tests = held_out if shared.held_out is None else shared.held_out
    found, right = pooled_learning.learn(shared.z, shared.labels, tests, truth, learner)
    for values in list(right.values())[:1]:
        write_right(party.out, values)
    return RecordDict({"metrics": metrics(found)})


def _only_once(done: bool) -> None:
    if done:
        raise MessageRefused("this party has already answered this request, which it does once per run")


def _terms(terms: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    from sfumato.parties import party_mechanisms

    mode = text_of(terms, "mode")
    party_mechanisms.check_mode(mode)
    params = object_of(terms, "params")
    party_mechanisms.check_params(mode, params)
    return mode, params


def _check_expected(digest: str, agreed: str, party: PartyFolder) -> None:
    """Raise unless the encoder is the agreed one and, if this party published or pinned one, also that one."""
    expected = kept_encoder(party.out).digest if has_encoder(party.out) else party.encoder
    if digest != agreed or (expected and digest != expected):
        raise MessageRefused("the encoder comes from another initiator: its digest is not the expected one")


def _labelled(data: Dataset, content: Mapping[str, Any], classes: Mapping[str, tuple[str, ...]]) -> Dataset:
    """Attach the labels that another party sent."""
    check_keys(content, ("labels",))
    sizes = {label: len(names) for label, names in classes.items()}
    codes = check_labels(content["labels"], rows=len(data), classes=sizes)
    return replace(data, schema=replace(data.schema, utility=classes), utility=codes)


def _label_arrays(data: Dataset) -> dict[str, Any]:
    return {
        f"label.{label}": pooled_learning.smallest_codes(codes, len(data.schema.utility[label]))
        for label, codes in data.utility.items()
    }


def _sent(shared: Release, held_out: Release, wire: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both releases as sent, and the scale needed to read them."""
    scale = steps(shared.payload, wire)
    return {name: packed(one.payload, wire, **scale) for name, one in (("z", shared), ("held-out", held_out))}, scale

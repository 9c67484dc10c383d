"""``sfumato share app``: the Flower app as files, for ``flwr run`` and a real deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato import __version__
from sfumato.parties.run_terms import Terms
from sfumato.workflow.releasing import writable

PACKAGE = "sfumato_share"
_COMMENTS = {
    "out": "the server's run folder, on the machine of the SuperLink; must not exist",
    "mode": "horizontal, vertical, filter or fedavg",
    "parties": "how many nodes to wait for, and for how many seconds (wait)",
    "initiator": "the party that trains and publishes the encoder",
    "labels": "vertical: the party that has the labels (default: the initiator)",
    "params": "hyper-parameters of the mechanism, as JSON",
    "learner": "mlp or logistic",
    "wire": "float32, float16, uint8 or uint4",
    "timeout": "seconds for each phase",
    "most-bytes": "the largest message of a party",
    "record": "a folder for a copy of every message, for inspection",
    "rounds": "fedavg: rounds, local epochs, batch, rate; noise and clip for DP-FedAvg",
}


def lay_app(folder: Path, **choices: Any) -> Path:
    """Write the Flower app into ``folder``, which must not exist; ``choices`` replace fields of ``Terms``."""
    terms = Terms(**{"out": "sfumato-share", **choices})
    with writable(folder) as part:
        (part / PACKAGE).mkdir()
        (part / "pyproject.toml").write_text(_project(terms))
        (part / PACKAGE / "__init__.py").write_text('"""Parties that share representations, run by Flower."""\n')
        for side, maker in (("server", "server_app"), ("client", "party_app")):
            (part / PACKAGE / f"{side}_app.py").write_text(
                f'"""The {side} of the app; all of it is sfumato\'s."""\n\n'
                f"from sfumato.parties.{side} import {maker}\n\napp = {maker}()\n"
            )
    return folder


def _project(terms: Terms) -> str:
    import tomli_w

    lines = []
    for name, value in terms.to_run_config().items():
        if name in _COMMENTS:
            lines.append(f"# {_COMMENTS[name]}")
        lines.append(tomli_w.dumps({name: value}).rstrip())
    settings = "\n".join(lines)
    return f"""[project]
name = "sfumato-share"
version = "{__version__}"
description = "Parties share protected representations and learn together."
license = "Apache-2.0"
dependencies = ["sfumato[parties]=={__version__}"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.flwr.app]
publisher = "sfumato"

[tool.flwr.app.components]
serverapp = "{PACKAGE}.server_app:app"
clientapp = "{PACKAGE}.client_app:app"

[tool.flwr.app.config]
{settings}
"""

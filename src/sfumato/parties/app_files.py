"""``sfumato share app``: write the Flower app to files, for ``flwr run`` and a real deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato import __version__
from sfumato.parties.run_terms import Terms
from sfumato.workflow.releasing import writable

PACKAGE = "sfumato_share"
_COMMENTS = {
    "out": "the server's run folder, on the SuperLink's machine; must not exist",
    "mode": "horizontal, vertical, filter or fedavg",
    "parties": "number of nodes to wait for (for at most 'wait' seconds)",
    "initiator": "the party that trains and publishes the encoder",
    "labels": "vertical: the party that has the labels (default: the initiator)",
    "params": "hyper-parameters of the mechanism, as JSON",
    "learner": "mlp or logistic",
    "wire": "float32, float16, uint8 or uint4",
    "timeout": "time limit of each phase, in seconds",
    "most-bytes": "largest message from a party, in bytes",
    "record": "a folder for a copy of every message, for inspection",
    "rounds": "fedavg: rounds, local epochs, batch size, learning rate; noise and clip for DP-FedAvg",
}


def lay_app(folder: Path, **choices: Any) -> Path:
    """Write the Flower app of ``sfumato share`` to a folder.

    Args:
        folder: The folder to create; it must not exist.
        **choices: Fields of ``Terms`` that differ from their defaults, for the app's run configuration.

    Returns:
        The folder.

    Raises:
        UsageError: A choice is unknown or out of range.
        DataError: The folder exists or cannot be written.
    """
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

"""An environment for every peer, made with pip on first use and kept: ``build/peers/NAME``.

What is compared in one process runs in the peer's environment with our packages beneath it, so that both use the same
torch; all others get nothing of ours.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.studies.peers import REQUIREMENTS, made

HOME = Path(__file__).parents[2] / "build" / "peers"


@dataclass(frozen=True)
class Needs:
    """What pip installs, ``beside`` ours or alone, and ``variables`` that it needs for it."""

    packages: tuple[str, ...]
    beside: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


NEEDS = {
    "art": Needs(("adversarial-robustness-toolbox>=1.20",), beside=True),
    "opacus": Needs(("opacus>=1.5",), beside=True),
    "tenseal": Needs(("tenseal>=0.3.16",)),
    "concrete-ml": Needs(("concrete-ml>=1.9",)),
    # It needs a torch of its time, and asks for scikit-learn by a name that only installs if one insists.
    "crypten": Needs(
        ("crypten==0.4.1", "torch==2.3.1", "numpy<2"),
        variables={"SKLEARN_ALLOW_DEPRECATED_SKLEARN_PACKAGE_INSTALL": "True"},
    ),
    "sdnist": Needs(("sdnist==2.4",)),
    "anonymeter": Needs(("anonymeter==1.0.0", "numpy<1.27")),  # wants Python below 3.12
    **{name: Needs(packages) for name, packages in REQUIREMENTS.items()},
}


def environment(name: str) -> Path:
    """The interpreter that has the peer; raises ``OSError`` or ``SubprocessError`` if it cannot be made."""
    needs = NEEDS[name]
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")} if needs.beside else set()
    return made(HOME / name, needs.packages, beneath=sorted(ours), variables=needs.variables)

"""The cloud half as a service that speaks the Open Inference Protocol v2."""

from __future__ import annotations

from sfumato.deploy.serve.server_process import run
from sfumato.deploy.serve.settings import ServeSettings

__all__ = ["ServeSettings", "run"]

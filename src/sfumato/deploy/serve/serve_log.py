"""The service's log: a JSON object a line on stderr, without payloads, addresses of clients or words of theirs."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from typing import Any

LOGGER = logging.getLogger("sfumato.serve")


class JsonLines(logging.Formatter):
    """Of an error its type and where it came from, never its message: that could repeat what a client sent."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {"time": f"{seconds}.{int(record.msecs):03}Z", "level": record.levelname.lower()}
        line |= {"event": record.getMessage(), "pid": record.process, **getattr(record, "figures", {})}
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            line["error"] = record.exc_info[0].__name__
            line["at"] = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
        return json.dumps(line)


def start_log(quiet: bool = False) -> None:
    """Send the service's and the HTTP server's log to stderr; with ``quiet`` warnings and errors only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (
        ("sfumato.serve", logging.INFO),
        ("uvicorn.error", logging.WARNING),
        ("asyncio", logging.ERROR),
    ):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(logging.WARNING if quiet else level)
        logger.propagate = False
    logging.getLogger("uvicorn.error").addFilter(_is_ours_too)


def _is_ours_too(record: logging.LogRecord) -> bool:
    """A malformed request is the client's affair and is counted; a line for each would fill the disk."""
    return record.getMessage() not in ("Invalid HTTP request received.", "Unsupported upgrade request.") and not (
        record.getMessage().startswith("No supported WebSocket")
    )


def say(event: str, level: int = logging.INFO, **figures: Any) -> None:
    """One line; figures are numbers and words of our own."""
    if LOGGER.isEnabledFor(level):  # not by LOGGER.log, which looks for the caller in every frame
        LOGGER.handle(LOGGER.makeRecord(LOGGER.name, level, "", 0, event, (), None, extra={"figures": figures}))

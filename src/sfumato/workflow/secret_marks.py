"""Which device's secret a run has been released under: another one would give the records other noise or company."""

from __future__ import annotations

from pathlib import Path

from sfumato.core.errors import UsageError
from sfumato.core.run_folder import read_json, write_json
from sfumato.mechanisms.device_secret import SECRET_VARIABLE, fingerprint, secret_file, secret_path

MARK = "device.json"


def secret_mark(run: Path) -> str | None:
    """The fingerprint of the secret that ``SFUMATO_DEVICE_SECRET`` names; raises if the run knows another."""
    file = secret_path()
    if file is None:
        return None
    mark = fingerprint(secret_file(file))
    known = read_json(run / MARK).get("secret") if is_marked(run) else mark
    if known != mark:
        raise UsageError(
            f"{run} was released under the secret {known}, and {SECRET_VARIABLE} names {mark}: name the first one, or "
            "fit again for records that were never sent."
        )
    return mark


def is_marked(run: Path) -> bool:
    """Whether the run has been released under a secret."""
    return (run / MARK).is_file()


def keep_mark(run: Path, mark: str | None) -> None:
    """Remember the secret that a release was made under."""
    if mark is not None and not (run / MARK).exists():
        write_json(run / MARK, {"secret": mark})

"""Files of a folder, protected and sent as they arrive; the answer to NAME is NAME.json in another folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.errors import DataError, SfumatoError, UsageError
from sfumato.core.run_folder import atomic
from sfumato.device.edge_device import EdgeDevice
from sfumato.device.remote_model import NoAnswer, RemoteModel

Say = Callable[[str], None]
_SECONDS = 0.5
"""Between two looks; a file that did not change in between is taken for whole."""


class FolderWatch:
    """``folder`` → ``out``: with ``remote`` its answer in NAME.json, else the protected tensor in NAME.npy.

    A file that cannot be read gets a NAME.json with an error. What was done is known by what lies in ``out``, so that a
    watch can be stopped and begun again. Hidden files are passed by.
    """

    def __init__(
        self,
        folder: Path,
        out: Path,
        device: EdgeDevice,
        remote: RemoteModel | None,
        *,
        private: Mapping[str, Any] | None = None,
        say: Say = lambda _: None,
    ) -> None:
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder: give the one that files arrive in.")
        if out.resolve() == folder.resolve():
            raise UsageError(f"answers cannot lie in {folder} itself: give another --out.")
        if device.manifest.encrypted and remote is None:
            raise UsageError("an encrypted message needs an answer while its key is here: give --to.")
        out.mkdir(parents=True, exist_ok=True)
        self._folder, self._out, self._device, self._remote = folder, out, device, remote
        self._private, self._say = private, say
        self._seen: dict[str, tuple[int, int]] = {}

    def once(self) -> int:
        """Look once; how many files were done. A file is done at the second look at the earliest."""
        done, now = 0, {}
        for entry in sorted(os.scandir(self._folder), key=lambda one: one.name):
            if entry.name.startswith(".") or Path(entry.name).suffix.lower() not in self._device.records.suffixes:
                continue
            if not entry.is_file(follow_symlinks=False) or self._is_done(entry.name):
                continue
            state = entry.stat()
            now[entry.name] = (state.st_size, state.st_mtime_ns)
            if self._seen.get(entry.name) == now[entry.name]:
                done += self._do(Path(entry.path))
        self._seen = now
        return done

    def _is_done(self, name: str) -> bool:
        return (self._out / f"{name}.json").exists() or (self._out / f"{name}.npy").exists()

    def _do(self, path: Path) -> bool:
        try:
            if self._remote is None:
                payload = self._device.encode(path, private=self._private)
                with atomic(self._out / f"{path.name}.npy") as part, part.open("wb") as file:
                    np.save(file, payload, allow_pickle=False)
                self._say(f"{path.name}: protected")
                return True
            answers: Any = self._remote.predict(path, private=self._private)
            said = {"file": path.name, "answers": answers}
        except NoAnswer as error:
            self._say(f"{path.name}: {error}")
            return False  # it is tried again
        except SfumatoError as error:
            said = {"file": path.name, "error": str(error)}
        with atomic(self._out / f"{path.name}.json") as part:
            part.write_text(json.dumps(said, indent=2) + "\n")
        self._say(f"{path.name}: {said.get('error') or _shown(said['answers'])}")
        return True

    def forever(self) -> None:
        """Look until somebody interrupts."""
        while True:
            if not self.once():
                time.sleep(_SECONDS)

    def drain(self) -> int:
        """Do everything that lies there now; how many files were done."""
        self.once()
        time.sleep(_SECONDS)
        return self.once()


def _shown(answers: Any) -> str:
    return "; ".join(", ".join(f"{label} {said}" for label, said in one.items()) for one in answers)


def token_of(file: Path | None) -> str | None:
    """The token in a file's first line."""
    if file is None:
        return None
    try:
        found = file.read_text().strip().splitlines()
    except (OSError, UnicodeDecodeError):
        raise DataError(f"cannot read a token from {file}: give a file whose first line is the token.") from None
    if not found:
        raise DataError(f"{file} is empty: give a file whose first line is the token.")
    return found[0].strip()

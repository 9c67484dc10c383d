"""Fetching named data sets as Parquet files: from the user's folder, else the cache, else the public source."""

from __future__ import annotations

import fnmatch
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sfumato.core.errors import DataError
from sfumato.data.registry import ByHand, Embedded, Entry, HubSource, UciSource

DATA_VARIABLE = "SFUMATO_DATA"
CACHE_VARIABLE = "SFUMATO_CACHE"
PARTS = ("train", "test")
MAX_DOWNLOAD_BYTES = 2**30

_ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
    "income",
)  # fmt: skip
_ADULT_NUMBERS = frozenset({"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"})
_HAR_CHANNELS = tuple(f"{what}_{axis}" for what in ("body_acc", "body_gyro", "total_acc") for axis in "xyz")
_SPEAKER = re.compile(r"^\d_(?P<speaker>[A-Za-z]+)_\d+\.wav$")


class HubClient(Protocol):
    """The two functions of ``huggingface_hub`` used here."""

    def list_repo_files(self, repo_id: str, *, repo_type: str) -> Iterable[str]: ...

    def hf_hub_download(self, repo_id: str, filename: str, *, repo_type: str) -> str: ...


Download = Callable[[str], bytes]


def at_hand(entry: Entry) -> dict[str, Path]:
    """Return the Parquet files of a named set found in the user's folder, or else in the cache."""
    own = os.environ.get(DATA_VARIABLE)
    found = present(Path(own) / entry.name) if own else {}
    return found or present(cache_folder() / entry.name)


def local_parts(entry: Entry) -> dict[str, Path]:
    """Return the Parquet files of a named set, fetching them on first use. The embedded set has none."""
    return at_hand(entry) or fetch(entry, cache_folder() / entry.name)


def present(folder: Path) -> dict[str, Path]:
    """Return which of ``train.parquet`` and ``test.parquet`` a folder has."""
    return {part: folder / f"{part}.parquet" for part in PARTS if (folder / f"{part}.parquet").is_file()}


def cache_folder() -> Path:
    """Return where fetched sets are kept: ``$SFUMATO_CACHE``, or else the user's cache folder."""
    own = os.environ.get(CACHE_VARIABLE)
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sfumato" / "data"


def fetch(
    entry: Entry, folder: Path, *, hub: HubClient | None = None, download: Download | None = None
) -> dict[str, Path]:
    """Fetch a named set from its public source into ``folder`` as Parquet. Only complete files appear there."""
    try:
        if isinstance(entry.source, HubSource):
            _from_hub(entry.source, folder, hub or _hub_client(entry))
        elif isinstance(entry.source, UciSource):
            archive = zipfile.ZipFile(io.BytesIO((download or _download)(entry.source.url)))
            reader = {"adult": _adult, "har": _har}[entry.source.reader]
            for part in PARTS:
                _write(folder / f"{part}.parquet", [reader(archive, part)])
        elif isinstance(entry.source, Embedded):
            return {}
        elif isinstance(entry.source, ByHand):
            columns = " and ".join(f"'{name}'" for name in filter(None, (entry.x, *entry.utility)))
            raise DataError(
                f"'{entry.name}' cannot be fetched, because {entry.source}: {_by_hand(entry)}, with {columns} as "
                "columns."
            )
    except DataError:
        raise
    except Exception as error:  # the client or the network may fail in any way; the remedy is the same
        raise DataError(
            f"'{entry.name}' could not be fetched from {entry.source} "
            f"({type(error).__name__}: {str(error)[:120]}); connect to the network, or {_by_hand(entry)}."
        ) from error
    return present(folder)


def _by_hand(entry: Entry) -> str:
    return f"put train.parquet and test.parquet into ${DATA_VARIABLE}/{entry.name}"


def _hub_client(entry: Entry) -> HubClient:
    try:
        import huggingface_hub
    except ImportError as error:
        raise DataError(
            f"'{entry.name}' comes from {entry.source}: install the client with "
            f"pip install 'sfumato[hub]', or {_by_hand(entry)}."
        ) from error
    client: HubClient = huggingface_hub
    return client


def _download(url: str) -> bytes:
    from urllib.request import urlopen

    with urlopen(url, timeout=60) as answer:
        data: bytes = answer.read(MAX_DOWNLOAD_BYTES + 1)
    if len(data) > MAX_DOWNLOAD_BYTES:
        raise DataError(f"{url} is larger than {MAX_DOWNLOAD_BYTES >> 20} MB.")
    return data


def _from_hub(source: HubSource, folder: Path, hub: HubClient) -> None:
    names = sorted(hub.list_repo_files(source.repo, repo_type="dataset"))
    for part in PARTS:
        wanted = fnmatch.filter(names, source.files[part])
        if not wanted:
            raise DataError(f"{source} has no file matching {source.files[part]}; its layout may have changed.")
        paths = [Path(hub.hf_hub_download(source.repo, name, repo_type="dataset")) for name in wanted]
        _write(folder / f"{part}.parquet", _hub_tables(paths, source))


def _hub_tables(paths: list[Path], source: HubSource) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in paths:
        file = pq.ParquetFile(path)
        for batch in file.iter_batches(batch_size=1024):
            table = pa.Table.from_batches([batch])
            table = table.rename_columns([source.rename.get(name, name) for name in table.column_names])
            if source.speaker_in_path and "speaker" not in table.column_names:
                table = _with_speaker(table)
            # The metadata of the datasets library uses the old column names, so rename them there as well.
            note = (file.schema_arrow.metadata or {}).get(b"huggingface")
            yield table.replace_schema_metadata(
                {b"huggingface": _renamed_note(note, source)} if note is not None else None
            )


def _renamed_note(note: bytes, source: HubSource) -> bytes:
    for old, new in source.rename.items():
        note = note.replace(f'"{old}":'.encode(), f'"{new}":'.encode())
    return note


def _with_speaker(table: Any) -> Any:
    """Add the speaker from file names such as ``7_jackson_32.wav``, if all names have that form."""
    import pyarrow as pa

    found = [_SPEAKER.match(Path(cell["path"] or "").name) for cell in table.column("audio").to_pylist()]
    if not all(found):
        return table
    return table.append_column("speaker", pa.array([match["speaker"] for match in found if match]))


def _adult(archive: zipfile.ZipFile, part: str) -> Any:
    import pyarrow as pa

    text = archive.read({"train": "adult.data", "test": "adult.test"}[part]).decode()
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    rows = [row for row in rows if len(row) == len(_ADULT_COLUMNS)]
    columns = dict(zip(_ADULT_COLUMNS, zip(*rows, strict=True), strict=True))
    columns["income"] = tuple(value.rstrip(".") for value in columns["income"])
    return pa.table(
        {name: [int(v) for v in values] if name in _ADULT_NUMBERS else values for name, values in columns.items()}
    )


def _har(outer: zipfile.ZipFile, part: str) -> Any:
    import pyarrow as pa

    inner = next((name for name in outer.namelist() if name.endswith("UCI HAR Dataset.zip")), None)
    archive = outer if inner is None else zipfile.ZipFile(io.BytesIO(outer.read(inner)))

    def numbers(name: str) -> Any:
        return np.loadtxt(io.BytesIO(archive.read(f"UCI HAR Dataset/{part}/{name}_{part}.txt")), ndmin=2)

    signals = np.stack([numbers(f"Inertial Signals/{channel}") for channel in _HAR_CHANNELS], axis=1)
    flat = pa.array(signals.astype(np.float32).ravel())
    return pa.table(
        {
            "signals": pa.FixedSizeListArray.from_arrays(flat, signals[0].size),
            "label": numbers("y")[:, 0].astype(np.int64) - 1,
            "subject": numbers("subject")[:, 0].astype(np.int64),
        }
    )


def _write(path: Path, tables: Iterable[Any]) -> None:
    """Write to a temporary name and rename, so that an interrupted fetch leaves no partial file."""
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    writer = None
    try:
        for table in tables:
            if writer is None:
                writer = pq.ParquetWriter(draft, table.schema, compression="zstd")
            writer.write_table(table)
        if writer is None:
            raise DataError(f"the public source of {path.parent.name} contains no records.")
        writer.close()
        draft.replace(path)
    finally:
        if writer is not None:
            writer.close()
        draft.unlink(missing_ok=True)

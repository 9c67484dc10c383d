"""Parquet that is not on this machine: a file or a folder at an address that fsspec knows, such as ``s3://…``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.errors import UsageError
from sfumato.core.extras import require
from sfumato.data.file_errors import Place
from sfumato.data.readers.parquet import ParquetSource
from sfumato.data.readers.parquet_folder import SUFFIXES, ParquetFolder

if TYPE_CHECKING:
    from sfumato.data.readers.source import Source


def is_address(name: object) -> bool:
    """Whether a source is named by an address."""
    return isinstance(name, str) and "://" in name


def at_address(address: str) -> Source:
    """The Parquet file, or the folder of Parquet files, at an address."""
    system, path = _system(address)
    try:
        if not system.isdir(path):
            return parquet_at(address)
        names = sorted(str(name) for name in system.ls(path, detail=False))
    except OSError as error:
        raise Place(address).fault(f"cannot be read ({error})", "check the address and your access to it") from None
    files = [name for name in names if name.endswith(SUFFIXES) and not name.rsplit("/", 1)[-1].startswith((".", "_"))]
    if not files:
        raise Place(address).fault("holds no Parquet files", "name a Parquet file or a folder of them")
    return ParquetFolder(address, [parquet_at(system.unstrip_protocol(name)) for name in files])


def parquet_at(address: str) -> ParquetSource:
    """One Parquet file."""
    system, path = _system(address)
    try:
        return ParquetSource(address, system.open(path, "rb"))
    except OSError as error:
        raise Place(address).fault(f"cannot be read ({error})", "check the address and your access to it") from None


def _system(address: str) -> tuple[Any, str]:
    require("scale", f"{address.partition('://')[0]}://", "fsspec")
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{address}: {error}.") from None
    return system, str(path)

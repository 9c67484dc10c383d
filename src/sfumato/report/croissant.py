"""A release as Croissant 1.1 (mlcommons.org/croissant), with its responsible-AI and provenance properties."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from sfumato.core.guarantee import Guarantee
from sfumato.core.threats import title
from sfumato.report.guarantees import covers_line, epsilon_line, kind_line

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
_RAI = "http://mlcommons.org/croissant/RAI/1.0"
_TYPES = {
    "string": "sc:Text",
    "large_string": "sc:Text",
    "bool": "sc:Boolean",
    "float": "cr:Float32",
    "double": "cr:Float64",
    "halffloat": "cr:Float16",
    **{f"{sign}int{bits}": f"cr:{'U' if sign else ''}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "struct": "sc:ImageObject",
}
_FORMATS = {".parquet": "application/x-parquet", ".png": "image/png", ".csv": "text/csv"}
# fmt: off
_WORDS = (
    "arrayShape", "column", "containedIn", "equivalentProperty", "extract", "field", "fileObject", "fileProperty",
    "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path",
    "recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField",
    "transform",
)
# fmt: on
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "citeAs": "cr:citeAs",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "name": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{word: f"cr:{word}" for word in _WORDS},
}


def croissant_text(record: Mapping[str, Any]) -> str:
    """``croissant.json``, from the values of a ``release.json`` alone."""
    return json.dumps(_dataset(record), indent=2, ensure_ascii=False) + "\n"


def _dataset(record: Mapping[str, Any]) -> dict[str, Any]:
    about, promise = record["about"], Guarantee.from_json(record["guarantee"])
    made_of = record["data"] or "records that stay with the owner"
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [CONFORMS_TO, _RAI],
        "name": f"{record['mechanism']}-release",
        "description": (
            f"What a release by the mechanism {record['mechanism']} of sfumato {record['sfumato']} lets others see of "
            f"{made_of}. {kind_line(promise)}. The card is README.md, every figure is in release.json."
        ),
        "license": "https://spdx.org/licenses/LicenseRef-ask-the-owner",
        "url": "https://example.invalid/where-the-owner-offers-it",
        "version": "1.0.0",
        "datePublished": record["created"],
        "creator": {"@type": "sc:Organization", "name": about["owner"] or "the owner of the records"},
        "citeAs": f"{record['mechanism']} release, {record['created']}, SHA-256 {record['payload']['sha256']}",
        "isLiveDataset": False,
        "prov:wasGeneratedBy": {
            "@type": "prov:Activity",
            "prov:label": f"sfumato {record['sfumato']}, mechanism {record['mechanism']}",
        },
        "prov:wasDerivedFrom": {"@type": "prov:Entity", "prov:label": made_of},
        **_responsible(record, promise),
        "distribution": _distribution(record),
        "recordSet": _record_sets(record),
    }


def _responsible(record: Mapping[str, Any], promise: Guarantee) -> dict[str, Any]:
    about, audit = record["about"], record["audit"]
    worst = sorted(audit["worst"]) if audit is not None else []
    tested = ", ".join(title(key) for key in worst) or "nothing"
    hidden = ", ".join(record["private"]) or "no stated label"
    return {
        "rai:dataUseCases": about["purpose"] or "No purpose was stated.",
        "rai:dataLimitations": [
            *([f"UNAUDITED: {record['unaudited']}"] if record["unaudited"] else []),
            *record["warnings"],
            epsilon_line(promise),
            covers_line(promise),
        ],
        "rai:personalSensitiveInformation": f"Made from records of people; meant to hide: {hidden}. Attacked by: "
        f"{tested}.",
        "rai:dataCollection": "The records stay with the owner; this is what a mechanism made of them.",
        "rai:dataManipulationProtocol": promise.statement,
        "rai:dataReleaseMaintenancePlan": f"Valid until {record['valid_until']}; README.md says what ends it earlier.",
    }


def _distribution(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    names, digest = record["payload"]["files"], record["payload"]["sha256"]
    if len(names) == 1 and "*" not in names[0]:
        return [
            {
                "@type": "cr:FileObject",
                "@id": "payload",
                "name": names[0],
                "contentUrl": names[0],
                "encodingFormat": _FORMATS[PurePosixPath(names[0]).suffix],
                "sha256": digest,
            }
        ]
    return [
        {
            "@type": "cr:FileSet",
            "@id": "payload" if place == 0 else f"payload-{place}",
            "name": pattern,
            "includes": pattern,
            "encodingFormat": _FORMATS[PurePosixPath(pattern).suffix],
        }
        for place, pattern in enumerate(sorted(names, key=lambda name: PurePosixPath(name).suffix != ".parquet"))
    ]


def _record_sets(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One field for each column; none for a folder of pictures."""
    if not record["columns"]:
        return []
    kind = (
        "fileObject" if len(record["payload"]["files"]) == 1 and "*" not in record["payload"]["files"][0] else "fileSet"
    )
    return [
        {
            "@type": "cr:RecordSet",
            "@id": "records",
            "name": "records",
            "field": list(_fields(record, kind)),
        }
    ]


def _fields(record: Mapping[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    for place, column in enumerate(record["columns"]):
        label = column["name"] in record["labels"]
        said = "A label that may be used." if label else "What leaves of a record."
        length = column["length"]
        yield {
            "@type": "cr:Field",
            "@id": f"records/{place}",
            "name": column["name"],
            "description": said,
            "dataType": _TYPES.get(column["type"], "sc:Text"),
            "source": {kind: {"@id": "payload"}, "extract": {"column": column["name"]}},
            **({} if length is None else {"isArray": True, "arrayShape": str(length)}),
        }

"""The service described in OpenAPI 3.1, and the same as a page without scripts and without outside requests."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from sfumato import __version__
from sfumato.deploy.serve.served_model import VERSION, ServedModel
from sfumato.deploy.serve.tensors import TensorSpec

_ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
_SHOWN, _LONGEST_EXAMPLE = 16, 4096
_REFUSALS = {
    400: "The request does not say what the model can read.",
    404: "No such model or version.",
    405: "This address does not take this method.",
    408: "The request came too slowly.",
    413: "Beyond a limit of size, also after decompression.",
    415: "Unknown Content-Encoding.",
    422: "The model gives no finite answer for these values.",
    431: "Too long headers.",
    503: "Busy: come back after Retry-After seconds.",
}


def description(model: ServedModel, *, tokens: bool) -> dict[str, Any]:
    """The description; ``tokens``: whether a bearer token is asked for."""
    each = f"/v2/models/{model.name}"
    paths: dict[str, Any] = {
        "/v2/health/live": {"get": _read("Whether the process lives.", "live", open_to_all=True)},
        "/v2/health/ready": {"get": _read("Whether requests are served.", "ready", open_to_all=True)},
        "/v2": {"get": _read("Name, version and extensions of the server.", "server")},
        "/metrics": {"get": _read("Figures for Prometheus.", None)},
    }
    for place in (each, f"{each}/versions/{VERSION}"):
        paths[place] = {"get": _read("Inputs and outputs of the model.", "model")}
        paths[f"{place}/ready"] = {"get": _read("Whether the model is loaded.", "model_ready")}
        paths[f"{place}/infer"] = {"post": _infer()}
    if tokens:
        for path in paths.values():
            for one in path.values():
                if one.get("security") != []:
                    one["responses"]["401"] = _refused("The token is missing or unknown.")
    told: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": f"sfumato serve: {model.name}",
            "version": __version__,
            "description": "The cloud half of a release over the Open Inference Protocol v2. It takes protected "
            "tensors and never records.",
        },
        "paths": paths,
        "components": {"schemas": _schemas(model)},
    }
    if tokens:
        told["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        told["security"] = [{"token": []}]
    return told


def page(model: ServedModel, *, tokens: bool) -> str:
    """The description for people."""
    told = description(model, tokens=tokens)
    rows = "".join(
        f"<tr><td><code>{method.upper()}</code></td><td><code>{escape(path)}</code></td>"
        f"<td>{escape(one['summary'])}</td></tr>"
        for path, methods in told["paths"].items()
        for method, one in methods.items()
    )
    infer = next(one for one in told["paths"] if one.endswith("/infer"))
    asked = json.dumps({"inputs": [_zeros(spec, _SHOWN) for spec in model.inputs]})
    if any(spec.row_numbers > _SHOWN for spec in model.inputs):
        asked = asked.replace("0]}", "0, …]}")
    token = " -H 'Authorization: Bearer TOKEN'" if tokens else ""
    command = f"curl{token} -H 'Content-Type: application/json' -d '{asked}' URL{infer}"
    return _PAGE.format(
        title=escape(told["info"]["title"]), text=escape(told["info"]["description"]), rows=rows,
        command=escape(command), schemas=escape(json.dumps(_without_examples(told["components"]["schemas"]), indent=2)),
        refusals="".join(f"<tr><td>{status}</td><td>{text}</td></tr>" for status, text in _REFUSALS.items()),
    )  # fmt: skip


def _without_examples(schemas: dict[str, Any]) -> dict[str, Any]:
    return {name: {key: part for key, part in one.items() if key != "examples"} for name, one in schemas.items()}


def _read(summary: str, schema: str | None, *, open_to_all: bool = False) -> dict[str, Any]:
    content = (
        {"text/plain": {"schema": {"type": "string"}}}
        if schema is None
        else {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    )
    said: dict[str, Any] = {"summary": summary, "responses": {"200": {"description": summary, "content": content}}}
    return said | ({"security": []} if open_to_all else {})


def _infer() -> dict[str, Any]:
    length = {
        "name": "Inference-Header-Content-Length",
        "in": "header",
        "required": False,
        "schema": {"type": "integer", "minimum": 0},
        "description": "Bytes of the JSON, if raw tensors follow it.",
    }
    body = {"schema": {"$ref": "#/components/schemas/infer_request"}}
    answer = {"schema": {"$ref": "#/components/schemas/infer_answer"}}
    raw = {"schema": {"type": "string", "format": "binary"}}
    return {
        "summary": "Compute rows.",
        "parameters": [length],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "200": {"description": "The rows of the answer.",
                    "content": {"application/json": answer, "application/octet-stream": raw}},
            **{str(status): _refused(text) for status, text in _REFUSALS.items() if status != 405},
        },
    }  # fmt: skip


def _refused(text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/error"}}}}


def _schemas(model: ServedModel) -> dict[str, Any]:
    flags = {"type": "object", "properties": {"binary_data": {"type": "boolean"}}}
    outputs = {"type": "array", "minItems": 1, "maxItems": len(model.outputs), "items": {
        "type": "object", "required": ["name"],
        "properties": {"name": {"enum": [spec.name for spec in model.outputs]}, "parameters": flags}}}  # fmt: skip
    text = {"type": "string"}
    return {
        "error": _ERROR,
        "live": {"type": "object", "properties": {"live": {"type": "boolean"}}},
        "ready": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        "server": {"type": "object", "required": ["name", "version", "extensions"]},
        "model": {"type": "object", "required": ["name", "versions", "platform", "inputs", "outputs"]},
        "model_ready": {"type": "object", "properties": {"name": text, "ready": {"type": "boolean"}}},
        "infer_request": {
            "type": "object",
            "required": ["inputs"],
            "properties": {
                "id": {"type": "string", "maxLength": 256},
                "inputs": {"type": "array", "minItems": len(model.inputs), "maxItems": len(model.inputs),
                           "items": {"oneOf": [_tensor(spec) for spec in model.inputs]}},
                "outputs": outputs,
                "parameters": {"type": "object", "properties": {"binary_data_output": {"type": "boolean"}}},
            },
            **_example(model),
        },
        "infer_answer": {
            "type": "object",
            "required": ["model_name", "model_version", "outputs"],
            "properties": {"model_name": {"const": model.name}, "model_version": {"const": VERSION}, "id": text,
                           "outputs": {"type": "array", "items": {"type": "object", "required": ["name", "shape"]}}},
        },
    }  # fmt: skip


def _example(model: ServedModel) -> dict[str, Any]:
    """A request that is served, unless it would make the description long."""
    if max(spec.row_numbers for spec in model.inputs) > _LONGEST_EXAMPLE:
        return {}
    return {"examples": [{"inputs": [_zeros(spec, _LONGEST_EXAMPLE) for spec in model.inputs]}]}


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    number = {"type": {"f": "number", "b": "boolean"}.get(spec.dtype.kind, "integer")}
    return {
        "type": "object",
        "required": ["name", "datatype", "shape", "data"],
        "properties": {
            "name": {"const": spec.name},
            "datatype": {"const": spec.datatype},
            "shape": {"type": "array", "prefixItems": [{"type": "integer", "minimum": 1}, *_sizes(spec)],
                      "minItems": 1 + len(spec.shape), "maxItems": 1 + len(spec.shape)},
            "data": {"type": "array", "items": number, "description": "Flat, or nested as the shape says."},
        },
    }  # fmt: skip


def _sizes(spec: TensorSpec) -> list[dict[str, int]]:
    return [{"const": size} for size in spec.shape]


def _zeros(spec: TensorSpec, most: int) -> dict[str, Any]:
    data = [0] * min(most, spec.row_numbers)
    return {"name": spec.name, "datatype": spec.datatype, "shape": [1, *spec.shape], "data": data}


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24;
  background: #fff }}
table {{ border-collapse: collapse; display: block; overflow-x: auto }}
td {{ padding: .3rem .8rem .3rem 0; vertical-align: top; border-bottom: 1px solid #ddd }}
pre {{ background: #f4f5f7; padding: 1rem; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere }}
@media (prefers-color-scheme: dark) {{ body {{ background: #14171a; color: #e6e6e6 }} pre {{ background: #22262b }}
  td {{ border-color: #3a3f45 }} a {{ color: #8ab4f8 }} }}
</style></head><body>
<h1>{title}</h1><p>{text}</p>
<p>For programs: <a href="openapi.json">openapi.json</a>.</p>
<h2>Addresses</h2><table>{rows}</table>
<h2>Ask</h2><p>Data may be flat or nested as the shape says. Large tensors are better sent as raw bytes: JSON first, its
length in the header <code>Inference-Header-Content-Length</code>, tensors behind it in order, each with
<code>parameters.binary_data_size</code>. Request and answer may be compressed (gzip, deflate).</p><pre>{command}</pre>
<h2>Refusals</h2><p>Each is <code>{{"error": "…"}}</code>.</p><table>{refusals}</table>
<h2>Schemas</h2><pre>{schemas}</pre>
</body></html>
"""

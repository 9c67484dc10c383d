"""The templates of the page: texts are escaped, scripts and style are our own files, and a policy forbids the rest."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import sfumato
from sfumato.report.wording import unbroken

if TYPE_CHECKING:
    from jinja2 import Environment

_SCRIPTS = ("charts.js", "page.js")


def rendered(name: str, *, live: bool, data: Mapping[str, Any] | None = None, **values: Any) -> str:
    """A page from the template of that name; ``data`` is what its script reads.

    Only a ``live`` page may ask for anything, and only the server that it came from.
    """
    scripts = [_resource(script) for script in _SCRIPTS]
    text: str = (
        _templates()
        .get_template(name)
        .render(
            values,
            live=live,
            policy=_policy(scripts, live=live),
            css=_resource("style.css"),
            scripts=scripts,
            version=sfumato.__version__,
            data=_json(data or {}),
        )
    )
    return text


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("sfumato.report")
    found = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=True)
    found.filters.update(place="{:.1f}".format, unbroken=unbroken, headed=lambda text: text.partition(": "))
    return found


@cache
def _resource(name: str) -> Any:
    """A file beside the templates, which holds no text from elsewhere."""
    from markupsafe import Markup

    return Markup(files("sfumato.report").joinpath("templates", name).read_text(encoding="utf-8"))


def _json(value: Mapping[str, Any]) -> Any:
    """JSON that cannot end its script element, whatever it holds."""
    from markupsafe import Markup

    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _policy(scripts: Sequence[str], *, live: bool) -> Any:
    """A content security policy: only these scripts run, and nothing is fetched but the news of a live page."""
    from markupsafe import Markup

    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    news = "; connect-src 'self'" if live else ""
    rules = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
    return Markup(rules + news)

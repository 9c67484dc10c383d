"""The documentation as a site that works from disk: python docs/build_site.py [--no-run]

Gathers the pages, executes the notebooks of ``examples/notebooks`` (an error stops the build), writes a page for every
name of the Python API, and calls mkdocs, which refuses broken links. The result is ``build/docs/site/index.html``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import nbformat
import yaml
from markdown.extensions.toc import slugify_unicode
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from nbconvert.filters import strip_ansi

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "docs"
SOURCE = BUILD / "source"
PAGES_ABOVE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
API = {
    "Data": ("sfumato.Dataset", "sfumato.Splits", "sfumato.load", "sfumato.load_splits", "sfumato.split"),
    "Mechanisms": (
        *("sfumato.RAN", "sfumato.Filter", "sfumato.LinearFilter", "sfumato.VAE", "sfumato.Phase", "sfumato.Synth"),
        *("sfumato.ARS", "sfumato.to_phase", "sfumato.mechanisms.base.Mechanism"),
    ),
    "Audits": (
        *("sfumato.audit", "sfumato.audit_release", "sfumato.auditing.Effort", "sfumato.auditing.Audit"),
        *("sfumato.attacks.base.Attack", "sfumato.core.knowledge.Knowledge", "sfumato.core.score.Score"),
    ),
    "Runs": ("sfumato.load_run", "sfumato.sweep", "sfumato.core.guarantee.Guarantee", "sfumato.core.release.Release"),
    "Privacy": ("sfumato.privacy.query_counter", "sfumato.privacy.ledger", "sfumato.privacy.gaussian_mechanism"),
    "Testing plugins": ("sfumato.testing.MechanismConformance", "sfumato.testing.AttackConformance"),
}
SHIM = "https://unpkg.com/iframe-worker/shim"
"""What pages of the plugin ``offline`` would fetch; ours does the same from disk."""
_WARNED_AT = re.compile(r"^\S+\.py:\d+: (\w*Warning: .*)\n  .*\n", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--no-run", action="store_true", help="Show notebooks without their output.")
    run = not asked.parse_args().no_run
    shutil.rmtree(SOURCE, ignore_errors=True)
    gather_pages()
    tutorials = [write_tutorial(notebook, run=run) for notebook in notebooks()]
    write_configuration(tutorials, write_api())
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # an advertisement of a successor
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "-f", str(BUILD / "mkdocs.yml")], check=True, env=quiet)
    let_search_work_from_disk()
    print(f"{BUILD / 'site' / 'index.html'}")


def notebooks() -> list[Path]:
    """In the order of their numbers."""
    return sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def gather_pages() -> None:
    """The pages and pictures of ``docs``, and those that stand above it; links out of them become plain text."""
    for file in sorted((ROOT / "docs").rglob("*")):
        if file.suffix in {".md", ".png", ".svg", ".json", ".css"} and not file.name.endswith(".head.md"):
            _place(file, SOURCE / file.relative_to(ROOT / "docs"))
    for name in PAGES_ABOVE:
        _place(ROOT / name, SOURCE / name)


def _place(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix != ".md":
        shutil.copy(file, target)
        return
    text = file.read_text()
    if file.parent == ROOT:
        text = text.replace("](docs/", "](").replace("](LICENSE)", "](https://www.apache.org/licenses/LICENSE-2.0)")
    elif file.parent == ROOT / "docs":
        text = re.sub(r"\]\(\.\./(CHANGELOG|CONTRIBUTING|SECURITY)\.md", r"](\1.md", text)
        text = re.sub(r"\]\(\.\./examples/notebooks/\d+-([\w-]+)\.ipynb\)", r"](tutorials/\1.md)", text)
        text = re.sub(r"\[([^\]]+)\]\(\.\./[^)]*\)", r"\1", text)
    target.write_text(text)


def write_tutorial(notebook: Path, *, run: bool) -> str:
    """A notebook as a page with its output; the page's name."""
    content = nbformat.read(notebook, as_version=4)
    if run:
        print(f"runs {notebook.name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="sfumato-docs-") as folder:
            (Path(folder) / "state").mkdir()
            os.environ.update(SFUMATO_STATE=str(Path(folder) / "state"), COLUMNS="100")
            os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            NotebookClient(content, timeout=1200, resources={"metadata": {"path": folder}}).execute()
    for output in (one for cell in content.cells for one in cell.get("outputs", ()) if one.output_type == "stream"):
        text = _WARNED_AT.sub(r"\1\n", strip_ansi(output.text))  # the sentence, without this machine's path
        output.text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    name = re.sub(r"^\d+-", "", notebook.stem)
    folder = SOURCE / "tutorials"
    body, resources = MarkdownExporter().from_notebook_node(
        content, resources={"output_files_dir": f"{name}_files", "unique_key": name}
    )
    for file, data in resources["outputs"].items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)
    folder.mkdir(parents=True, exist_ok=True)
    how = ", executed when the site was built" if run else ""
    note = f"*This page is the notebook `examples/notebooks/{notebook.name}`{how}.*"
    (folder / f"{name}.md").write_text(_TITLE.sub(rf"# \1\n\n{note}", body, count=1))
    return f"tutorials/{name}.md"


def write_api() -> list[dict[str, str]]:
    """A page for each part of the Python API; the entries of the navigation."""
    entries = []
    for title, names in API.items():
        page = SOURCE / "api" / f"{title.lower().replace(' ', '-')}.md"
        page.parent.mkdir(exist_ok=True)
        page.write_text(f"# {title}\n\n" + "".join(f"::: {name}\n\n{_parameters(name)}" for name in names))
        entries.append({title: str(page.relative_to(SOURCE))})
    return entries


def _parameters(name: str) -> str:
    """The hyper-parameters of a mechanism as a table; of everything else nothing."""
    declared = getattr(resolve_name(name), "declared", None)
    rows = [
        f"| `{one}` | `{about.default!r}` | {about.help.replace('|', '&#124;')} |"
        for one, about in (declared() if declared else {}).items()
    ]
    head = f"**Parameters of {name.rpartition('.')[2]}**\n\n| name | default | meaning |\n|---|---|---|\n"
    return head + "\n".join(rows) + "\n\n" if rows else ""


def let_search_work_from_disk() -> None:
    """Put our script in the place of one that pages would fetch."""
    site = BUILD / "site"
    ours = site / "assets" / "search_from_disk.js"
    shutil.copy(ROOT / "docs" / ours.name, ours)
    for page in site.rglob("*.html"):
        text = page.read_text()
        if SHIM not in text:
            raise SystemExit(f"{page} does not load {SHIM} any more: look how the search works from disk now.")
        page.write_text(text.replace(SHIM, os.path.relpath(ours, page.parent)))


def write_configuration(tutorials: Sequence[str], api: Sequence[Mapping[str, str]]) -> None:
    """``mkdocs.yml`` with what this build found in the place of its two marks, and with paths from here."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    found = {"TUTORIALS": list(tutorials), "API": list(api)}
    settings["nav"] = _filled(settings["nav"], found)
    settings["docs_dir"], settings["site_dir"] = str(SOURCE), str(BUILD / "site")
    settings["markdown_extensions"].append({"toc": {"permalink": True, "slugify": slugify_unicode}})  # anchors with ε
    for plugin in settings["plugins"]:
        if isinstance(plugin, dict) and "mkdocstrings" in plugin:
            plugin["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT / "src")]
    (BUILD / "mkdocs.yml").write_text(yaml.dump(settings, allow_unicode=True, sort_keys=False))


def _filled(nav: Any, found: Mapping[str, Any]) -> Any:
    if isinstance(nav, str):
        return found.get(nav, nav)
    if isinstance(nav, list):
        return [_filled(entry, found) for entry in nav]
    return {title: _filled(entry, found) for title, entry in nav.items()}


if __name__ == "__main__":
    main()

"""Bundles for the playground, fitted on the embedded digits: python playground/models.py FOLDER [--page PAGE]

Each mechanism at a few strengths, and a network without defence beside them. What is there stays, so an interrupted
call goes on. With --page the bundles are laid into a static build, where the cloud halves run in the page as well.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.core.compute import Compute, using
from sfumato.deploy.exporting import export_run
from sfumato.deploy.manifest import read_bundle
from sfumato.deploy.serve.playground_page import AT_SERVER, SHOWN, write_list
from sfumato.workflow import fit_run, resolve

DATA: Mapping[str, Any] = {"source": "digits"}


@dataclass(frozen=True)
class Model:
    """A mechanism at one strength, and how the page calls that."""

    mechanism: str
    knob: str
    value: str
    params: Mapping[str, Any]
    utility: str = "digit"
    private: str = "ge5"
    base: str | None = None

    @property
    def name(self) -> str:
        return f"{self.mechanism}-{self.value}" if self.value else self.mechanism


def models() -> list[Model]:
    ran = [Model("ran", "λ", f"{lam:g}", {"lam": lam, "epochs": 12}) for lam in (0.1, 0.5, 0.9)]
    hidden = [
        Model("filter", "b", f"{budget:g}", {"budget": budget}, utility="odd", base="vae") for budget in (30.0, 300.0)
    ]
    turned = [Model("phase", "d", str(d), {"d": d, "epochs": 12}) for d in (2, 3)]
    pooled = [
        Model("ars", "ε", f"{epsilon:g}", {"variant": "hardened", "epsilon": epsilon, "epochs": 12}, utility="odd")
        for epsilon in (0.5, 2.0)
    ]
    return [*ran, *hidden, *turned, *pooled, Model("dnn", "", "", {"epochs": 12})]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--page", type=Path, help="A static build that gets the bundles.")
    asked.add_argument("--only", action="append", help="Only this mechanism. Repeatable.")
    asked.add_argument("--limit", type=int, help="Fit on fewer digits.")
    given = asked.parse_args()
    wanted = [model for model in models() if not given.only or model.mechanism in given.only]
    made = [bundle_of(model, given.folder, limit=given.limit) for model in wanted]
    if given.page is not None:
        lay(made, given.page)


def bundle_of(model: Model, folder: Path, *, limit: int | None) -> Path:
    """The bundle of a model, made unless it is there."""
    out, run = folder / model.name, folder.parent / "runs" / model.name
    if (out / "manifest.json").is_file():
        return out
    print(f"{model.name}: fit and export", flush=True)
    data = {**DATA, "utility": [model.utility], "private": [model.private], "limit": limit}
    with using(Compute()):
        params = {**model.params, **({"base": model.base} if model.base else {})}
        fit_run(resolve(model.mechanism, data, params, seed=0), run, resume=run.exists())
        export_run(run, out, name=model.name, attacker=True)
    (out / SHOWN).write_text(json.dumps({"knob": model.knob, "value": model.value or model.name}))
    return out


def lay(bundles: list[Path], page: Path) -> None:
    """Copy the bundles into a static build and write its list."""
    found = [read_bundle(bundle) for bundle in bundles]
    for bundle in found:
        target = page / "bundles" / bundle.manifest.name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for file in ("manifest.json", *(program.file for program in bundle.manifest.programs.values())):
            shutil.copy(bundle.folder / file, target / file)
    assert any(AT_SERVER in bundle.manifest.programs for bundle in found), "no bundle has a cloud half"
    write_list(found, page / "bundles.json")
    print(f"{page / 'index.html'}: serve the folder with any static server")


if __name__ == "__main__":
    main()

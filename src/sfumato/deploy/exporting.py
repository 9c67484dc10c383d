"""From a fitted run to a bundle: programs, checked against the networks, and a manifest."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.auditing import SMOKE, Effort
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.extras import require
from sfumato.core.run_folder import RunFolder, atomic
from sfumato.deploy.attacker_program import attacker_half
from sfumato.deploy.bundle_card import bundle_card, scores_of
from sfumato.deploy.bundle_files import CARD, write_manifest, write_sums
from sfumato.deploy.manifest import PROGRAMS, read_bundle
from sfumato.deploy.onnx_programs import example_inputs, write_program
from sfumato.deploy.program_checks import ProgramFigures, by_torch, compared
from sfumato.deploy.quantising import QuantisedFigures, cost_of, quantise, refuse_unmeasurable
from sfumato.deploy.shipped_mechanism import private_inputs
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import HasHalves
from sfumato.mechanisms.halves import Half, Halves
from sfumato.workflow import load_run
from sfumato.workflow.fitting import splits_of

Say = Callable[[str], None]
_REAL = 256
"""Real records that programs are compared on."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Exported:
    """A bundle that was written, and what was measured of its programs."""

    folder: Path
    mechanism: str
    figures: tuple[ProgramFigures, ...]
    quantised: QuantisedFigures | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "bundle": str(self.folder),
            "mechanism": self.mechanism,
            "programs": [one.to_json() for one in self.figures],
            "quantised": None if self.quantised is None else self.quantised.to_json(),
        }


def export_run(
    run: Path,
    out: Path,
    *,
    name: str = "",
    int8: bool = False,
    attacker: bool = False,
    effort: Effort = SMOKE,
    say: Say = lambda _: None,
) -> Exported:
    """Write the halves of a finished run as a bundle in ``out``.

    Args:
        run: A folder that ``sfumato fit`` made.
        out: The bundle; must not exist.
        name: Of the bundle, and of the model at a server; by default that of ``out``.
        int8: Quantise the device half to 8 bits, and measure what that costs by an audit of the programs.
        attacker: Also train a decoder on the run's attacker records and ship it, for demonstrations.
        effort: How hard the attackers of ``int8`` try.
        say: Called with what is being done.

    Returns:
        What was written and measured.

    Raises:
        UsageError: The mechanism has no halves, or a layer cannot be exported.
        DataError: The run cannot be read, or ``out`` is in use.
    """
    mechanism = load_run(run)
    splits = _splits(run, mechanism, say)
    if (int8 or attacker) and splits is None:
        raise DataError("--int8 and --attacker need the run's records, and these cannot be read: restore them.")
    return export(
        mechanism,
        out,
        name=name,
        real=None if splits is None else splits.victim,
        scores=scores_of(run),
        quantised_on=splits if int8 else None,
        known=splits.attacker if attacker and splits is not None else None,
        effort=effort,
        say=say,
    )


def export(
    mechanism: Mechanism,
    out: Path,
    *,
    name: str = "",
    real: Dataset | None = None,
    scores: Mapping[str, Any] | None = None,
    quantised_on: Splits | None = None,
    known: Dataset | None = None,
    effort: Effort = SMOKE,
    say: Say = lambda _: None,
) -> Exported:
    """As ``export_run``, for a fitted mechanism; programs are compared on ``real`` records, too. With ``quantised_on``
    the device half is quantised on the owner's records of these parts, and its cost measured on the victims; a
    decoder is trained on those that an attacker has ``known``."""
    require("deploy", "export", "onnx", "onnxscript", "onnxruntime")
    halves = halves_of(mechanism)
    programs = {part: half for part in PROGRAMS if (half := getattr(halves, part, None)) is not None}
    name = _checked_name(name or out.name)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out} is already used for something: choose another --out.")
    out.parent.mkdir(parents=True, exist_ok=True)
    if quantised_on is not None:
        refuse_unmeasurable(() if halves.device is None else halves.device.inputs)
    if known is not None:
        if halves.device is None:
            raise UsageError(f"{mechanism.name}: there is no device half whose payload an attacker could read.")
        say("training a decoder as an attacker would")
        asked = any(port.source == "private" for port in halves.device.inputs)
        private = private_inputs(known.schema, known.private) if asked else None
        rows = halves.company.rows if halves.company else 1
        programs["attacker"] = attacker_half(halves.device, known, private, rows=rows)
    given = _real_inputs(mechanism, halves, real)
    cost = None
    with atomic(out) as part:
        part.mkdir()
        figures = []
        for half_name, half in programs.items():
            say(f"writing and comparing {half_name}.onnx")
            path = part / f"{half_name}.onnx"
            write_program(half, half_name, path)
            figures.append(compared(half, half_name, path, given.get(half_name)))
        if quantised_on is not None and halves.device is not None:
            say("quantising device.onnx, and attacking both forms of it")
            cost = _quantised(part, mechanism, halves.device, quantised_on, effort)
            figures[0] = replace(figures[0], bytes=cost.after)
        (part / CARD).write_text(bundle_card(name, mechanism, halves, figures, scores, cost))
        write_manifest(part, name, mechanism, halves, programs, ("device",) if cost else ())
        write_sums(part)
        read_bundle(part)
        if out.is_dir():
            shutil.rmtree(out)  # it is empty
    return Exported(out, mechanism.name, tuple(figures), cost)


def _quantised(folder: Path, mechanism: Mechanism, device: Half, splits: Splits, effort: Effort) -> QuantisedFigures:
    """``device.onnx`` in 8 bits, beside what it was."""
    with TemporaryDirectory() as elsewhere:
        single = Path(elsewhere) / "device.onnx"
        shutil.copyfile(folder / "device.onnx", single)
        off = quantise(
            folder / "device.onnx", device.inputs, _around(mechanism, device, splits.owner.take(slice(0, _REAL)))
        )
        programs = {"single": single, "device": folder / "device.onnx"}
        if (folder / "cloud.onnx").exists():
            programs["cloud"] = folder / "cloud.onnx"
        return cost_of(mechanism, programs, device.inputs, splits, effort, off)


def halves_of(mechanism: Mechanism) -> Halves:
    """The halves of a fitted mechanism, or a sentence why it has none."""
    mechanism._check_fitted()
    if not isinstance(mechanism, HasHalves):
        raise UsageError(
            f"{mechanism.name} has no device half: nothing of it runs on somebody's record. Export ran, filter, phase, "
            "ars or one of their baselines."
        )
    return mechanism.halves()


def _checked_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}", name):
        raise UsageError(
            f"'{name}' cannot name a bundle: give --name with letters, digits, '.', '-' and '_', a letter first."
        )
    return name


def _splits(run: Path, mechanism: Mechanism, say: Say) -> Splits | None:
    """The run's records, if they are still there."""
    try:
        found = splits_of(RunFolder.open(run).config())
    except (DataError, UsageError) as error:
        say(f"the run's records cannot be read, programs are compared on random ones alone ({error})")
        return None
    if found.schema != mechanism.schema_:
        say("the run's records have changed, programs are compared on random ones alone")
        return None
    return found


def _real_inputs(mechanism: Mechanism, halves: Halves, real: Dataset | None) -> dict[str, Sequence[Array]]:
    """Inputs of every program, as they are when real records go all the way round."""
    if real is None or halves.device is None:
        return {}
    some = real.take(slice(0, _REAL))
    device = halves.device
    arrays = _around(mechanism, device, some)
    found: dict[str, Sequence[Array]] = {"device": arrays}
    if halves.cloud is not None:
        payload = by_torch(device, arrays)
        found["cloud"] = found["attacker"] = [payload]
        if halves.finish is not None:
            key = next(array for port, array in zip(device.inputs, arrays, strict=True) if port.name == "key")
            found["finish"] = [by_torch(halves.cloud, [payload]), key]
    return found


def _around(mechanism: Mechanism, device: Half, some: Dataset) -> list[Array]:
    """Made-up keys and noise beside real records and their private labels."""
    count = {"batch": len(some), "records": len(some)}
    arrays = example_inputs(device.inputs, 17, count)
    for place, port in enumerate(device.inputs):
        if port.source == "record":
            arrays[place] = np.ascontiguousarray(some.x)
        elif port.source == "private":
            arrays[place] = private_inputs(mechanism.schema_, some.private)
    return arrays

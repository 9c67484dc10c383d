"""The mechanisms by name; a module is imported when its mechanism is asked for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import DataError, unknown
from sfumato.core.run_folder import read_json

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism

_HOME = {
    "none": ("sfumato.mechanisms.baselines.raw_records", "Undefended"),
    "noisy": ("sfumato.mechanisms.baselines.raw_records", "Noisy"),
    "dnn": ("sfumato.mechanisms.baselines.plain_features", "DNN"),
    "dnn-resized": ("sfumato.mechanisms.baselines.plain_features", "DNNResized"),
    "ran": ("sfumato.mechanisms.ran.mechanism", "RAN"),
    "filter": ("sfumato.mechanisms.filter.mechanism", "Filter"),
    "filter-linear": ("sfumato.mechanisms.filter.mechanism", "LinearFilter"),
    "gaussian": ("sfumato.mechanisms.baselines.gaussian_noise", "Gaussian"),
    "vae": ("sfumato.mechanisms.filter.vae", "VAE"),
    "vfae": ("sfumato.mechanisms.baselines.fair_autoencoders", "VFAE"),
    "phase": ("sfumato.mechanisms.phase.mechanism", "Phase"),
    "synth": ("sfumato.mechanisms.synth.mechanism", "Synth"),
    "ars": ("sfumato.mechanisms.ars.mechanism", "ARS"),
    "latent-noise": ("sfumato.mechanisms.baselines.latent_noise", "LatentNoise"),
    "split": ("sfumato.mechanisms.baselines.split_inference", "Split"),
    "split-extra": ("sfumato.mechanisms.baselines.split_inference", "SplitExtra"),
    "split-noisy": ("sfumato.mechanisms.baselines.split_inference", "SplitNoisy"),
    "lmifr": ("sfumato.mechanisms.baselines.fair_autoencoders", "LMIFR"),
}


def names() -> tuple[str, ...]:
    """Every mechanism and baseline."""
    return tuple(_HOME)


def mechanism_class(name: str) -> type[Mechanism]:
    """The class of a mechanism."""
    if name not in _HOME:
        raise unknown("mechanism", name, _HOME)
    module, attribute = _HOME[name]
    cls: type[Mechanism] = getattr(import_module(module), attribute)
    return cls


def load_mechanism(folder: Path, **overrides: Any) -> Mechanism:
    """The fitted mechanism in a run folder."""
    stored = read_json(folder / "mechanism.json")
    try:
        return mechanism_class(stored["mechanism"]).load(folder, **overrides)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder} is damaged ({type(error).__name__}: {error}): restore it or fit again.") from None

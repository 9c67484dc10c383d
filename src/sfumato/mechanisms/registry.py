"""The mechanisms by name: ours, and those of installed plugins. A module is imported when its mechanism is needed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import DataError, unknown
from sfumato.core.plugins import load_plugin, plugins
from sfumato.core.run_folder import read_json

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism

GROUP = "sfumato.mechanisms"
_OURS = {
    "none": "baselines.raw_records:Undefended",
    "noisy": "baselines.raw_records:Noisy",
    "dnn": "baselines.plain_features:DNN",
    "dnn-resized": "baselines.plain_features:DNNResized",
    "ran": "ran.mechanism:RAN",
    "filter": "filter.mechanism:Filter",
    "filter-linear": "filter.mechanism:LinearFilter",
    "gaussian": "baselines.gaussian_noise:Gaussian",
    "vae": "filter.vae:VAE",
    "vfae": "baselines.fair_autoencoders:VFAE",
    "phase": "phase.mechanism:Phase",
    "synth": "synth.mechanism:Synth",
    "ars": "ars.mechanism:ARS",
    "latent-noise": "baselines.latent_noise:LatentNoise",
    "split": "baselines.split_inference:Split",
    "split-extra": "baselines.split_inference:SplitExtra",
    "split-noisy": "baselines.split_inference:SplitNoisy",
    "leace": "baselines.concept_erasure:LEACE",
    "lmifr": "baselines.fair_autoencoders:LMIFR",
}


def names() -> tuple[str, ...]:
    """Every mechanism and baseline, those of plugins last."""
    return (*_OURS, *(name for name in plugins(GROUP) if name not in _OURS))


def mechanism_class(name: str) -> type[Mechanism]:
    """The class of a mechanism."""
    from sfumato.mechanisms.base import Mechanism

    if name not in names():
        raise unknown("mechanism", name, names())
    cls: type[Mechanism]
    if name in _OURS:
        module, attribute = _OURS[name].split(":")
        cls = getattr(import_module(f"sfumato.mechanisms.{module}"), attribute)
    else:
        cls = load_plugin(plugins(GROUP)[name], Mechanism)
    return cls


def load_mechanism(folder: Path, **overrides: Any) -> Mechanism:
    """The fitted mechanism in a run folder."""
    stored = read_json(folder / "mechanism.json")
    try:
        return mechanism_class(stored["mechanism"]).load(folder, **overrides)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder} is damaged ({type(error).__name__}: {error}): restore it or fit again.") from None

"""Fake run folders, written the way an audit writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from sfumato.attacks.registry import features_suite, membership_suite, rotations_suite
from sfumato.auditing import canaries
from sfumato.core.schema import Schema
from sfumato.core.threats import described
from sfumato.core.traits import Traits
from sfumato.mechanisms import mechanism_class, names
from sfumato.report.audited_runs import Group
from sfumato.report.verdict import verdict

EMPIRICAL = {"kind": "empirical", "statement": "Measured by attacks only."}


_SCHEMA = Schema("image", (1, 8, 8), utility={"odd": ("no", "yes")}, private={"ge5": ("no", "yes")})
_EVERY = (*features_suite(_SCHEMA), *rotations_suite(_SCHEMA, ("odd",)), *membership_suite(("odd",)))
TITLES = {attack.name: [attack.title or attack.name, attack.how] for attack in _EVERY}
TITLES |= {name: [title, ""] for name, title in canaries.TITLES.items()}


def traits(mechanism: str, params: Mapping[str, Any]) -> Traits:
    """As the mechanism says of itself; a stranger's are the plain ones."""
    if mechanism not in names():
        return Traits()
    cls = mechanism_class(mechanism)
    return cls(**{key: value for key, value in params.items() if key in cls.parameters()}).traits


def verdict_text(group: Group) -> str:
    """All of the verdict on a group in one string."""
    found = verdict(group)
    rankings = [text for ranking in found.rankings for text in (ranking.heading, *ranking.items, *ranking.notes)]
    return " ".join([*found.lead, *rankings, *found.warnings])


def score(  # one entry of scores.json
    attack: str, threat: str, metric: str, value: float, *, half: float = 0.01, baseline: float | None = None,
    control: float | None = None, primary: bool = True, target: str | None = None, n: int = 2000,
) -> dict[str, Any]:  # fmt: skip
    owner_wants_more = threat == "utility" or metric in ("mse", "l1")
    return {
        "attack": attack,
        "threat": threat,
        "metric": metric,
        "better_for_owner": "higher" if owner_wants_more else "lower",
        "value": value,
        "ci": [value - half, value + half],
        "baseline": baseline,
        "control": control,
        "n": n,
        "seconds": 1.0,
        "primary": primary,
        "target": target,
    }


def utility(value: float, half: float = 0.004) -> list[dict[str, Any]]:
    return [
        score("own classifier", "utility", "accuracy", value, half=half, baseline=0.114, control=0.99),
        score("fresh classifier", "utility", "accuracy", value - 0.01, half=half, baseline=0.114, control=0.99),
        score("own classifier", "utility", "auroc", 0.999, half=0.001, baseline=0.5, control=1.0, primary=False),
    ]


def reconstruction(
    mse: float, *, relative: float = 0.04, baseline: float | None = 0.067, control: float | None = 1e-4
) -> list[dict[str, Any]]:
    def mse_of(attack: str, value: float) -> dict[str, Any]:
        return score(attack, "reconstruction", "mse", value, half=relative * value, baseline=baseline, control=control)

    return [
        mse_of("inverse-mirror", mse * 1.3),
        mse_of("inverse-residual", mse),
        score("inverse-mirror", "reconstruction", "ssim", 0.4, baseline=0.1, control=0.99, primary=False),
        score("inverse-residual", "reconstruction", "ssim", 0.5, baseline=0.1, control=0.99, primary=False),
    ]


def attribute(value: float, target: str = "sex", control: float | None = 0.6) -> list[dict[str, Any]]:
    return [
        score("probe-linear", "attribute", "advantage", value * 0.8, baseline=0.0, control=control, target=target),
        score("probe-mlp", "attribute", "advantage", value, baseline=0.0, control=control, target=target),
    ]


def schema(
    kind: str = "image",
    shape: Sequence[int] = (1, 8, 8),
    served: Sequence[str] = ("digit",),
    private: Sequence[str] = (),
) -> dict[str, Any]:
    return {
        "kind": kind,
        "shape": list(shape),
        "ranges": [[0.0, 1.0]],
        "utility": {name: [str(i) for i in range(10)] for name in served},
        "private": {name: ["no", "yes"] for name in private},
        "x_columns": [],
        "id_column": None,
        "columns": [],
        "audio": None,
        "sources": {},
    }


def gallery(shape: Sequence[int], payload: Sequence[int] = (24,), n: int = 8) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)  # the same victims in every run
    originals = rng.random((n, *shape), dtype=np.float32)
    return {
        "originals": originals,
        "release": rng.standard_normal((n, *payload)).astype(np.float32),
        "recon/inverse-residual": originals * 0.5,
        "recon/inverse-mirror": originals * 0.4,
    }


def write_run(
    path: Path,
    mechanism: str = "ran",
    *,
    data: str = "mnist",
    params: Mapping[str, Any] | None = None,
    use: Sequence[dict[str, Any]] | None = None,
    attacks: Sequence[dict[str, Any]] | None = None,
    guarantee: Mapping[str, Any] | None = None,
    kind: str = "image",
    shape: Sequence[int] = (1, 8, 8),
    tensors: Mapping[str, np.ndarray] | None = None,
    audited: bool = True,
    classes: Sequence[str] | None = None,
    features: Sequence[Sequence[float]] | None = None,
    labels: Sequence[int] | None = None,
    served: Sequence[str] = ("digit",),
    private: Sequence[str] = (),
    seed: int = 0,
    more_features: Mapping[str, Any] | None = None,
    more_scores: Mapping[str, Any] | None = None,
) -> Path:
    """Write one run folder and return it."""
    path.mkdir(parents=True)
    lines = ["[run]", 'command = "fit"', f"mechanism = {json.dumps(mechanism)}", f"seed = {seed}", 'version = "0.1.0"']
    lines += ["", "[data]", f"source = {json.dumps(data)}", f"utility = {json.dumps(list(served))}"]
    lines += [f"private = {json.dumps(list(private))}", "", "[params]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in (params or {"lam": 0.5}).items()]
    (path / "config.toml").write_text("\n".join(lines) + "\n")
    (path / "schema.json").write_text(json.dumps(schema(kind, shape, served, private)))
    (path / "env.json").write_text(json.dumps({"sfumato": "0.1.0", "python": "3.11.7", "torch": "2.6.0"}))
    (path / "metrics.jsonl").write_text("".join(json.dumps({"epoch": i, "loss": 1 / i}) + "\n" for i in range(1, 4)))
    save_file(dict(tensors if tensors is not None else gallery(shape)), path / "gallery.safetensors")
    rng = np.random.default_rng(0)
    called = list(classes or [str(i) for i in range(10)])
    points = features if features is not None else rng.standard_normal((40, 3)).tolist()
    codes = list(labels) if labels is not None else [i % len(called) for i in range(len(points))]
    value = {"points": points, "labels": codes, "classes": called, "label": served[0]}
    (path / "features.json").write_text(json.dumps({**value, **(more_features or {})}))
    if audited:
        found = list(attacks if attacks is not None else reconstruction(0.0068))
        (path / "scores.json").write_text(
            json.dumps(
                {
                    "run": str(path),
                    "mechanism": mechanism,
                    "traits": traits(mechanism, params or {}).to_json(),
                    "threats": described(s["threat"] for s in found),
                    "titles": TITLES,
                    "data": data,
                    "guarantee": dict(guarantee or EMPIRICAL),
                    "utility": list(use if use is not None else utility(0.989)),
                    "attacks": found,
                    "worst": worst(found),
                    **(more_scores or {}),
                }
            )
        )
    return path


def latent_run(
    path: Path,
    mechanism: str,
    *,
    leak: float,
    use: float,
    other: float = 0.8,
    budget: float | None = None,
    private: Sequence[str] = ("ge5",),
    shape: Sequence[int] = (1, 8, 8),
    **more: Any,
) -> Path:
    """A run that releases a latent, audited against private labels alone: no attack tried to rebuild a record.

    ``leak`` is the accuracy of the best probe, ``use`` that for odd, ``other`` that for circle.
    """
    attacks = []
    confusion = {}
    information = []
    for label in private:
        for probe, accuracy in (("probe-linear", leak - 0.05), ("probe-mlp", leak)):
            about = {"baseline": 0.5, "control": 0.95, "target": label, "n": 100}
            attacks.append(score(probe, "attribute", "accuracy", accuracy, primary=False, **about))
            about |= {"baseline": 0.0, "control": 0.45}
            attacks.append(score(probe, "attribute", "advantage", accuracy - 0.5, **about))
        right = round(100 * leak)
        matrix = [[right, 100 - right], [50, 150]]
        confusion[label] = {"attack": "probe-mlp", "classes": ["no", "yes"], "matrix": matrix}
        nats = score(
            "mutual-information", "information", "nats", leak - 0.4, baseline=0.01, target=label, primary=False
        )
        information.append(nats | {"better_for_owner": "lower"})
    for label, value in (("odd", use), ("circle", other)):
        nats = score(
            "mutual-information", "information", "nats", value - 0.4, baseline=0.02, target=label, primary=False
        )
        information.append(nats | {"better_for_owner": "higher"})
    served = [
        score("fresh classifier", "utility", "accuracy", value, baseline=0.55, control=0.95, target=label)
        for label, value in (("odd", use), ("circle", other))
    ]
    originals = np.random.default_rng(7).random((8, *shape), dtype=np.float32)
    codes = [i % 2 for i in range(40)]
    colours = {name: {"classes": ["no", "yes"], "codes": codes} for name in ("odd", "circle", *private)}
    given: dict[str, Any] = {
        "params": {"steps": 400} if budget is None else {"base": "points/vae", "budget": budget, "steps": 400},
        "served": ("odd", "circle"),
        "private": private,
        "shape": shape,
        "use": served,
        "attacks": attacks,
        "classes": ["no", "yes"],
        "tensors": {"originals": originals, "release": originals.reshape(8, -1)[:, :10], "decoded": originals * leak},
        "more_features": {"method": "pca", "colours": colours},
        "more_scores": {"confusion": confusion, "information": information},
    }
    return write_run(path, mechanism, **{**given, **more})


def latent_sweep(folder: Path, **more: Any) -> Path:
    """The raw latent, noise and two filters over three budgets, as the studies of ``filter`` make them."""
    points = {"vae": ("vae", None, 0.92, 0.93, 0.91)}
    for i, budget in enumerate((10.0, 100.0, 300.0)):
        points[f"gaussian-{i}"] = ("gaussian", budget, 0.88 - 0.1 * i, 0.9 - 0.12 * i, 0.88 - 0.1 * i)
        points[f"linear-{i}"] = ("filter-linear", budget, 0.85 - 0.11 * i, 0.92 - 0.02 * i, 0.9 - 0.03 * i)
        points[f"filter-{i}"] = ("filter", budget, 0.8 - 0.12 * i, 0.93 - 0.02 * i, 0.87 - 0.05 * i)
    for name, (mechanism, budget, leak, use, other) in points.items():
        where = folder / "points" / name
        latent_run(where, mechanism, leak=leak, use=use, other=other, budget=budget, **more)
    (folder / "front.json").write_text(json.dumps({"points": [f"points/{name}" for name in points]}))
    return folder


def worst(scores: Sequence[dict[str, Any]]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for entry in scores:
        key = entry["threat"] if entry["target"] is None else f"{entry['threat']}:{entry['target']}"
        sign = 1 if entry["better_for_owner"] == "higher" else -1
        if entry["primary"] and (key not in kept or sign * entry["value"] < sign * kept[key]["value"]):
            kept[key] = entry
    return kept


def write_sweep(folder: Path, runs: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write a sweep folder: ``runs`` maps a point's name to the arguments of ``write_run``."""
    for name, arguments in runs.items():
        write_run(folder / "points" / name, **arguments)
    (folder / "front.json").write_text(json.dumps({"points": [f"points/{name}" for name in runs]}))
    return folder

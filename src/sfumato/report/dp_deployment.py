"""A draft entry for OpenDP's registry of deployments (registry.opendp.org), by what a dp release says of itself.

What only the owner knows is marked ``TO FILL IN``. Every value is written as JSON, which is YAML.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from sfumato.core.guarantee import Guarantee
from sfumato.report.markdown import scalar

TO_FILL_IN = "TO FILL IN"


def deployment_text(record: Mapping[str, Any]) -> str:
    """``dp-deployment.yaml``, from the values of a ``release.json`` alone."""
    head = (
        "# Draft for https://registry.opendp.org, made by sfumato. Fill in what is marked, and let somebody check it.\n"
    )
    return head + "\n".join(_lines(_entry(record), 0)) + "\n"


def _lines(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield f"{'  ' * depth}{name}:"
            yield from _lines(item, depth + 1)
        else:
            yield f"{'  ' * depth}{name}: {scalar(item)}"


def _entry(record: Mapping[str, Any]) -> dict[str, Any]:
    about, promise = record["about"], Guarantee.from_json(record["guarantee"])
    name = f"{record['mechanism']} release{' of ' + record['data'] if record['data'] else ''}"
    return {
        "url_slug": f"{record['mechanism']}-{record['created']}",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": name,
                "data_curators": [about["owner"] or TO_FILL_IN],
                "description": f"Records released by sfumato {record['sfumato']}, mechanism {record['mechanism']}. "
                f"{promise.statement}",
                "intended_use": about["purpose"] or TO_FILL_IN,
                "data_product_type": "Synthetic data" if record["traits"]["synthetic"] else "Dataset",
                "data_product_region": TO_FILL_IN,
                "publication_date": record["created"],
            },
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": f"Files of {record['kind']} records of one declared or public form (shape, ranges, "
                "categories, class names).",
                "unprotected_quantities": _unprotected(promise),
            },
            "privacy_loss": {
                "privacy_unit": promise.covers.unit,
                "privacy_unit_details": f"Neighbouring data sets: {promise.relation}.",
                "privacy_parameters": {"epsilon": _upwards(promise.epsilon), "delta": promise.delta},
                "privacy_parameters_details": _in_attackers_terms(record),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "The owner holds the records, adds the noise, and hands out the result.",
                "actors": f"Owner: {about['owner'] or TO_FILL_IN}, trusted with the records. Recipient: "
                f"{about['recipient'] or TO_FILL_IN}, not trusted, and anybody whom the recipient tells.",
                "release_type": "One release",
                "release_type_details": _later(record, promise),
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "Records are drawn from, or decoded by, what was learnt with noise; that costs "
                "nothing more."
                if record["traits"]["synthetic"]
                else "None that is part of the release.",
                "composition": _composition(promise),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _tuning(record),
                "mechanisms": _mechanisms(record, promise),
                "justification": "; ".join(str(condition) for condition in promise.conditions) or "None is stated.",
            },
            "administrative": {
                "notes": f"SHA-256 of the payload: {record['payload']['sha256']}. The card of the release is "
                "README.md.",
                "registry_authors": [about["owner"] or TO_FILL_IN],
            },
        },
    }


def _upwards(epsilon: float | None) -> float | None:
    """Without digits that come from the search for the noise, and never below the ε that is proven."""
    return None if epsilon is None else math.ceil(epsilon * 1e6) / 1e6


def _unprotected(promise: Guarantee) -> str:
    clear = f"Labels in clear: {', '.join(promise.in_clear)}. " if promise.in_clear else ""
    return f"{clear}The promise covers {promise.covers}"


def _in_attackers_terms(record: Mapping[str, Any]) -> str:
    bounds = record["bounds"]
    mu = "" if bounds["mu"] is None else f"Gaussian DP with mu = {bounds['mu']:.4g} ({bounds['by']}). "
    rates = ", ".join(f"{tpr:.4g} at {100 * float(rate):g} %" for rate, tpr in bounds["tpr"].items())
    return (
        f"{mu}Advantage of any attacker at most {bounds['advantage']:.4g}; true-positive rate by false-positive rate "
        f"at most {rates}."
    )


def _later(record: Mapping[str, Any], promise: Guarantee) -> str:
    spent = record["spent"]
    again = "" if promise.covers.repeats else " Another release of the same records by the same fit adds to the loss."
    total = (
        f" All private fits and releases of these records up to this one: epsilon = {spent['epsilon']:.4g}, "
        f"delta = {spent['delta']:.3g}."
        if spent
        else ""
    )
    return f"Another private fit on the same records adds to the loss, and is kept in a ledger.{again}{total}"


def _composition(promise: Guarantee) -> str:
    event = dict(promise.event or {})
    if "composed" in event:
        asked = sum(int(ask["count"]) for ask in event["composed"])
        return f"{asked} planned queries, composed by {event['accountant']}; the plan is fixed before the first query."
    return f"One mechanism: {', '.join(f'{name} = {value}' for name, value in event.items())}."


def _mechanisms(record: Mapping[str, Any], promise: Guarantee) -> str:
    event = dict(promise.event or {})
    lines = [
        f"{ask['name']} ({ask['count']} ×, sampling rate {ask['rate']:g}, noise multiplier {ask['noise']:.4g})"
        for ask in event.get("composed", ())
        if ask["kind"] == "sum"
    ]
    lines += [f"{ask['name']} (randomised response)" for ask in event.get("composed", ()) if ask["kind"] == "response"]
    said = f"Gaussian noise on sums: {'; '.join(lines)}." if lines else promise.statement
    return f"{said} Code: sfumato {record['sfumato']}."


def _tuning(record: Mapping[str, Any]) -> str:
    told = record["tuning"] or (
        "sfumato chose no hyper-parameter by looking at these records for this release. If the owner did, in earlier "
        "fits or by looking at the data, that is to be told here."
    )
    return f"Ranges, categories and class names are declared or taken as public. {told}"

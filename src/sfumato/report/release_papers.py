"""The papers of a release, each a text rendered from the values of its ``release.json`` and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FORMAT = 2
"""Of ``release.json`` and of what is rendered from it; raised whenever a text would change."""
CARD, CROISSANT, DEPLOYMENT = "README.md", "croissant.json", "dp-deployment.yaml"


def papers(record: Mapping[str, Any]) -> dict[str, str]:
    """File name → text: the card, the description for machines and, of a dp release, the registry's entry."""
    from sfumato.report.croissant import croissant_text
    from sfumato.report.dp_deployment import deployment_text
    from sfumato.report.release_card import release_card

    found = {CARD: release_card(record), CROISSANT: croissant_text(record)}
    if record["guarantee"]["kind"] == "dp":
        found[DEPLOYMENT] = deployment_text(record)
    return found

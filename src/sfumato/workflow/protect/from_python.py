"""``sfumato.protect``: the command for a notebook or a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.auditing.effort import effort_named
from sfumato.core.policy import Policy, policy_of, read_policy
from sfumato.workflow.processes import Say
from sfumato.workflow.protect.candidate_search import Watch
from sfumato.workflow.protect.outcome import Protected
from sfumato.workflow.protect.protecting import SearchTerms, nothing_watched
from sfumato.workflow.protect.protecting import protect as search
from sfumato.workflow.protect.time_limit import seconds_of

Labels = str | Sequence[str] | None


def protect(
    source: str | Path,
    out: str | Path,
    *,
    utility: Labels = None,
    private: Labels = None,
    max: Mapping[str, str | float] | None = None,
    min: Mapping[str, float] | None = None,
    policy: Policy | str | Path | None = None,
    require: str | None = None,
    leaves: str | None = None,
    within: str | None = "15m",
    candidates: int | None = None,
    effort: str = "cpu",
    seed: int = 0,
    say: Say = lambda _: None,
    watch: Watch = nothing_watched,
    **data: Any,
) -> Protected:
    """Search for a mechanism that keeps a policy, judge the best on people whom the search never saw, and release.

    Args:
        source: A named set, file or folder.
        out: Folder of release, report and candidates; a search that was interrupted goes on there.
        utility, private: What must stay useful, and what nobody may learn.
        max: Limits on threats, ``{"attribute": "10%", "reconstruction": "30%", "epsilon": 3}``.
        min: Limits on utility, ``{"accuracy": 0.7}``.
        policy: A policy or its file; ``max``, ``min`` and ``require`` replace what it says of the same.
        require: Kind of guarantee: dp, anonymity or proven.
        leaves: features, records, rows or messages.
        within: Time for everything, "15m"; None: until nothing is left to try.
        candidates: Try at most so many.
        effort: How hard the final attackers try: smoke, cpu or full.
        seed: Of splits, candidates and search.
        say, watch: Called with lines of progress, and with what is being tried.
        data: Further arguments of ``sfumato.load_splits``: ``x``, ``id``, ``limit``, ``domain``, ``shares``.

    Returns:
        The result: ``passed``, ``release``, ``run``, ``command`` and everything that was tried.

    Raises:
        UsageError: The goal contradicts itself, no mechanism fits it, or the time is shorter than one fit.
        DataError: The data cannot be used, or ``out`` is used for something else.
    """
    stored = policy if isinstance(policy, Policy) else Policy() if policy is None else read_policy(Path(policy))
    typed = policy_of(_items(max), _items(min), (), require or stored.require)
    labels = {"utility": utility, "private": private}
    named: dict[str, Any] = {
        name: [one] if isinstance(one, str) else list(one) for name, one in labels.items() if one is not None
    }
    terms = SearchTerms(None if within is None else seconds_of(within), candidates, effort_named(effort))
    return search(
        str(source),
        Path(out),
        stored.extended(typed),
        leaves=leaves,
        seed=seed,
        terms=terms,
        say=say,
        watch=watch,
        **data,
        **named,
    )


def _items(limits: Mapping[str, str | float] | None) -> list[str]:
    return [f"{name}={value}" for name, value in (limits or {}).items()]

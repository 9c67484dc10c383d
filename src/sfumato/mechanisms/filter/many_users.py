"""Filters of many users trained at once, each on its own records; classifiers see the public part, too (§4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch

from sfumato.core.dataset import Dataset, IntArray
from sfumato.core.errors import DataError
from sfumato.core.schema import Schema
from sfumato.mechanisms.base import Progress, no_progress
from sfumato.mechanisms.filter.bases import Base
from sfumato.mechanisms.filter.label_choices import refuse_impossible
from sfumato.mechanisms.filter.mechanism import FEWEST_RECORDS, Filter
from sfumato.mechanisms.filter.min_max_game import ROUNDS, Choice, Labels, MinMaxGame
from sfumato.mechanisms.storage import state_of

AT_ONCE = 250
"""Users of one game: 1,000 of them need 3.5 GB, and more at once are not faster (``make bench``: growth)."""


@dataclass(frozen=True)
class User:
    """What one user hides and serves, within which budget, and the rows of the owner's records that are the user's."""

    name: str
    private: tuple[str, ...]
    utility: tuple[str, ...]
    rows: IntArray
    budget: float


def fit_together(
    users: Mapping[str, User],
    data: Dataset,
    base: Base,
    settings: Filter,
    *,
    progress: Progress = no_progress,
) -> dict[str, Filter]:
    """A filter for each user; records that belong to nobody are public.

    ``data`` has every label of every user among its labels. ``settings`` is an unfitted filter whose parameters all
    users share, but for the budget. As in a single fit the first utility label is served. Users whose labels have
    equally many classes are trained in one go, ``AT_ONCE`` at most; each comes out as it would alone with the same
    public records.
    """
    settings._check_params()
    public = torch.ones(len(data), dtype=torch.bool)
    for user in users.values():
        _check(user, data)
        public[torch.as_tensor(user.rows)] = False
    mean, variance = base.posterior(data.x)
    groups: dict[tuple[tuple[int, ...], ...], list[User]] = {}
    for user in users.values():
        served = user.utility[:1]
        key = tuple(tuple(len(data.schema.classes(name)) for name in part) for part in (user.private, served))
        groups.setdefault(key, []).append(user)
    games = [part for group in groups.values() for part in _parts(group)]
    fitted: dict[str, Filter] = {}
    common = torch.nonzero(public)[:, 0]

    @cache
    def labels(names: tuple[str, ...]) -> Labels:
        """Once for all users who chose them: the game keeps what they have in common once."""
        return Labels.of({name: data.label(name) for name in names}, data.schema)

    done, total = 0, ROUNDS * len(games)
    for group in games:
        choices = [
            Choice(labels(user.private), labels(user.utility[:1]), torch.as_tensor(user.rows), common, user.budget)
            for user in group
        ]
        game = MinMaxGame(mean, variance, choices, settings.rules(base.latent))
        for number in range(ROUNDS):
            losses = game.round(number)
            done += 1
            progress(done, total, losses)
        spent = game.enforce()
        for place, user in enumerate(group):
            one = type(settings)(**{**settings.get_params(), "base": base, "budget": user.budget})
            one.schema_ = schema_of(user, data.schema)
            one._build(one.schema_)
            mine = {"filter": game.f, "classifier": game.nu}
            one.load_state({name: tensor[place : place + 1] for name, tensor in state_of(mine).items()})
            one.spent_ = spent[place]
            fitted[user.name] = one
    return {name: fitted[name] for name in users}


def _parts(users: Sequence[User]) -> Iterator[Sequence[User]]:
    yield from (users[start : start + AT_ONCE] for start in range(0, len(users), AT_ONCE))


def schema_of(user: User, schema: Schema) -> Schema:
    """The schema with this user's labels in their roles."""
    return replace(
        schema,
        utility={name: schema.classes(name) for name in user.utility},
        private={name: schema.classes(name) for name in user.private},
        sources={name: schema.sources[name] for name in (*user.utility, *user.private) if name in schema.sources},
    )


def _check(user: User, data: Dataset) -> None:
    if len(user.rows) < FEWEST_RECORDS:
        raise DataError(f"user '{user.name}' has {len(user.rows)} records: a filter needs {FEWEST_RECORDS} at least.")
    own = {name: data.label(name)[user.rows] for name in (*user.private, *user.utility)}
    refuse_impossible(
        {name: own[name] for name in user.private}, {name: own[name] for name in user.utility}, f"user '{user.name}'"
    )

"""Copies: does a person's record stand in the release, as it is or nearly?

Two people can have the same record by chance, so copies of held-out people are subtracted. Nearly the same is what is
nearer to a released row than all but one in a hundred of the attacker's own people are.
"""

from __future__ import annotations

import numpy as np

from sfumato.attacks.base import Guess
from sfumato.attacks.coded_rows import distances, nearest, row_keys
from sfumato.attacks.held_out import HeldOutAttack, candidates_of
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.metrics import Values
from sfumato.core.release import Release

NEAR = 0.01
"""The share of strangers that count as nearly copied."""
_RARE = 0.75
"""Rare are those who are further from everybody else's records than this share of the candidates."""


class CopyAttack(HeldOutAttack):
    """The guess is 1 where the candidate is found, 0 where not, −1 where it is not asked for."""

    threat = "copies"

    def came_true(self, guess: Guess, truth: Dataset) -> Values:
        return np.where(guess < 0, np.nan, guess).astype(np.float64)


class ExactCopies(CopyAttack):
    """The same value in every column."""

    name = "copy-exact"
    title = "The whole row"
    how = "the same value in every column"
    with_auxiliary = False

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return np.isin(row_keys(candidates_of(knowledge).x), row_keys(release.payload)).astype(np.float32)


class RareCopies(CopyAttack):
    """The same value in every column, for the quarter of people who are least like others: nobody shares their row."""

    name = "copy-rare"
    title = "The whole row of a rare person"
    how = "the same value in every column, of people unlike the attacker's own"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        points = candidates_of(knowledge).x
        found = np.isin(row_keys(points), row_keys(release.payload)).astype(np.float32)
        lonely = nearest(points, knowledge.auxiliary.x, knowledge.columns)[1][:, 0]
        return np.where(lonely >= np.quantile(lonely, _RARE), found, -1.0).astype(np.float32)


class NearCopies(CopyAttack):
    """Nearer to a released row, in the mean over the columns, than 99 % of other people."""

    name = "copy-near"
    title = "Nearly the whole row"
    how = "nearer to a released row than 99 % of other people"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        near = [
            nearest(points, release.payload, knowledge.columns)[1][:, 0]
            for points in (candidates_of(knowledge).x, knowledge.auxiliary.x)
        ]
        return (near[0] < np.quantile(near[1], NEAR)).astype(np.float32)


class PartCopies(CopyAttack):
    """Shares more exact values with one released row than 99 % of other people do: copies with gaps, blends of rows."""

    name = "copy-part"
    title = "Much of the row"
    how = "shares more exact values with one released row than 99 % of other people"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        shared = [
            _most_shared(points, release.payload, knowledge)
            for points in (candidates_of(knowledge).x, knowledge.auxiliary.x)
        ]
        return (shared[0] > np.quantile(shared[1], 1.0 - NEAR)).astype(np.float32)


def _most_shared(points: FloatArray, among: FloatArray, knowledge: Knowledge) -> Values:
    """How many columns each point has in common with the released row that has most, rare values counting more."""
    from dataclasses import replace

    codes = [replace(column, categories=max(1, column.categories)) for column in knowledge.columns]
    found = np.empty(len(points))
    for where, apart in distances(points, among, codes):
        found[where] = len(codes) - apart.min(axis=1)
    return found

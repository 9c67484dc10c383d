"""What is tried next: Optuna's multi-objective search with constraints, its memory a journal of JSON lines.

Two figures are pursued, utility upwards and the largest excess over a limit on a threat downwards; a candidate beyond a
limit counts as infeasible, and the less so the nearer it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import DataError
from sfumato.core.extras import require
from sfumato.core.run_folder import shut
from sfumato.mechanisms.search_space import KnobRange
from sfumato.workflow.protect.candidate_ways import Candidate, Way, tried_first

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, Trial

_WAY, _LIMITS = "way", "constraints"
_NAME = "protect"
_AGAIN = 20
"""Settings that were tried already, in a row, before the search counts as exhausted."""


class StudyJournal:
    """The search over these ways; a journal that is there already goes on."""

    def __init__(self, file: Path, ways: Sequence[Way], seed: int) -> None:
        require("protect", "sfumato protect", "optuna")
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        self._ways = {f"{number}:{way.mechanism}": way for number, way in enumerate(ways)}
        first = tried_first(ways)
        known = file.is_file()
        try:
            storage = JournalStorage(JournalFileBackend(str(file)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # multivariate and group are marked as experimental
                sampler = optuna.samplers.TPESampler(
                    seed=seed, multivariate=True, group=True, n_startup_trials=len(first) + 1, constraints_func=_limits
                )
                self._study = optuna.create_study(
                    storage=storage,
                    study_name=_NAME,
                    directions=["maximize", "minimize"],
                    sampler=sampler,
                    load_if_exists=True,
                )
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"cannot use the journal {file} ({error}): restore it, or choose another --out.") from None
        shut(file)
        if not known:
            for candidate in first:
                self._enqueue(candidate)
        self._seen: set[str] = set()
        self._take_up()

    def known(self, mechanism: str, fixed: Mapping[str, Any], knobs: Mapping[str, Any]) -> Candidate | None:
        """A candidate as it was stored; None if it is of no way of this search."""
        found = (
            way for way in self._ways.values() if (way.mechanism, dict(way.space.fixed)) == (mechanism, dict(fixed))
        )
        way = next(found, None)
        return None if way is None else Candidate(way, dict(knobs))

    def ask(self) -> tuple[int, Candidate] | None:
        """The next candidate and its number; None if everything was tried."""
        for _ in range(_AGAIN):
            trial = self._study.ask()
            candidate = self._suggested(trial)
            if str(candidate) in self._seen:
                self._study.tell(trial, state=self._state("FAIL"))
                continue
            self._seen.add(str(candidate))
            return trial.number, candidate
        return None

    def tell(self, number: int, utility: float, excess: float, shortfall: float) -> None:
        """What a candidate reached by its figures: excess and shortfall are below 0 within the limits."""
        self._limit(number, (shortfall, excess))
        self._study.tell(number, [utility, excess])

    def miss(self, number: int, shortfall: float | None) -> None:
        """A candidate that was given up; ``shortfall`` by how much its utility was below the limit, if that is why."""
        if shortfall is None:
            self._study.tell(number, state=self._state("FAIL"))
            return
        self._limit(number, (shortfall, 0.0))
        self._study.tell(number, state=self._state("PRUNED"))

    def _limit(self, number: int, values: tuple[float, float]) -> None:
        trial = self._study.trials[number]
        self._study._storage.set_trial_user_attr(trial._trial_id, _LIMITS, list(values))

    def _suggested(self, trial: Trial) -> Candidate:
        chosen = self._ways[trial.suggest_categorical(_WAY, list(self._ways))]
        name = trial.params[_WAY]
        return Candidate(chosen, {knob: _suggest(trial, f"{name}.{knob}", one) for knob, one in _knobs(chosen)})

    def _enqueue(self, candidate: Candidate) -> None:
        name = next(name for name, way in self._ways.items() if way == candidate.way)
        knobs = {f"{name}.{knob}": value for knob, value in candidate.knobs.items()}
        self._study.enqueue_trial({_WAY: name, **knobs})

    def _take_up(self) -> None:
        """What was being tried when an earlier search ended is tried first; what was tried is not tried again."""
        import optuna

        for trial in self._study.trials:
            if _WAY not in trial.params:
                continue
            if trial.state == optuna.trial.TrialState.RUNNING:
                self._study.tell(trial.number, state=self._state("FAIL"))
                self._study.enqueue_trial(dict(trial.params))
            elif trial.state.is_finished():
                way = self._ways[trial.params[_WAY]]
                self._seen.add(str(Candidate(way, _values(trial.params, way))))

    @staticmethod
    def _state(name: str) -> Any:
        import optuna

        return optuna.trial.TrialState[name]


def _knobs(way: Way) -> list[tuple[str, KnobRange | tuple[Any, ...]]]:
    return list(way.space.knobs.items())


def _values(params: Mapping[str, Any], way: Way) -> dict[str, Any]:
    return {knob: params[f"{params[_WAY]}.{knob}"] for knob, _ in _knobs(way) if f"{params[_WAY]}.{knob}" in params}


def _suggest(trial: Trial, name: str, knob: KnobRange | tuple[Any, ...]) -> Any:
    if not isinstance(knob, KnobRange):
        return trial.suggest_categorical(name, list(knob))
    if knob.whole:
        return trial.suggest_int(name, int(knob.low), int(knob.high), log=knob.log)
    return float(f"{trial.suggest_float(name, knob.low, knob.high, log=knob.log):.6g}")


def _limits(trial: FrozenTrial) -> Sequence[float]:
    found: Sequence[float] = trial.user_attrs.get(_LIMITS, (0.0, 0.0))
    return found

"""The contract of a mechanism: what every one has. The public methods check, the private ones work."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from sfumato.core import compute, memory
from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError, RuleBroken, UsageError
from sfumato.core.guarantee import ONE_ROW, SECURE_NOISE, SEVERAL_ROWS, Guarantee
from sfumato.core.notebook import facts_table
from sfumato.core.origin import Origin
from sfumato.core.randomness import Randomness, Secure, Seeded
from sfumato.core.release import Release, unchanged_row
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms import storage
from sfumato.mechanisms.given_records import as_dataset, as_records
from sfumato.mechanisms.label_targets import refuse_numbers
from sfumato.mechanisms.parameters import Parametrised, whole
from sfumato.mechanisms.record_checks import check_private, check_records
from sfumato.mechanisms.search_space import SearchSpace

if TYPE_CHECKING:
    from torch import Tensor, nn

Progress = Callable[[int, int, Mapping[str, float]], None]
"""Called after each epoch with (epochs done, epochs in all, metrics)."""


Warn = Callable[[str], None]
"""Called with a sentence about what is likely to disappoint."""


class FitWarning(UserWarning):
    """What a fit says where nobody gave it another way to say it."""


def no_progress(_done: int, _total: int, _metrics: Mapping[str, float]) -> None:
    """The default: say nothing."""


class Mechanism(Parametrised, ABC):
    """Something that turns records into what may leave the building.

    A subclass declares its hyper-parameters (see ``parameters``), writes ``_build``, ``_fit``, ``_release``,
    ``_modules`` and ``guarantee``, and says what it is in ``traits``. What else it can do is in ``capabilities``.
    Fitted state ends in ``_``.
    """

    knob: ClassVar[str | None] = None
    """The hyper-parameter that trades utility against privacy."""
    spare: ClassVar[tuple[str, ...]] = ()
    """Networks that a device can do without."""
    owner_share: ClassVar[float | None] = None
    """How much of a file it learns from unless told otherwise; None: as much as is usual (docs/data.md)."""

    by_shares: ClassVar[bool] = False
    """Whether several processes can train one fit together, each on its share of every batch (``core.ranks``)."""

    serves_numbers: ClassVar[bool] = False
    """Whether it can be trained for a utility label that is a number."""

    searched: ClassVar[tuple[SearchSpace, ...]] = ()
    """The ways to use it that are tried for somebody who only says what must stay useful and what hidden."""

    labels_: tuple[str, ...] = ()
    """The utility labels that it was fitted for; empty: all of the schema's."""

    seed: int = whole(default=0, low=0, high=2**63 - 1, help="repeatable initial weights and order of batches")

    @property
    def traits(self) -> Traits:
        """What every release of this mechanism with these hyper-parameters is."""
        return Traits()

    @property
    def fights_private(self) -> bool:
        """Whether it looks at the private labels, to train or to release."""
        return self.traits.reads_private

    @property
    def hides_numbers(self) -> bool:
        """Whether it can do that for a private label that is a number."""
        return False

    def stored_params(self) -> dict[str, Any]:
        """The hyper-parameters as plain values for files."""
        return self.get_params()

    @final
    def fit(
        self,
        data: Dataset | npt.ArrayLike,
        y: Any = None,
        *,
        private: Any = None,
        ids: Any = None,
        run: RunFolder | None = None,
        progress: Progress = no_progress,
        start: Mechanism | None = None,
        warn: Warn | None = None,
    ) -> Self:
        """Learn from the owner's records.

        Args:
            data: The owner's records with their labels; or, in scikit-learn's manner, records ``X`` alone: an array or
                tensor (N, …) with values in [0, 1], or a DataFrame in its own units.
            y: With ``X``: the utility label, or several as a DataFrame or by name.
            private: With ``X``: labels that nobody may learn, in the same way, or names of columns of a DataFrame.
            ids: With ``X``: the subject of every record.
            run: A run folder. Progress is saved there every epoch, and an interrupted fit resumes from it.
            progress: Called after each epoch.
            start: A fitted mechanism of the same kind with another knob setting, to train on from.
            warn: Called with what is likely to disappoint, before time is spent on it; by default a Python warning.

        Returns:
            The mechanism itself, fitted.

        Raises:
            UsageError: A hyper-parameter is out of range, or ``start`` is of another kind.
            DataError: The records or labels cannot be used.
        """
        self._check_params()
        data = as_dataset(data, y, private, ids)
        memory.refuse_copies(self._copies(), data.x, self.name, data.name)
        check_records(data.x, data.schema, data.name)
        traits = self.traits
        if traits.needs_labels and not data.utility:
            raise DataError(f"{data.name} has no utility label: name one with --utility.")
        labels = dict(data.utility) if traits.needs_labels else {}
        if traits.reads_private:
            if not data.private:
                raise DataError(f"{self.name} reads a private label and {data.name} has none: name one with --private.")
            labels |= check_private(data.private, data.schema, len(data), self.name, data.name)
        for label, values in labels.items():
            if len(np.unique(values)) < 2:
                what = "one number" if label in data.schema.numbers else "one class"
                raise DataError(f"{data.name}: column '{label}' has {what} only; nothing can be learnt from it.")
        refuse_numbers(self, data)
        data = data.standardised()
        if start is not None and type(start) is not type(self):
            raise UsageError(f"{self.name} cannot start from a fitted {start.name}.")
        self.schema_, self.labels_ = data.schema, tuple(data.utility)
        self.__dict__["_said"] = warn
        with compute.threads(data.x[0].size):
            compute.bring(start)
            self._build(data.schema)
            with memory.at_random(data.x):
                self._fit(data, run, progress, start)
        self._settle()
        del self.__dict__["_said"]
        compute.bring(self)
        if run is not None:
            self.save(run.path)
            run.finish()
        return self

    def _copies(self) -> int:
        """How often a fit copies all records in memory; 0: it reads them by batches, so that they may lie on disk."""
        return 1

    @abstractmethod
    def _build(self, schema: Schema) -> None:
        """Create the modules for records of this schema, with seeded initial weights."""

    @abstractmethod
    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        """Train."""

    @final
    def release(self, data: Dataset, *, seed: int | None = None, labels: bool | None = None) -> Release:
        """What may leave: protected payload, utility labels and guarantee.

        Private columns and subject ids are never copied, nor the utility labels where the mechanism hides the result.
        The guarantee is that of this release: if one of its conditions is seen not to hold, it promises nothing and
        says why. The number of rows shows the number of records, so a promise about that is left out.

        Args:
            data: The records to protect. A mechanism that draws synthetic records uses their number only.
            seed: Repeatable randomness, for experiments only. Without it, noise, keys and masks come from the
                operating system's secure source.
            labels: Whether the utility labels leave. By default they do, unless there is a proven promise that does not
                cover them. With ``True`` they leave all the same, and the guarantee says that they are outside.

        Returns:
            The release.

        Raises:
            UsageError: Labels are asked for where the mechanism hides the result.
            RuleBroken: A raw record stands in the payload, and the mechanism is no control and draws no records.
        """
        self._check_fitted()
        if labels and self.traits.hides_result:
            raise UsageError(f"{self.name} hides the label as well; beside a message it would tell whose it is.")
        promised = self.guarantee()
        broken = {**_broken(promised, data, seed), **self._broken(data)}
        payload, found = self._released(data, seed)
        default = promised.covers.labels or not promised.proven or self.traits.synthetic
        leaving = found if (default if labels is None else labels) else {}
        defends = self.traits.unprotected != "record" and not self.traits.synthetic  # a drawn record may be like any
        if defends and (row := unchanged_row(payload, data.x)) is not None:
            raise RuleBroken(f"{self.name} released a raw record unchanged, in row {row} of {data.name}.")
        return Release(self.name, payload, promised.of_release(leaving, broken), leaving)

    def _broken(self, data: Dataset) -> Mapping[str, str]:
        """Further conditions of the guarantee that a release of ``data`` breaks: name → why; raise to refuse it."""
        return {}

    def _released(self, data: Dataset, seed: int | None) -> tuple[FloatArray, Mapping[str, IntArray]]:
        """The payload and the labels that may leave with it."""
        payload = self.transform(data.x, private=data.private, origin=data.origin, seed=seed, name=data.name)
        return payload, {} if self.traits.hides_result else dict(data.utility)

    @final
    def transform(
        self,
        X: npt.ArrayLike,
        *,
        private: Mapping[str, npt.ArrayLike] | None = None,
        origin: Origin | None = None,
        seed: int | None = None,
        name: str = "X",
    ) -> FloatArray:
        """The payload alone.

        Args:
            X: Records of the fitted shape, (N, *shape), as a NumPy array or torch tensor with values in [0, 1]; or a
                DataFrame in its own units, which may hold the private labels, too.
            private: One class code a record for every private label of the fit, if the mechanism ``reads_private``;
                ignored otherwise. Of a label that is a number the values as floats, or codes as a data set has them.
            origin: Where the records come from, for a mechanism that ties a secret to each; without it ``X`` counts as
                raw.
            seed: Repeatable randomness, for experiments only.
            name: How messages call these records.

        Returns:
            The payload, (N, …) in float32.
        """
        self._check_fitted()
        records, found = as_records(X, self.schema_)
        x = np.asarray(records, dtype=np.float32)
        check_records(x, self.schema_, name)
        needed = self.traits.reads_private
        codes = check_private(private or found, self.schema_, len(x), self.name, name) if needed else {}
        randomness: Randomness = Secure() if seed is None else Seeded(seed)
        return self._release_from(x, codes, randomness, origin or Origin(x))

    @abstractmethod
    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        """The payload of checked records; ``private`` is empty unless the mechanism ``reads_private``."""

    def _release_from(
        self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness, origin: Origin
    ) -> FloatArray:
        """As ``_release``, for a mechanism that ties a secret to each record's origin."""
        return self._release(x, private, randomness)

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised about every release."""

    @abstractmethod
    def _modules(self) -> dict[str, nn.Module]:
        """The fitted networks by name, for storage."""

    def state(self) -> dict[str, Tensor]:
        """Every weight and buffer, by module and name."""
        return storage.state_of(self._modules())

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Put stored weights into the built networks."""
        storage.load_state_of(self._modules(), tensors, self)

    def save(self, folder: Path) -> None:
        """Write parameters, traits, schema and, a file for each network, the weights below ``folder``."""
        self._check_fitted()
        storage.save(self, folder)

    @classmethod
    def load(cls, folder: Path, **overrides: Any) -> Self:
        """Read what ``save`` wrote; ``overrides`` replace stored parameters (an encoder of the user's own)."""
        return storage.load(cls, folder, overrides)

    @property
    def absent_(self) -> tuple[str, ...]:
        """The ``spare`` networks that were not there to load."""
        return tuple(self.__dict__.get("_absent", ()))

    def _warn(self, sentence: str) -> None:
        """Say, while fitting, what is likely to disappoint."""
        said = self.__dict__.get("_said")
        if said is None:
            warnings.warn(sentence, FitWarning, stacklevel=2)
        else:
            said(sentence)

    def _settle(self) -> None:
        """Training is over: no later call may touch running statistics."""
        for network in self._modules().values():
            network.eval()

    def _repr_html_(self) -> str:
        fitted = hasattr(self, "schema_")
        facts: dict[str, object] = {name: value for name, value in self.get_params().items() if name != "seed"}
        if fitted:
            facts |= {"fitted on": f"{self.schema_.kind} {self.schema_.shape}", "guarantee": self.guarantee().kind}
        return facts_table(f"{type(self).__name__} ({'fitted' if fitted else 'not fitted yet'})", facts)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of every step of a pipeline: a transformer that wants to be fitted first."""
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=self.traits.needs_labels),
            transformer_tags=TransformerTags(),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "schema_")

    def _check_fitted(self) -> None:
        if not hasattr(self, "schema_"):
            raise UsageError(f"this {type(self).__name__} is not fitted yet: call fit first.")
        compute.bring(self)


def _broken(promised: Guarantee, data: Dataset, seed: int | None) -> dict[str, str]:
    """Which of the conditions that are checked for every mechanism a release breaks, and why."""
    asked = {condition.name for condition in promised.conditions}
    broken = {}
    if SECURE_NOISE.name in asked and seed is not None:
        broken[SECURE_NOISE.name] = "it was made with a seed, and whoever knows that can take the noise off"
    if ONE_ROW.name in asked and len(np.unique(data.ids)) < len(data):
        broken[ONE_ROW.name] = SEVERAL_ROWS
    return broken

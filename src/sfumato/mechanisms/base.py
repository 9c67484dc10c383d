"""The contract of a mechanism: scikit-learn manners, checks in the public methods, work in the private ones."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError, RuleBroken, UsageError, unknown
from sfumato.core.guarantee import Guarantee
from sfumato.core.knowledge import Opened, Participant
from sfumato.core.randomness import Randomness, Secure, Seeded, derive_seed
from sfumato.core.release import Release
from sfumato.core.run_folder import RunFolder, read_json, read_tensors, write_json, write_tensors
from sfumato.core.schema import Schema

if TYPE_CHECKING:
    import torch
    from torch import nn

Progress = Callable[[int, int, Mapping[str, float]], None]
"""Called after each epoch with (epochs done, epochs in all, metrics)."""


def no_progress(_done: int, _total: int, _metrics: Mapping[str, float]) -> None:
    """The default: say nothing."""


class Mechanism(ABC):
    """Something that turns records into what may leave the building.

    The constructor stores hyper-parameters unchanged (keyword-only, all with defaults); fitted state ends in ``_``.
    A subclass writes ``_fit`` and ``_release`` and says what it guarantees.
    """

    name: ClassVar[str]
    randomised: bool = False
    """Whether two releases of one record differ."""
    reads_private: ClassVar[bool] = False
    """Whether a release needs each record's private labels; they shape the noise and never leave."""
    hides_result: ClassVar[bool] = False
    """Whether the receiver is not to learn the utility label either."""
    fewest: int = 1
    """So many records make a release at least."""
    releases_raw: ClassVar[bool] = False
    """True only for the undefended control."""
    synthetic: ClassVar[bool] = False
    """Whether the payload is drawn from a model of the owner's records; the records given to ``release`` only count."""
    knob: ClassVar[str | None] = None
    """The hyper-parameter that trades utility against privacy."""
    spare: ClassVar[tuple[str, ...]] = ()
    """Networks that a device can do without."""
    absent_: tuple[str, ...] = ()
    """Those of them that were not there to load."""

    parties: int = 0
    """So many parties share the owner's records among them, by turns; 0 for a mechanism that knows no parties."""

    seed: int
    schema_: Schema

    @property
    def needs_labels(self) -> bool:
        """Whether there is nothing to learn without a utility label."""
        return True

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """Names and defaults of the hyper-parameters."""
        signature = inspect.signature(cls.__init__)
        return {name: p.default for name, p in signature.parameters.items() if name != "self"}

    def get_params(self) -> dict[str, Any]:
        """The hyper-parameters as given."""
        return {name: getattr(self, name) for name in self.parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters of an unfitted mechanism."""
        for name, value in params.items():
            if name not in self.parameters():
                raise unknown(f"parameter of {self.name}", name, self.parameters())
            setattr(self, name, value)
        return self

    def stored_params(self) -> dict[str, Any]:
        """The hyper-parameters as plain values for files."""
        return self.get_params()

    def __repr__(self) -> str:
        changed = {k: v for k, v in self.get_params().items() if v != self.parameters()[k]}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"

    def fit(
        self,
        data: Dataset,
        *,
        run: RunFolder | None = None,
        progress: Progress = no_progress,
        start: Mechanism | None = None,
    ) -> Self:
        """Learn from the owner's records.

        With ``run``, progress is saved every epoch and an interrupted fit goes on where it stopped. ``start`` is a
        fitted mechanism of the same kind with other knob settings, to train from instead of from scratch.
        """
        self._check_params()
        check_records(data.x, data.schema, data.name)
        if self.needs_labels and not data.utility:
            raise DataError(f"{data.name} has no utility label: name one with --utility.")
        labels = dict(data.utility) if self.needs_labels else {}
        if self.reads_private:
            if not data.private:
                raise DataError(f"{self.name} reads a private label and {data.name} has none: name one with --private.")
            labels |= check_private(data.private, data.schema, len(data), self.name, data.name)
        for label, values in labels.items():
            if len(np.unique(values)) < 2:
                raise DataError(f"{data.name}: column '{label}' has one class only; nothing can be learnt from it.")
        if start is not None and type(start) is not type(self):
            raise UsageError(f"{self.name} cannot start from a fitted {start.name}.")
        self.schema_ = data.schema
        self._build(data.schema)
        self._fit(data, run, progress, start)
        self._settle()
        if run is not None:
            self.save(run.path)
            run.finish()
        return self

    @abstractmethod
    def _check_params(self) -> None:
        """Raise ``UsageError`` for hyper-parameters out of range."""

    @abstractmethod
    def _build(self, schema: Schema) -> None:
        """Create the modules for records of this schema, with seeded initial weights."""

    @abstractmethod
    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        """Train."""

    def release(self, data: Dataset, *, seed: int | None = None) -> Release:
        """What may leave: protected payload, utility labels, guarantee.

        Noise, keys and masks come from the operating system's secure source; ``seed`` replaces it by a repeatable
        one for experiments. Private columns and subject ids are never copied, nor the utility labels where the
        mechanism hides the result as well.
        """
        payload = self.transform(data.x, private=data.private, seed=seed, name=data.name)
        if not self.releases_raw and payload.shape == data.x.shape:
            same = (payload == data.x).reshape(len(payload), -1).all(axis=1)
            if same.all():
                raise RuleBroken(f"{self.name} released the raw records unchanged.")
        return Release(self.name, payload, self.guarantee(), {} if self.hides_result else dict(data.utility))

    def transform(
        self,
        X: npt.ArrayLike,
        *,
        private: Mapping[str, npt.ArrayLike] | None = None,
        seed: int | None = None,
        name: str = "X",
    ) -> FloatArray:
        """The payload for records ``X`` (NumPy array or torch tensor of the fitted shape).

        A mechanism that ``reads_private`` needs one class code a record for every private label of the fit; another
        one ignores ``private``.
        """
        self._check_fitted()
        x = np.asarray(X, dtype=np.float32)
        check_records(x, self.schema_, name)
        codes = check_private(private or {}, self.schema_, len(x), self.name, name) if self.reads_private else {}
        randomness: Randomness = Secure() if seed is None else Seeded(seed)
        return self._release(x, codes, randomness)

    @abstractmethod
    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        """The payload of checked records; ``private`` is empty unless the mechanism ``reads_private``."""

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised about every release."""

    def check_writing(self) -> None:  # noqa: B027 — most mechanisms have nothing to check
        """Raise ``UsageError`` if a release that is written now could not keep what it promises."""

    def gives_records(self) -> bool:
        """Whether the payload is a record of the owner's kind, to be written in its original columns."""
        return False

    def predict(self, payload: FloatArray) -> FloatArray | None:
        """Class scores (N, classes) of the first utility label by the mechanism's own cloud half, if it has one."""
        return None

    def answer(self, data: Dataset, *, seed: int | None = None) -> FloatArray | None:
        """Class scores (N, classes) of the first utility label as they reach the owner in the end.

        ``predict`` on the release of ``data``; a mechanism whose answer comes back encrypted turns it back here.
        """
        return self.predict(self.transform(data.x, private=data.private, seed=seed, name=data.name))

    def opened(self, data: Dataset, *, seed: int) -> Opened | None:
        """The release of ``data`` for this seed with the secrets behind it; None for a mechanism without keys."""
        return None

    def read(self, sent: Opened, keys: FloatArray | None = None) -> FloatArray | None:
        """Class scores of what the receiver makes of ``sent``, read with its own keys or with these others."""
        return None

    def repeated(self, data: Dataset, times: int, *, seed: int) -> tuple[FloatArray, ...]:
        """Further payloads of the same records, as their own device would make them one after the other."""
        return tuple(
            self.transform(data.x, private=data.private, seed=derive_seed(seed, number), name=data.name)
            for number in range(times)
        )

    def participant(self, data: Dataset, *, seed: int) -> Participant | None:
        """Somebody with ``data`` as a further party, who may choose its masks; None for a mechanism without masks."""
        return None

    def masks(self, count: int, *, seed: int) -> FloatArray | None:
        """The secret masks (``count``, h) of a release with this seed; None for a mechanism without masks."""
        return None

    def public_cloud(self) -> nn.Module | None:
        """The network that works on payloads away from the device (None if there is none, or it gives the answer)."""
        return None

    def decode(self, payload: FloatArray) -> FloatArray | None:
        """The payload as records (N, *shape) in [0, 1], as a receiver would see it; None without a public decoder."""
        return None

    def public_encoder(self) -> nn.Module | None:
        """The network that every device holds, and so every attacker (None if there is none)."""
        return None

    @abstractmethod
    def _modules(self) -> dict[str, nn.Module]:
        """The fitted networks by name, for storage."""

    def state(self) -> dict[str, torch.Tensor]:
        """Every weight and buffer, by module and name."""
        from sfumato.mechanisms.training import state_of

        return state_of(self._modules())

    def load_state(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Put stored weights into the built networks."""
        from sfumato.mechanisms.training import load_state_of

        load_state_of(self._modules(), tensors, self)

    def save(self, folder: Path) -> None:
        """Write parameters, schema and, a file for each network, the weights below ``folder``."""
        self._check_fitted()
        (folder / "checkpoint").mkdir(parents=True, exist_ok=True)
        for module, network in self._modules().items():
            if module in self.absent_:
                continue
            write_tensors(folder / "checkpoint" / f"{module}.safetensors", network.state_dict())
        write_json(folder / "schema.json", self.schema_.to_json())
        write_json(folder / "mechanism.json", {"mechanism": self.name, "params": self.stored_params()})

    @classmethod
    def load(cls, folder: Path, **overrides: Any) -> Self:
        """Read what ``save`` wrote; ``overrides`` replace stored parameters (an encoder of the user's own)."""
        from sfumato.mechanisms.training import load_state_of

        stored = read_json(folder / "mechanism.json")
        if stored["mechanism"] != cls.name:
            raise DataError(f"{folder} holds a '{stored['mechanism']}', not a '{cls.name}'.")
        mechanism = cls().set_params(**{**stored["params"], **overrides})
        mechanism.schema_ = Schema.from_json(read_json(folder / "schema.json"))
        mechanism._build(mechanism.schema_)
        for module, network in mechanism._modules().items():
            file = folder / "checkpoint" / f"{module}.safetensors"
            if module in cls.spare and not file.exists():
                mechanism.absent_ = (*mechanism.absent_, module)
                continue
            weights = {f"{module}.{name}": tensor for name, tensor in read_tensors(file).items()}
            load_state_of({module: network}, weights, mechanism)
        mechanism._settle()
        return mechanism

    def _settle(self) -> None:
        """Training is over: no later call may touch running statistics."""
        for network in self._modules().values():
            network.eval()

    def _check_fitted(self) -> None:
        if not hasattr(self, "schema_"):
            raise UsageError(f"this {type(self).__name__} is not fitted yet: call fit first.")


def check_records(x: FloatArray, schema: Schema, name: str) -> None:
    """Shape and values that the schema allows, or a ``DataError`` naming the first bad record."""
    if x.shape[1:] != schema.shape:
        raise DataError(f"{name}: records have shape {x.shape[1:]}, the mechanism was built for {schema.shape}.")
    if len(x) == 0:
        raise DataError(f"{name} holds no records.")
    low, high = x.min(), x.max()  # NaN and infinities show here, at a fraction of isfinite's memory
    if not (low >= 0.0 and high <= 1.0):
        bad = ~((x >= 0.0) & (x <= 1.0)).reshape(len(x), -1).all(axis=1)
        row = int(np.argmax(bad))
        raise DataError(f"{name}: record {row} holds NaN, infinite or out-of-range values; records lie in [0, 1].")


def check_private(
    private: Mapping[str, npt.ArrayLike], schema: Schema, records: int, mechanism: str, name: str
) -> dict[str, IntArray]:
    """The codes of every private label of the schema, one a record; what is missing or wrong is named."""
    codes: dict[str, IntArray] = {}
    for label, classes in schema.private.items():
        if label not in private:
            raise UsageError(
                f"{mechanism} needs the private label '{label}' of every record: "
                f"give transform(X, private={{'{label}': codes}})."
            )
        given = np.asarray(private[label])
        if given.shape != (records,):
            shape = f"has shape {given.shape} for {records} records"
            raise DataError(f"{name}: private label '{label}' {shape}: give one code a record.")
        whole = given.dtype.kind in "biu"
        bad = (given < 0) | (given >= len(classes)) if whole else np.ones(records, dtype=bool)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"{name}: record {row} has {given.tolist()[row]!r} as private label '{label}': "
                f"give a whole number from 0 to {len(classes) - 1} ({', '.join(classes[:8])})."
            )
        codes[label] = given.astype(np.int64)
    return codes

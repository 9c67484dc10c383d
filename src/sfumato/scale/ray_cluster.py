"""A Ray cluster as an engine: jobs side by side on several machines, done again where a worker is lost.

Every machine has the same sfumato and sees the same folders for data and results: workers write run folders where
processes of one machine would, so a comparison goes on wherever it was stopped, on a cluster or without one.
"""

from __future__ import annotations

import os
import socket
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sfumato
from sfumato.core.errors import DataError, SfumatoError, UsageError
from sfumato.core.extras import require
from sfumato.workflow.processes import Job, Say, Submit

_RETRIES = 3
"""Times that a job is begun again after its worker was lost."""
_POLL = 0.2
_PATIENCE = 5.0
_FEW = 1
"""Processors of a job: small networks train on one thread."""
_STORE = 2**28
"""Bytes for objects on this machine: what travels are names of files and rows."""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_PASSED_ON = ("SFUMATO_DATA", "SFUMATO_CACHE", "SFUMATO_STATE", "SFUMATO_DEVICE_SECRET", "TMPDIR")


@contextmanager
def cluster(address: str | None, jobs: int | None = None) -> Iterator[RayCluster]:
    """The cluster at ``address`` (``host:port`` or ``ray://host:port``); without one, workers of this machine, so many.

    Raises:
        UsageError: Ray is not installed, or ``jobs`` is given together with an address.
        DataError: Nobody answers at the address.
    """
    require("scale", "--engine ray", "ray")
    if address is not None and jobs is not None:
        raise UsageError("--jobs is for this machine, and the cluster at --address has its own number: leave one out.")
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is None:
            ray.init(address="local", num_cpus=jobs, include_dashboard=False, object_store_memory=_STORE, **quiet)
        else:
            _answers(address)
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, TimeoutError, ValueError) as error:
        where = "this machine" if address is None else address
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(f"Ray cannot be used at {where} ({said[0][:160].rstrip('.')}): see 'ray status'.") from None
    try:
        yield RayCluster()
    finally:
        ray.shutdown()


def _answers(address: str) -> None:
    """Raise at once if nobody listens there: Ray would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--address {address}: write it as host:port.")
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        raise ConnectionError(error.strerror or str(error)) from None


class RayCluster:
    """The cluster that this process is connected to."""

    @property
    def workers(self) -> int:
        """How many jobs it does at once: its processors now."""
        import ray

        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        return max(1, int(resources.get("CPU", 1)) // _FEW)

    @contextmanager
    def opened(self, say: Say) -> Iterator[Submit]:
        """Takes jobs inside, see ``workflow.processes.Engine``."""
        import ray
        from ray.exceptions import RayError
        from ray.util.queue import Queue
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        beside = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        heard = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": beside})
        over = threading.Event()
        listener = threading.Thread(target=_listen, args=(heard, say, over), daemon=True)
        listener.start()
        remote = ray.remote(num_cpus=_FEW, max_retries=_RETRIES, retry_exceptions=False)(_work)
        begun: list[Any] = []

        def submit(job: Job) -> Future[Any]:
            reference = remote.remote(job.work, dict(job.arguments), heard, surroundings())
            begun.append(reference)
            future: Future[Any] = reference.future()
            return future

        try:
            yield submit
        except RayError as error:
            raise own_error(error) from None
        finally:
            for reference in begun:
                ray.cancel(reference, force=True)
            over.set()
            listener.join(_PATIENCE)
            heard.shutdown(force=True)


def surroundings() -> dict[str, str]:
    """What a worker needs to know of the machine that asked: folders, and the version of sfumato."""
    here = {"version": sfumato.__version__, "folder": str(Path.cwd())}
    return {**here, **{name: os.environ[name] for name in _PASSED_ON if name in os.environ}}


def settle(asked: Mapping[str, str]) -> None:
    """In a worker: the same folders as at whoever asked, files for their owner alone, libraries quiet."""
    import platform

    if asked["version"] != sfumato.__version__:
        raise DataError(
            f"{platform.node()} has sfumato {sfumato.__version__}, this machine has {asked['version']}: install one "
            "version everywhere."
        )
    with suppress(OSError):  # names without a folder are those of whoever asked
        os.chdir(asked["folder"])
    os.environ.update({name: value for name, value in asked.items() if name in _PASSED_ON})
    os.umask(0o077)
    warnings.simplefilter("ignore")


def own_error(error: Exception) -> Exception:
    """What a worker raised, if it is ours; a lost worker is a sentence, and anything else stays what it is."""
    from ray.exceptions import RayTaskError, WorkerCrashedError

    cause = getattr(error, "cause", None)
    if isinstance(cause, SfumatoError):
        return cause
    if isinstance(error, WorkerCrashedError) or not isinstance(error, RayTaskError):
        return DataError(
            f"the cluster lost a worker more than {_RETRIES} times ({type(error).__name__}), perhaps for want of "
            "memory: the same command goes on."
        )
    return error


def _work(work: Callable[..., Any], arguments: dict[str, Any], heard: Any, asked: Mapping[str, str]) -> Any:
    from ray.exceptions import RayError

    def tell(line: str) -> None:
        with suppress(RayError):  # a line of progress is no reason to stop
            heard.put(line)

    settle(asked)
    return work(tell, lambda *_: None, **arguments)


def _listen(heard: Any, say: Say, over: threading.Event) -> None:
    from ray.exceptions import RayError
    from ray.util.queue import Empty

    while not over.is_set():
        try:
            say(heard.get(timeout=_POLL))
        except Empty:
            continue
        except RayError:
            over.wait(_POLL)  # out of reach for a while, as workers may be

"""The way to replicas that Ray Serve runs."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import signal
import tempfile
import warnings
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from calomel.suggest.replicas.errors import LineLostError, ReplicasError
from calomel.suggest.replicas.kept_signal import kept_signal
from calomel.suggest.replicas.line import ReplicaLook
from calomel.suggest.replicas.replica import Opening
from calomel.suggest.replicas.served import ServedReplica
from calomel.suggest.replicas.wire import Data, Message

# Sessions go round a ring of replicas, so that another one takes over those of a lost one, and none of the others move.
_ROUTER: Final = "calomel.suggest.replicas.router:SessionRouter"
# Ray's smallest: a request is some hundred kilobytes, and goes from process to process without it.
_OBJECT_STORE: Final = 80 * 1024 * 1024
# The queue is the engine's own: it knows who is in a hurry.
_AT_ONCE: Final = 100_000
_LOOK_SECONDS: Final = 5.0
# Ray gives its own processes half a minute, which on a machine with much to do is not always enough.
_STARTS: Final = 5
_SETTINGS: Final = {
    # No report to Ray's makers.
    "RAY_USAGE_STATS_ENABLED": "0",
}
_ALONE: Final = {
    # Every port of Ray's listens on 127.0.0.1, as on systems where it has no clusters.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
}


class RayLine:
    """Starts a Ray of its own on this machine, or uses the cluster that `RAY_ADDRESS` names.

    Args:
        opening: which model the replicas open.
        replicas: how many.
    """

    def __init__(self, opening: Opening, replicas: int) -> None:
        self._opening = opening
        self._replicas = replicas
        self._address = os.environ.get("RAY_ADDRESS")
        self._name = f"calomel-{secrets.token_hex(4)}"
        self._folder: Path | None = None
        self._handle: Any = None
        self._lost: tuple[type[Exception], ...] = ()
        self._ray: Any = None
        self._serve: Any = None

    def open(self) -> None:
        """See `Line.open`."""
        ray, serve = self._import()
        try:
            # Ray's handler writes a stack to the log when the process is told to end.
            with kept_signal(signal.SIGTERM):
                self._start(ray)
            from ray.exceptions import RayError
            from ray.serve.config import ProxyLocation, RequestRouterConfig
            from ray.serve.exceptions import RayServeException
            from ray.serve.schema import LoggingConfig

            self._lost = (RayError, RayServeException)
            # The door is ours: Ray Serve's own is not opened.
            quiet = LoggingConfig(log_level="WARNING", enable_access_log=False)
            serve.start(proxy_location=ProxyLocation.Disabled, logging_config=quiet)
            deployment = serve.deployment(
                ServedReplica,
                name="model",
                num_replicas=self._replicas,
                max_ongoing_requests=_AT_ONCE,
                max_constructor_retry_count=2,
                ray_actor_options={"num_cpus": 1, "num_gpus": 1 if self._opening.device.startswith("cuda") else 0},
                health_check_period_s=2,
                health_check_timeout_s=30,
                graceful_shutdown_timeout_s=2,
                graceful_shutdown_wait_loop_s=0.1,
                request_router_config=RequestRouterConfig.model_validate({"request_router_class": _ROUTER}),
                logging_config=quiet,
            )
            self._handle = serve.run(deployment.bind(asdict(self._opening)), name=self._name, route_prefix=None)
        except Exception as error:
            raise ReplicasError(f"Ray could not start the replicas: {_reason(error)}") from error

    async def ask(self, session: str, call: str, requests: Sequence[Data]) -> AsyncGenerator[Sequence[Message]]:
        """See `Line.ask`."""
        if len(requests) == 1 and not requests[0].get("record_canvases"):
            # One message is all that comes: a stream would cost as much again.
            answer = self._to("answer_one", session).remote(requests[0])
            try:
                with self._losing():
                    message = await answer
            finally:
                answer.cancel()
            yield [message]
            return
        answers = self._to("answer", session, stream=True).remote(call, list(requests))
        try:
            while True:
                with self._losing():
                    try:
                        messages = await anext(answers)
                    except StopAsyncIteration:
                        return
                yield messages
        finally:
            answers.cancel()

    async def drop(self, session: str, call: str, at: int) -> None:
        """See `Line.drop`."""
        with contextlib.suppress(*self._lost):
            await self._to("drop", session).remote(call, at)

    async def look(self) -> Sequence[ReplicaLook]:
        """See `Line.look`."""
        with self._losing():
            found = await self._handle.broadcast("about").results_async(timeout_s=_LOOK_SECONDS, return_exceptions=True)
        return [ReplicaLook(**each) for each in found if isinstance(each, Mapping)]

    def close(self) -> None:
        """See `Line.close`."""
        # Where Ray has not started, asking Ray Serve to end would start another.
        if self._ray is not None and self._ray.is_initialized():
            with contextlib.suppress(Exception):
                if self._address is None:
                    self._serve.shutdown()
                else:
                    self._serve.delete(self._name)
            with contextlib.suppress(Exception):
                self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _to(self, method: str, session: str, *, stream: bool = False) -> Any:
        named = {"session_id": session} if session else {}
        return self._handle.options(method_name=method, stream=stream, **named)

    @contextlib.contextmanager
    def _losing(self) -> Iterator[None]:
        """Whatever Ray raises means that no answer comes: the replica itself says what its engine does."""
        try:
            yield
        except self._lost:
            raise LineLostError from None

    def _import(self) -> tuple[Any, Any]:
        for name, value in {**_SETTINGS, **({} if self._address else _ALONE)}.items():
            os.environ.setdefault(name, value)
        if self._address is None and os.environ["RAY_AUTH_MODE"] == "token":
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        try:
            with warnings.catch_warnings():
                # Of libraries that Ray uses in older ways.
                warnings.simplefilter("ignore")
                import ray
                from ray import serve
        except ImportError as error:
            raise ReplicasError("replicas need Ray Serve: pip install 'calomel[cluster]'") from error
        for name in ("ray", "ray.serve", "ray._private.worker"):
            logging.getLogger(name).setLevel(logging.ERROR)
        self._ray, self._serve = ray, serve
        return ray, serve

    def _start(self, ray: Any) -> None:
        if self._address is not None:
            ray.init(address=self._address, namespace=self._name, log_to_driver=False, configure_logging=False)
            return
        # Ray opens its own folder to everybody; so it lies in one that is the user's alone. The path of a socket in it
        # must be short.
        self._folder = Path(tempfile.mkdtemp(prefix="calomel-", dir="/tmp" if Path("/tmp").is_dir() else None))  # noqa: S108
        for left in range(_STARTS - 1, -1, -1):
            try:
                ray.init(
                    address="local",
                    namespace=self._name,
                    num_cpus=max(self._replicas, os.cpu_count() or 1),
                    include_dashboard=False,
                    log_to_driver=False,
                    configure_logging=False,
                    object_store_memory=_OBJECT_STORE,
                    _temp_dir=str(self._folder / "ray"),
                )
            except Exception:
                ray.shutdown()
                if not left:
                    raise
            else:
                return


def _reason(error: Exception) -> str:
    """The last line of what is often a whole page."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__

"""Several processes with the model: Ray Serve starts them, replaces lost ones, and routes requests to them.

Each replica is the whole application with its own model; the server's own process stays the door, and forwards
requests (`calomel.server.forwarding`). This module imports Ray, so only a server with replicas imports it, after
`turn_off_libraries`, which tells Ray to report nothing and to listen on this machine only.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import secrets
import signal
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import ray
from ray import serve
from ray.exceptions import RayError
from ray.serve.config import ProxyLocation, RequestRouterConfig
from ray.serve.exceptions import RayServeException
from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.schema import LoggingConfig
from starlette.types import Message, Scope

from calomel.server.app import create_app
from calomel.server.errors import ReplicaLostError, StartError
from calomel.server.forwarding import answers
from calomel.server.settings import ServerSettings
from calomel.server.tokens import Tokens
from calomel.storage.system import processors
from calomel.weights import nano_path

if TYPE_CHECKING:
    from calomel.suggest.filler import Filler

_log = logging.getLogger("calomel.server")

_NAME: Final = "calomel"
_LOST: Final = (RayError, RayServeException)
_LOOK_SECONDS: Final = 1.0
_ASK_ALL_SECONDS: Final = 5.0
# The application has its own queue.
_AT_ONCE: Final = 100_000
# Resident memory of Ray's own processes on Linux (`ps`, Ray 2.60).
RAY_BYTES: Final = 900 * 1024**2
# Ray's minimum: messages go from process to process without it.
_OBJECT_STORE: Final = 80 * 1024**2
# Ray gives its own processes half a minute to start, which is not always enough on a busy machine.
_STARTS: Final = 5


class SessionRouter(ConsistentHashRouter):  # type: ignore[misc]  # Ray is not checked
    """A ring of replicas, which are not asked how busy they are.

    Ray Serve's own router probes a replica before each request, and sends nothing while a busy one does not answer in
    time: on an overloaded machine, requests of a lost replica were found waiting for minutes. Here a replica accepts
    every request, and says itself when it has too much to do.
    """

    async def _select_from_candidate_replicas(self, candidates: Sequence[Any], backoff_index: int) -> Any:
        """The first one: they are in the order of the ring."""
        del backoff_index
        return candidates[0] if candidates else None


class Replica:
    """The application, in the process that Ray Serve made for it.

    Args:
        settings: of the server.
        tokens: the valid ones, by name; None admits everyone.
        open_model: opens the model.
    """

    async def __init__(  # type: ignore[misc]  # Ray Serve awaits it
        self,
        settings: ServerSettings,
        tokens: Mapping[str, str] | None,
        open_model: Callable[[ServerSettings], Filler],
    ) -> None:
        _listen_here()
        self.name: str = serve.get_replica_context().replica_id.unique_id
        opened = await asyncio.to_thread(open_model, settings)
        self._app = create_app(
            settings,
            lambda: opened,
            tokens=None if tokens is None else Tokens(tokens),
        )
        self._loader = self._app.state.door.loader
        self._lifespan = AsyncExitStack()
        await self._lifespan.enter_async_context(self._app.router.lifespan_context(self._app))
        while self._loader.state == "loading":  # noqa: ASYNC110 (its thread sets no event)
            await asyncio.sleep(_LOOK_SECONDS / 10)

    async def answer(self, scope: Scope, body: bytes) -> AsyncGenerator[Sequence[Message]]:
        """See `Replicas.ask`."""
        async for messages in answers(self._app, self.name, scope, body):
            yield messages

    async def answer_whole(self, scope: Scope, body: bytes) -> tuple[str, Sequence[Message]]:
        """The replica's name, and the whole response at once."""
        return self.name, [message async for messages in self.answer(scope, body) for message in messages]

    def check_health(self) -> None:
        """Ray Serve replaces a replica whose model has failed. Raises RuntimeError."""
        if self._loader.failure is not None:
            raise RuntimeError(self._loader.failure)


class RayReplicas:
    """Replicas on this server's own Ray, on this machine only; see `calomel.server.forwarding.Replicas`.

    Args:
        settings: of the server.
        tokens: the valid ones; None admits everyone.
        open_model: opens the model in a replica's process; a module-level function.

    Raises:
        StartError: they cannot be started.
    """

    def __init__(
        self, settings: ServerSettings, tokens: Tokens | None, open_model: Callable[[ServerSettings], Filler]
    ) -> None:
        self.wanted = settings.replicas or 1
        self.ready = 0
        each = fitted_to(settings)
        allowed = None if tokens is None else dict(tokens.by_name)
        self._ended = threading.Event()
        opened: Future[Any] = Future()
        # Ray's processes end with the thread that started them, so one thread starts, watches and ends them.
        self._thread = threading.Thread(
            target=self._keep, args=(opened, each, allowed, open_model), name="calomel-ray", daemon=True
        )
        self._thread.start()
        try:
            self._handle = opened.result()
        except Exception as error:
            self._thread.join()
            raise StartError(f"Ray could not start the replicas: {_reason(error)}") from error

    async def ask(self, session: str, scope: Scope, body: bytes) -> AsyncGenerator[Sequence[Message]]:
        """See `Replicas.ask`."""
        answer = self._handle.options(method_name="answer", stream=True, session_id=session).remote(scope, body)
        try:
            async for messages in answer:
                yield messages
        except _LOST:
            raise ReplicaLostError from None
        finally:
            answer.cancel()

    async def ask_all(self, scope: Scope, body: bytes) -> Mapping[str, Sequence[Message]]:
        """See `Replicas.ask_all`."""
        asked = self._handle.broadcast("answer_whole", scope, body)
        try:
            found = await asked.results_async(timeout_s=_ASK_ALL_SECONDS, return_exceptions=True)
        except (*_LOST, TimeoutError):
            raise ReplicaLostError from None
        answered = dict(each for each in found if not isinstance(each, BaseException))
        if not answered:
            raise ReplicaLostError
        return answered

    def close(self) -> None:
        """End the replicas, and Ray."""
        self._ended.set()
        self._thread.join()

    def _keep(self, opened: Future[Any], *bound: Any) -> None:
        # Ray opens its folder to all users; so it is inside one that only the user can read. The path of a socket in it
        # must be short.
        with tempfile.TemporaryDirectory(prefix="calomel-", dir="/tmp", ignore_cleanup_errors=True) as folder:
            try:
                # Ray's handler writes a stack trace to the log when the process is told to end.
                with _kept_handler(signal.SIGTERM):
                    self._start_ray(folder)
                opened.set_result(self._start_serve(bound))
                while not self._ended.wait(_LOOK_SECONDS):
                    self._look()
            except Exception as error:
                if opened.done():
                    raise
                opened.set_exception(error)
            finally:
                ray.shutdown()

    def _start_ray(self, folder: str) -> None:
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        for name in ("ray", "ray.serve", "ray._private.worker"):
            logging.getLogger(name).setLevel(logging.ERROR)
        for left in range(_STARTS - 1, -1, -1):
            try:
                ray.init(
                    address="local",
                    namespace=_NAME,
                    num_cpus=max(self.wanted, os.cpu_count() or 1),
                    include_dashboard=False,
                    log_to_driver=False,
                    configure_logging=False,
                    object_store_memory=_OBJECT_STORE,
                    _temp_dir=f"{folder}/ray",
                )
            except Exception:
                ray.shutdown()
                if not left:
                    raise
            else:
                return

    def _start_serve(self, bound: Sequence[Any]) -> Any:
        quiet = LoggingConfig(log_level="WARNING", enable_access_log=False)
        # The door is ours: Ray Serve's own is not opened.
        serve.start(proxy_location=ProxyLocation.Disabled, logging_config=quiet)
        on_gpu = bound[0].device.startswith("cuda")
        router = RequestRouterConfig(request_router_class=f"{__name__}:{SessionRouter.__name__}")
        deployment = serve.deployment(
            Replica,
            name=_NAME,
            num_replicas=self.wanted,
            max_ongoing_requests=_AT_ONCE,
            max_constructor_retry_count=2,
            ray_actor_options={"num_cpus": 1, "num_gpus": 1 if on_gpu else 0},
            health_check_period_s=2,
            health_check_timeout_s=30,
            request_router_config=router,
            logging_config=quiet,
        )
        try:
            handle = serve.run(deployment.bind(*bound), name=_NAME, route_prefix=None)
        except RuntimeError as error:
            # The error of the last replica that was tried.
            raise RuntimeError(serve.status().applications[_NAME].deployments[_NAME].message) from error
        self.ready = self.wanted
        return handle

    def _look(self) -> None:
        with contextlib.suppress(*_LOST):
            states = serve.status().applications[_NAME].deployments[_NAME].replica_states
            ready = states.get("RUNNING", 0)
            if ready != self.ready:
                level = logging.INFO if ready == self.wanted else logging.WARNING
                _log.log(level, "%d of %d replicas are ready", ready, self.wanted)
            self.ready = ready


def fitted_to(settings: ServerSettings) -> ServerSettings:
    """The settings of each replica: its share of the processors, and contexts that fit into its share of the memory.

    Raises:
        StartError: this machine has no room for this many replicas.
        CheckpointError: the model cannot be opened.
    """
    from calomel.families.family import OpenOptions  # imports torch
    from calomel.families.loading import dtype_of
    from calomel.families.memory import free_bytes, program_bytes
    from calomel.families.plan import OutOfMemoryRefusedError, plan_of

    count = settings.replicas or 1
    each = {"threads": settings.threads or max(1, processors() // count)}
    if settings.device.startswith("cuda"):
        from torch import cuda

        if cuda.device_count() < count:
            raise StartError(f"{count} replicas need {count} GPUs, and this machine has {cuda.device_count()}")
        # Ray gives each replica a GPU of its own, which is the first it sees.
        return settings.model_copy(update={**each, "device": "cuda"})
    folder, device = settings.model or nano_path(), settings.device
    free = free_bytes(device)
    share = (free - RAY_BYTES) // count - program_bytes(device, dtype_of(None, device))
    options = OpenOptions(
        device=device,
        cache_tokens=settings.cache_tokens,
        quantize=settings.quantize,
        max_batch=settings.max_batch,
        memory_limit=max(0, share),
    )
    try:
        found = plan_of(folder, options).options
    except OutOfMemoryRefusedError as error:
        raise StartError(f"{count} replicas share the free memory; use fewer replicas: {error}") from error
    return settings.model_copy(update={**each, "cache_tokens": found.cached, "max_batch": found.batch})


def _listen_here() -> None:
    """Have Ray Serve's own port listen on 127.0.0.1; called in a replica's process before it is opened.

    Ray Serve 2.60 opens it on all addresses of the machine, requires no token there, and deserializes all input.
    Nothing uses it here. Raises AttributeError when Ray Serve has changed: then no replica is started.
    """
    replica: Any = import_module("ray.serve._private.replica")
    add = replica.add_port_to_grpc_server

    def add_here(server: Any, address: str) -> int:
        return int(add(server, address.replace("[::]", "127.0.0.1")))

    replica.add_port_to_grpc_server = add_here


@contextlib.contextmanager
def _kept_handler(number: int) -> Iterator[None]:
    """Restore the current handler of signal `number` afterwards: Python can do that only in its main thread."""
    library: Any = ctypes.CDLL(None)
    kept = ctypes.create_string_buffer(1024)  # more than a `struct sigaction` of any system takes
    library.sigaction(number, None, kept)
    try:
        yield
    finally:
        library.sigaction(number, kept, None)


def _reason(error: Exception) -> str:
    """The last line of what is often a whole page."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__

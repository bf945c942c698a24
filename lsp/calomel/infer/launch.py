"""Finds the server for an editor window: the configured one, else a running one, else one that is started now."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from calomel.infer import llama_cpp, runtime_file
from calomel.infer.completer import PROTOCOL_VERSION, Completer, CompleterError, version
from calomel.infer.door import Door, OpenDoor
from calomel.infer.extras import NO_MODEL, SET_UPSTREAM, has_engine, without_engine
from calomel.infer.remote import Endpoint, HttpCompleter, problem_of
from calomel.infer.runtime_file import RuntimeFileError, ServerRecord, check_folder
from calomel.storage import SecretFileError, only_one, open_private, open_regular, process_of, psutil, read_secret
from calomel.weights import gguf_in, nano_path, weights_id
from calomel.weights.folders import SHIPPED, ModelNameError, cached, models_folder, named, why_none
from calomel.weights.gguf import GgufError, gguf_of
from calomel.workspace.settings import BackendSettings, OtherServer

if TYPE_CHECKING:
    from calomel.infer.upstream.completer import UpstreamCompleter

LOG: Final = logging.getLogger(__name__)

# The server publishes its address before it loads the model; one that takes longer than this hangs.
START_SECONDS: Final = 60.0
# llama.cpp's is published once its model is there.
_LOADING_SECONDS: Final = 600.0
_CACHE_TOKENS: Final = 65_536
_POLL: Final = 0.02
# A server that closes its connections may take so long to end.
_ENDS_SECONDS: Final = 3.0
# How the command line begins to say what is wrong.
_SAID: Final = "error: "
# Servers that this process started, and where each begins in the log, by their runtime files.
_started: Final[dict[Path, tuple[subprocess.Popen[bytes], int]]] = {}
_LOG_BYTES: Final = 1024 * 1024
_TAIL: Final = 2000
# A server that is only busy answers sooner.
_HUNG_SECONDS: Final = 8.0
_CHUNK: Final = 16_384
# The environment variables that a server needs; settings and tokens of other programs are not passed on.
_KEPT: Final = frozenset(
    {"HOME", "PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME", "VIRTUAL_ENV", "LD_LIBRARY_PATH",
     "PYTHONPATH", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_CACHE_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}
)  # fmt: skip
_KEY: Final = "CALOMEL_UPSTREAM_KEY"
_KEPT_PREFIXES: Final = ("XDG_", "CUDA_", "NVIDIA_", "HSA_", "ROCR_", "LC_", "GGML_", "VK_")


@dataclass(frozen=True, slots=True)
class Wish:
    """The requested server.

    Attributes:
        model: checkpoint folder; None for the shipped one.
        weights: id of that folder's weights.
        path: its runtime file.
        options: more options of its program.
        llama: a GGUF file that llama.cpp opens; else Calomel's own engine has the model.
    """

    model: Path | None
    weights: str
    device: str
    idle_minutes: float
    path: Path
    options: tuple[str, ...] = ()
    llama: Path | None = None


def start_server(wish: Wish) -> ServerRecord:
    """Start a server, unless somebody else just did; returns when it listens (the model may still load). Blocks.

    Raises CompleterError if the engine is not installed, and with the last line of the server's log if it does not
    start.
    """
    if wish.llama is None and not has_engine():
        raise CompleterError("failed", f"{NO_MODEL}: {without_engine(SET_UPSTREAM)}")
    seconds = START_SECONDS if wish.llama is None else _LOADING_SECONDS
    until = time.monotonic() + seconds
    with _lock(wish.path, until):
        record = running(wish)
        if record is not None:
            return record
        _end_hung(wish.path)
        log = log_path()
        process, began = _spawn(wish, log), _size(log)
        _started[wish.path] = (process, began)
        # Reaps it when it exits, so that it is not taken for a running one.
        threading.Thread(target=process.wait, name="calomel-engine", daemon=True).start()
        while time.monotonic() < until:
            record = running(wish)
            if record is not None:
                return record
            if process.poll() is not None:
                raise CompleterError("failed", f"the model's server stopped while starting: {_last_words(log, began)}")
            time.sleep(_POLL)
        process.terminate()
    raise CompleterError("failed", f"the model's server did not start within {seconds:.0f} seconds; see {log}")


def log_path() -> Path:
    """Where the shared server writes its log: counts and times, no text."""
    import platformdirs

    return platformdirs.user_state_path("calomel", appauthor=False) / "engine.log"


def environment(outer: dict[str, str]) -> dict[str, str]:
    """The server's part of the environment."""
    kept = {name: value for name, value in outer.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    # No spinning threads, which would slow down the editor and everything else.
    return {**kept, "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "PYTHONUNBUFFERED": "1"}


def _spawn(wish: Wish, log: Path) -> subprocess.Popen[bytes]:
    listens = runtime_file.socket_path(wish.path)
    if listens is not None:
        # What a killed server left, or one whose runtime file is lost: nobody would find it again.
        with contextlib.suppress(OSError):
            listens.unlink()
    command = [sys.executable, "-m", *_program(wish, listens), "--device", wish.device]
    command += ["--runtime-file", str(wish.path), "--idle-minutes", str(wish.idle_minutes), *wish.options]
    try:
        with _open_log(log) as errors:
            # Its own session, so that it outlives this window. Its standard output has the token: discard it.
            return subprocess.Popen(  # noqa: S603 (our own program)
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment(dict(os.environ)),
                cwd="/",
                start_new_session=True,
            )
    except OSError as error:
        raise CompleterError("failed", f"cannot start the model's server: {error.strerror}") from None


def _program(wish: Wish, listens: Path | None) -> list[str]:
    if wish.llama is not None:
        return ["calomel.infer.llama_cpp", str(wish.llama), "--weights", wish.weights]
    # The user's settings for their own server (address, token, access) are not for this one.
    words = ["calomel.cli", "serve", "--no-config", "--fresh-token"]
    words += ["--port", "0"] if listens is None else ["--socket", str(listens)]
    if wish.device.startswith("cuda"):
        # Contexts of one person; a team's server keeps more. The default for a CPU is one person's, and what
        # `calomel doctor` reports.
        words += ["--cache-tokens", str(_CACHE_TOKENS)]
    return words if wish.model is None else [*words, "--model", str(wish.model)]


@contextmanager
def _open_log(path: Path) -> Iterator[int]:
    """The log, or the null device if it cannot be written: a server without a log is better than none."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except OSError as error:
        LOG.warning("the model's server has no log: cannot write %s (%s)", path, error.strerror)
        descriptor = open_private(os.devnull, os.O_WRONLY)
    try:
        if os.fstat(descriptor).st_size > _LOG_BYTES:
            os.ftruncate(descriptor, 0)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _lock(path: Path, until: float) -> Iterator[None]:
    """One starter at a time."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_folder(path.parent)
    except RuntimeFileError as error:
        raise CompleterError("failed", str(error)) from None
    except OSError as error:
        raise CompleterError("failed", f"cannot write to {path.parent}: {error.strerror}") from None
    with contextlib.ExitStack() as held:
        try:
            ours = held.enter_context(only_one(path.with_suffix(".lock"), max(0.0, until - time.monotonic())))
        except OSError as error:
            raise CompleterError("failed", f"cannot write to {path.parent}: {error.strerror}") from None
        if not ours:
            raise CompleterError(
                "timeout", "another window is still starting the server: close it, then restart Calomel here"
            )
        yield


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _last_words(log: Path, began: int) -> str:
    """Why the server that began to write there ended; it contains no text of the user. Others write there, too."""
    try:
        with open_regular(log) as file:
            file.seek(max(began, _size(log) - _TAIL))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return f"nothing in {log}"
    words = [line.removeprefix(_SAID) for line in lines if line.startswith(_SAID)]
    return (words or lines or [f"nothing in {log}"])[-1]


def _why_ended(wish: Wish) -> str | None:
    """Why the server that this process started for this wish ended; None if it did not. Blocks for moments."""
    process, began = _started.get(wish.path, (None, 0))
    try:
        return None if process is None or process.wait(_ENDS_SECONDS) is None else _last_words(log_path(), began)
    except subprocess.TimeoutExpired:
        return None


_NAME_CHARACTERS: Final = 16


async def connect(settings: BackendSettings, folders: Sequence[Path] = (), door: Door | None = None) -> Completer:
    """The model of these settings: behind the upstream, at the server of `url`, or at one that is found or started.

    Args:
        settings: which model; it may still load.
        folders: of the workspace; a server only learns a hash of them, see `session_name`.
        door: by which text leaves for anything that this Calomel did not start; None for one that knows no files.

    Raises CompleterError for settings that cannot work, such as an invalid address or a missing token file, and if no
    server can be started.
    """
    door = door or Door()
    if settings.edit_model is not None and settings.edit_upstream is not None:
        raise CompleterError("refused", "backend.edit_model and backend.edit_upstream are both set: remove one of them")
    if settings.edit_upstream_model is not None and settings.edit_upstream is None and settings.upstream is None:
        message = "backend.edit_upstream_model needs a server: set backend.edit_upstream, or backend.edit_model instead"
        raise CompleterError("refused", message)
    _check_address(settings)
    if settings.url is not None:
        endpoint = Endpoint(settings.url.rstrip("/"), _token(settings))
        return HttpCompleter(endpoint, session_name(folders), door=door)
    if settings.upstream is not None:
        return await asyncio.to_thread(_upstream, settings.upstream, settings, door)

    wish = await asyncio.to_thread(_wish, settings)

    async def ended() -> str | None:
        return await asyncio.to_thread(_why_ended, wish)

    # What asks is imported while a server may have to start.
    record, _ = await asyncio.gather(
        asyncio.to_thread(_found_or_started, wish), asyncio.to_thread(import_module, "httpx")
    )
    if wish.llama is not None:
        return _inside(record, settings)
    return HttpCompleter(_endpoint(wish, record), session_name(folders), ended, door)


def _check_address(settings: BackendSettings) -> None:
    """Raises CompleterError if nothing may be sent to the address that the settings name."""
    problem = None
    if settings.url is not None:
        problem = problem_of(settings.url, "backend.url", "http://127.0.0.1:8017", settings.allow_http, "backend")
    elif settings.upstream is not None:
        from calomel.infer.upstream import exchange

        problem = exchange.problem_of(settings.upstream, settings.allow_http, "backend")
        problem = problem and f"backend.{problem}"
    if problem is not None:
        raise CompleterError("refused", problem)


def open_llama(settings: BackendSettings) -> UpstreamCompleter:
    """The model of these settings in llama.cpp (see `llama_cpp.opens`), found or started. Blocks.

    Raises CompleterError.
    """
    return _inside(_found_or_started(_wish(settings)), settings)


def _inside(record: ServerRecord, settings: BackendSettings) -> UpstreamCompleter:
    from calomel.infer.upstream.completer import UpstreamCompleter
    from calomel.infer.upstream.exchange import Target

    fim, edit = settings.upstream_fim, settings.upstream_edit
    return UpstreamCompleter(Target(record.url, "llama.cpp", None, record.token, fim, edit), OpenDoor())


def _upstream(url: str, settings: BackendSettings, door: Door) -> Completer:
    """The client of the server with the model: nothing is started, nobody stands between it and the editor."""
    from calomel.infer.upstream.completer import UpstreamCompleter
    from calomel.infer.upstream.exchange import target_of

    if settings.model is not None:
        raise CompleterError("refused", "backend.model and backend.upstream are both set: remove one of them")
    key = None if isinstance(settings, OtherServer) else os.environ.get(_KEY)
    return UpstreamCompleter(target_of(url, settings, key), door)


def session_name(folders: Sequence[Path]) -> str:
    """A workspace's name for the server: the same for the same folders, and not reversible; empty for none."""
    if not folders:
        return ""
    paths = "\0".join(sorted(str(folder) for folder in folders))
    return hashlib.sha256(paths.encode("utf-8", "surrogatepass")).hexdigest()[:_NAME_CHARACTERS]


def find_or_start(settings: BackendSettings) -> Endpoint:
    """A running server of this user, version, model and device; else one that is started now. Blocks.

    Raises CompleterError with the reason if none can be started.
    """
    wish = _wish(settings)
    return _endpoint(wish, _found_or_started(wish))


def find(settings: BackendSettings) -> ServerRecord | None:
    """A running server of this user, version, model and device; None if there is none. Blocks.

    Raises CompleterError if the model cannot be found.
    """
    return running(_wish(settings))


def _found_or_started(wish: Wish) -> ServerRecord:
    return running(wish) or start_server(wish)


def _endpoint(wish: Wish, record: ServerRecord) -> Endpoint:
    return Endpoint(record.url, record.token, own=runtime_file.holds(wish.path, record))


def _wish(settings: BackendSettings) -> Wish:
    model = model_folder(settings.model)
    folder = model or nano_path()
    file = gguf_in(folder)
    if not (folder / "config.json").is_file() and file is None:
        # The server would say so, too, but seconds later and in its log.
        raise CompleterError("failed", why_none(folder))
    try:
        weights = weights_id(folder)
    except OSError as error:
        raise CompleterError("failed", f"cannot read the model folder {folder} ({error.strerror})") from None
    llama = file if llama_cpp.opens(folder) else None
    options: tuple[str, ...] = () if settings.threads is None else ("--threads", str(settings.threads))
    if settings.quantize is not None and llama is None:
        options += ("--quantize", settings.quantize)
    path = shared_path("engine" if llama is None else "llama", weights, settings.device, *options)
    return Wish(model, weights, settings.device, settings.idle_minutes, path, options, llama)


def model_folder(model: Path | None) -> Path | None:
    """The folder of a model that an editor's settings name, or give as a whole path; None for the shipped one.

    Raises CompleterError.
    """
    if model is None or str(model) == SHIPPED:
        return None
    if model.is_absolute():
        return model
    try:
        folder = named(str(model).replace("/", "--")) or cached(str(model)) or gguf_of(str(model))
    except (ModelNameError, GgufError) as error:
        raise CompleterError("failed", str(error)) from None
    if folder is None:
        message = f"found no model {model} in {models_folder()}: see `calomel models list`"
        raise CompleterError("failed", message)
    return folder


def shared_path(program: str, weights: str, device: str, *options: str) -> Path:
    """The runtime file of the shared server; one per version, model, device and more, so that none replaces another."""
    key = "\0".join((str(PROTOCOL_VERSION), version(), weights, device, *options))
    name = hashlib.sha256(key.encode()).hexdigest()[:_NAME_CHARACTERS]
    return runtime_file.runtime_folder() / f"{program}-{name}.json"


def running(wish: Wish) -> ServerRecord | None:
    """A running server that fits `wish`: the shared one, or one that the user started."""
    for path in (wish.path, runtime_file.default_path()) if wish.llama is None else (wish.path,):
        # Starting a server reports a file that is not trusted if it is in the way.
        record = runtime_file.live(path)
        if record is not None and _fits(record, wish) and answers(record, llama=wish.llama is not None):
            return record
    return None


def answers(record: ServerRecord, *, llama: bool = False) -> bool:
    """Whether it answers and knows the token; one that hangs, or has left its port to another or to nobody, is none.

    llama.cpp can prove nothing; its socket is in a folder of the user's own.
    """
    from calomel.infer.proof import Challenge, NotProvenError  # not needed where no server runs yet

    if llama:
        return bool(llama_cpp.get(record.url, "/health", seconds=_HUNG_SECONDS))
    try:
        with runtime_file.connection(record.url, _HUNG_SECONDS) as talk:
            challenge = Challenge(record.token or "", "localhost")
            talk.sendall(challenge.request)
            while not challenge.proven(talk.recv(_CHUNK)):
                pass
    except (OSError, ValueError, NotProvenError) as error:
        LOG.warning("the server with process id %d does not answer (%s)", record.pid, type(error).__name__)
        return False
    return True


def _end_hung(path: Path) -> None:
    """End the shared server at `path`, which an editor started and which does not answer: it would keep its memory."""
    with contextlib.suppress(RuntimeFileError, OSError, ValueError, psutil().Error):
        record = runtime_file.read(path)
        # Without a start time, the id may be that of another process by now.
        process = process_of(record.pid, record.started) if record is not None and record.started else None
        if record is None or process is None:
            return
        # One that ends in order has left its address, and finishes what it has begun.
        runtime_file.connection(record.url, 1.0).close()
        process.kill()


def _fits(record: ServerRecord, wish: Wish) -> bool:
    mine = (PROTOCOL_VERSION, version(), wish.weights, wish.device)
    # The certificate of a user's own server is rarely one that programs trust.
    plain = not record.url.startswith("https:")
    return plain and (record.protocol, record.version, record.weights, record.device) == mine


def _token(settings: BackendSettings) -> str | None:
    if settings.token_file is None:
        return settings.token
    try:
        return read_secret(settings.token_file, "backend.token_file").strip()
    except FileNotFoundError:
        raise CompleterError("refused", f"backend.token_file {settings.token_file} does not exist") from None
    except SecretFileError as error:
        raise CompleterError("refused", str(error)) from None

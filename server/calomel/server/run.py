"""Starts the server: `calomel serve`."""

from __future__ import annotations

import contextlib
import errno
import gc
import logging
import os
import socket
import ssl
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import uvicorn
from fastapi import FastAPI

from calomel.infer import runtime_file
from calomel.infer.completer import PROTOCOL_VERSION, Answerer, CompleterError, version
from calomel.infer.extras import NO_MODEL, has_engine, without_engine
from calomel.infer.remote import is_loopback
from calomel.infer.runtime_file import UNIX, RuntimeFileError, ServerRecord, check_folder
from calomel.prompts.parts import PromptParts
from calomel.server import tokens
from calomel.server.app import create_app
from calomel.server.app_state import AppState
from calomel.server.connection import timed
from calomel.server.errors import StartError
from calomel.server.lifetime import DrainingServer, ended_by_signals, waiting_for_no_model
from calomel.server.logs import log_to, say
from calomel.server.settings import SHORTEST_TOKEN, TOO_SHORT, ServeSettings
from calomel.server.tokens import EDITORS, Tokens
from calomel.server.upstream import upstream_of
from calomel.storage import start_of
from calomel.storage.failures import dead_threads_logged
from calomel.weights import nano_path, weights_id
from calomel.weights.folders import folder_of
from calomel.weights.gguf import FASTER_ON_A_CPU

if TYPE_CHECKING:
    from calomel.infer.filler import Filler
    from calomel.infer.upstream.completer import UpstreamCompleter

_log: Final = logging.getLogger("calomel.server")

# Headers are kept in memory until they are complete; 64 KiB is eight times what browsers send at most.
_MAX_HEADER_BYTES: Final = 64 * 1024
# An editor asks again within seconds while its user types; keeping idle sockets longer is useless.
_KEEP_ALIVE_SECONDS: Final = 60
_BACKLOG: Final = 128
_KNOCK_SECONDS: Final = 1.0
# So many turns of the event loop pass before a connection could lose its place; after five, its request has been read.
_TURNS: Final = 16
_WARM_UP: Final = "def add(a, b):\n    return "


def serve(settings: ServeSettings, out: TextIO = sys.stdout) -> None:
    """Serve until the process is told to stop (SIGINT, SIGTERM).

    The address, and where the token is, are written to `out` once; a new token is shown only on a terminal, since
    other outputs are kept in logs. Both are in the runtime file, too.

    Raises:
        ModelNameError: no model has the name that was given.
        StartError: the address is taken, a file cannot be used, the model cannot be loaded, or its engine failed.
    """
    turn_off_libraries()
    log_to(sys.stderr, settings.log_level)
    settings = replace(settings, model=folder_of(settings.model))
    allowed, editors, words = allowed_tokens(settings, terminal=out.isatty())
    app = build_app(settings, allowed)
    idle_seconds = None if settings.idle_minutes is None else settings.idle_minutes * 60
    app_state: AppState = app.state.app_state
    server = DrainingServer(config(settings, app), app_state.admission, app_state.loader, idle_seconds)
    with waiting_for_no_model(app_state.loader), _listening(settings) as listener:
        url = address(listener, secure=settings.tls_cert is not None)
        path = settings.runtime_file or _runtime_path()
        with ended_by_signals(server), _published(path, _record(settings, url, editors)):
            if settings.offline:
                refuse_connections()
            say(out, f"Calomel listens on {url}")
            say(out, words.format(runtime_file=path))
            with dead_threads_logged(_log):
                server.run(sockets=[listener])
    if app_state.loader.failure is not None:
        raise StartError(app_state.loader.failure)


_NAME_UPSTREAM: Final = "name a server that has one with --upstream"


def build_app(settings: ServeSettings, allowed: Tokens) -> FastAPI:
    """The application, which opens the model when it starts. Raises StartError."""
    upstream = upstream_of(settings)
    if upstream is None and not has_engine():
        raise StartError(f"{NO_MODEL}: {without_engine(_NAME_UPSTREAM)}")

    def opened() -> Answerer:
        # Imports create no garbage worth a search: without any, PyTorch is imported in nine tenths of the time.
        gc.disable()
        try:
            return open_model(settings) if upstream is None else open_upstream(upstream)
        finally:
            gc.enable()

    return create_app(settings, opened, allowed, describing=None if upstream is None else lambda: upstream.model)


def open_model(settings: ServeSettings) -> Filler:
    """Open the model in this process, and run its first forwards, which are slow: better now than at a keystroke."""
    from calomel.families.family import OpenOptions  # these import torch
    from calomel.infer.completer import FillRequest
    from calomel.infer.in_process import open_folder

    options = OpenOptions(
        device=settings.device,
        threads=settings.threads,
        cache_tokens=settings.cache_tokens,
        quantize=settings.quantize,
        max_batch=settings.max_batch,
        exact=settings.exact,
    )
    filler = open_folder(settings.model or nano_path(), options)
    if settings.device == "cpu" and filler.generation.policy.startswith("left_to_right"):
        _log.info("this model writes from left to right. %s", FASTER_ON_A_CPU)
    filler.fill(FillRequest("fill", PromptParts(prefix=_WARM_UP, suffix="\n"), max_tokens=8))
    # Garbage collection stops everything: it should not scan objects that live as long as the server.
    gc.collect()
    gc.freeze()
    _log.info("the model is ready")
    return filler


def open_upstream(upstream: UpstreamCompleter) -> UpstreamCompleter:
    """Ask the upstream server what it can do. It may start later; raises StartError for what waiting cannot fix."""
    try:
        upstream.look()
    except CompleterError as error:
        if error.code == "refused":
            raise StartError(str(error)) from None
        _log.warning("%s", error)
    else:
        _log.info("the model is ready")
    return upstream


@contextlib.contextmanager
def _listening(settings: ServeSettings) -> Iterator[socket.socket]:
    if settings.socket is None:
        with listen(settings.host, settings.port) as listener:
            yield listener
        return
    with listen_at(settings.socket) as listener:
        number = settings.socket.stat().st_ino
        try:
            yield listener
        finally:
            # Not that of a later server.
            with contextlib.suppress(OSError):
                if settings.socket.stat().st_ino == number:
                    settings.socket.unlink()


def listen_at(path: Path) -> socket.socket:
    """A listening Unix socket, for this user alone. Raises StartError when it cannot be made or somebody listens."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_folder(path.parent)
        if path.is_socket():
            with socket.socket(UNIX) as other:
                other.settimeout(_KNOCK_SECONDS)
                try:
                    other.connect(str(path))
                except (ConnectionRefusedError, FileNotFoundError):
                    path.unlink(missing_ok=True)  # its server was killed
                except TimeoutError:
                    pass
                else:
                    raise StartError(
                        f"cannot listen on {path}: a server that runs already has it; stop it, or choose another path"
                    )
        listener = socket.socket(UNIX)
        try:
            before = os.umask(0o177)
            try:
                listener.bind(str(path))
            finally:
                os.umask(before)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except RuntimeFileError as error:
        raise StartError(str(error)) from None
    except OSError as error:
        raise StartError(f"cannot listen on {path} ({error.strerror or error})") from None
    return listener


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises StartError when the address is taken or not on this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        if error.errno == errno.EADDRINUSE:
            why = "another program does; stop it, or choose another port, 0 for any"
        raise StartError(f"cannot listen on {host} port {port}: {why}") from error
    # Accepted connections inherit it; asyncio sets it only if the socket names its protocol. Without it, the body of
    # each response waits 40 ms for the acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address(listener: socket.socket, *, secure: bool = False) -> str:
    """The URL of a listening socket: `http://host:port`, or `unix:` and a path."""
    if listener.family not in {socket.AF_INET, socket.AF_INET6}:
        return f"unix:{listener.getsockname()}"
    host, port = listener.getsockname()[:2]
    scheme = "https" if secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def config(settings: ServeSettings, app: FastAPI) -> uvicorn.Config:
    """How uvicorn serves the application. Raises StartError for a certificate that cannot be used."""
    return uvicorn.Config(
        app,
        # h11, since httptools accepts headers of any size; h11 refuses them beyond the limit below.
        http=timed(settings.receive_seconds, settings.max_connections, tls_of(settings)),
        h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
        loop="asyncio",
        ws="none",
        lifespan="on",
        # The route logs one line per fill, with counts in place of the client's text.
        access_log=False,
        # The server's log is set up already.
        log_config=None,
        # The client's address is the socket's: no header may override it.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        # Accepted at a time. Who comes among more strangers than have a place would lose it before anybody has read
        # what they sent.
        backlog=max(1, settings.max_connections // _TURNS),
    )


def allowed_tokens(settings: ServeSettings, *, terminal: bool) -> tuple[Tokens, str | None, str]:
    """The valid tokens, the token for the user's own editors, and the message about it."""
    if settings.no_auth:
        token = tokens.new_token()  # by which editors know this server again
        words = "No token: any program on this machine can connect. Runtime file: {runtime_file}"
        return Tokens({EDITORS: token}), token, words
    if settings.token is not None:
        token = settings.token
        return Tokens({"": token}), token, "Runtime file: {runtime_file}"
    if settings.fresh_token:
        token = tokens.new_token()
        return Tokens({"": token}), token, "Token: in {runtime_file}"
    path = settings.token_file or tokens.default_path()
    allowed, made = tokens.read_or_make(path)
    reachable = settings.socket is None and not is_loopback(settings.host)
    if reachable and min(map(len, allowed.by_name.values())) < SHORTEST_TOKEN:
        raise StartError(f"{path}: {TOO_SHORT}")
    shown = str(path).replace("{", "{{").replace("}", "}}")
    only = allowed.by_name.get("") if len(allowed.by_name) == 1 else None
    if only is None:
        # None of the tokens is the user's own: their editors get one for this run.
        token = tokens.new_token()
        count = len(allowed.by_name)
        return Tokens({**allowed.by_name, EDITORS: token}), token, f"Tokens: {count} in {shown}"
    words = f"Token: {only} (kept in {shown})" if made and terminal else f"Token: in {shown}"
    return allowed, only, words


def tls_of(settings: ServeSettings) -> ssl.SSLContext | None:
    """What encrypts; None for plain HTTP. Raises StartError for an unusable certificate."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    for name, path in (("tls-cert", settings.tls_cert), ("tls-key", settings.tls_key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise StartError(f"{name}: cannot read {path} ({error.strerror})") from None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.tls_cert, settings.tls_key, password="")
    except ssl.SSLError as error:
        reason = error.reason or "not a PEM file"
        raise StartError(
            f"tls-cert {settings.tls_cert} and tls-key {settings.tls_key} do not match, are damaged, or need "
            f"a password ({reason})"
        ) from None
    return context


def _runtime_path() -> Path:
    try:
        return runtime_file.default_path()
    except OSError as error:
        raise StartError(f"no runtime folder ({error}): set runtime-file") from None


@contextlib.contextmanager
def _published(path: Path, record: ServerRecord) -> Iterator[None]:
    try:
        with runtime_file.published(path, record):
            yield
    except RuntimeFileError as error:
        raise StartError(str(error)) from error


def _record(settings: ServeSettings, url: str, token: str | None) -> ServerRecord:
    pid = os.getpid()
    try:
        weights = weights_id(settings.model or nano_path()) if settings.upstream is None else ""
    except OSError:
        # The loader reports what is wrong with the folder.
        weights = ""
    model = None if settings.model is None else str(settings.model.resolve())
    return ServerRecord(url, token, pid, start_of(pid), model, weights, settings.device, version(), PROTOCOL_VERSION)


# These libraries read them at import, so they are set before.
_SWITCHES: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    # Ray: no telemetry, every port on 127.0.0.1 (as on systems where it has no clusters), and a token.
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
}


class OfflineError(OSError):
    """Something in this process tried to reach another machine."""


def turn_off_libraries() -> None:
    """Tell libraries that could use the network not to: the server never asks them to."""
    os.environ.update(_SWITCHES)


def refuse_connections() -> None:
    """From now on, for the rest of the process, refuse every connection beyond loopback."""
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in {"socket.connect", "socket.sendto"}:
        address = arguments[1]
        # The address of a Unix socket is a path.
        if isinstance(address, tuple) and not is_loopback(str(address[0])):
            raise OfflineError("the server is offline: it does not connect to other machines")
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        host = arguments[0]
        name = host.decode("latin-1") if isinstance(host, bytes) else str(host or "localhost")
        if not _is_address(name) and not is_loopback(name):
            raise OfflineError("the server is offline: it does not look up names")


def _is_address(name: str) -> bool:
    """Whether it is an IP address, which needs no lookup."""
    import ipaddress

    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

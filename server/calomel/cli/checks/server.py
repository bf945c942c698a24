"""The server's side: settings, token, port, runtime files, limits of the system."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from calomel.cli.checks.finding import Finding, fail, ok, warn
from calomel.server import tokens
from calomel.server.errors import StartError
from calomel.server.layers import Layered
from calomel.server.settings import ServerSettings
from calomel.suggest import runtime_file
from calomel.suggest.loopback import is_loopback
from calomel.suggest.runtime_file import RuntimeFileError, ServerRecord
from calomel.weights import nano_path

_ANSWER_SECONDS: Final = 5.0
# Beside the connections: weights, logs, the event loop's own.
_OTHER_FILES: Final = 64


def check_server(layered: Layered) -> Iterator[Finding]:
    """Everything that a start needs, but for the model."""
    settings = layered.settings
    yield _settings(layered)
    yield _token(settings)
    yield _reach(settings)
    record, finding = _runtime_file(settings)
    yield finding
    yield from _shared()
    yield _port(settings, record)
    yield _files(settings)
    if settings.workspace is not None:
        yield _workspace(settings.workspace)
    if settings.replicas is not None:
        yield from _replicas(settings, settings.replicas, record)


def _settings(layered: Layered) -> Finding:
    if layered.path is None or not layered.path.exists():
        return ok("settings", f"no settings file ({layered.path}): defaults and CALOMEL_ variables")
    return ok("settings", str(layered.path))


def _token(settings: ServerSettings) -> Finding:
    if settings.no_auth:
        return warn("token", "no-auth: every program and user of this machine may ask", "drop no-auth")
    if settings.token is not None:
        return ok("token", "from the settings")
    path = settings.token_file or tokens.default_path()
    try:
        found = tokens.read(path)
    except FileNotFoundError:
        return ok("token", f"none yet; the first start makes {path}")
    except StartError as error:
        return fail("token", str(error), f"chmod 600 {path}, or remove it: the next start makes another")
    return ok("token", f"{len(found.by_name)} in {path}")


def _reach(settings: ServerSettings) -> Finding:
    if is_loopback(settings.host):
        return ok("address", f"{settings.host}: this machine alone can connect")
    if settings.tls_cert is None:
        return warn(
            "address", f"{settings.host}: other machines can connect, unencrypted", "set tls-cert, or use a TLS proxy"
        )
    return ok("address", f"{settings.host}: other machines can connect, encrypted")


def _runtime_file(settings: ServerSettings) -> tuple[ServerRecord | None, Finding]:
    path = settings.runtime_file or runtime_file.default_path()
    try:
        record = runtime_file.read(path)
    except RuntimeFileError as error:
        return None, fail("runtime file", str(error), f"remove {path}, and start the server again")
    if record is None:
        return None, ok("runtime file", "no server of yours runs")
    if not record.alive():
        return None, warn("runtime file", f"{path} is of a server that has ended", f"rm {path}")
    return record, _answer(record)


def _answer(record: ServerRecord) -> Finding:
    """Ask the running server how it is."""
    import httpx

    told = f"process {record.pid} at {record.url}"
    headers = {} if record.token is None else {"authorization": f"Bearer {record.token}"}
    try:
        # The certificate is whatever the user chose; nothing secret but his own token goes to his own address.
        with httpx.Client(base_url=record.url, trust_env=False, verify=False, timeout=_ANSWER_SECONDS) as client:  # noqa: S501
            health = client.get("/health")
            allowed = client.get("/v1/models", headers=headers)
    except httpx.HTTPError as error:
        return fail("running server", f"{told} does not answer ({type(error).__name__})", f"kill {record.pid}")
    if allowed.status_code != httpx.codes.OK:
        return fail("running server", f"{told} refuses its own token", "start the server again")
    state = health.json().get("status", "unknown") if health.headers["content-type"] == "application/json" else "?"
    if state == "degraded":
        dead = [f"its thread {each['name']} ended with {each['error']}" for each in _status(record)["dead_threads"]]
        return warn("running server", f"{told}: degraded, for {', '.join(dead)}", "restart it; its log says where")
    if state != "ok":
        return warn("running server", f"{told}: {state}", "wait a moment; the server's log says more")
    return ok("running server", told)


def _shared() -> Iterator[Finding]:
    """The servers that editors started for themselves."""
    folder = runtime_file.runtime_folder()
    for path in sorted(folder.glob("engine-*.json")) if folder.is_dir() else ():
        try:
            record = runtime_file.read(path)
        except RuntimeFileError as error:
            yield fail("editors' server", str(error), f"rm {path}")
            continue
        if record is not None and record.alive():
            yield ok("editors' server", f"process {record.pid} at {record.url}")
        elif record is not None:
            yield warn("editors' server", f"{path} is of a server that has ended", f"rm {path}")


def _port(settings: ServerSettings, running: ServerRecord | None) -> Finding:
    if settings.port == 0:
        return ok("port", "the system chooses one")
    if running is not None and running.url.endswith(f":{settings.port}"):
        return ok("port", f"{settings.port} is this server's")
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        socket.create_server((settings.host, settings.port), family=family).close()
    except OSError as error:
        return fail(
            "port",
            f"{settings.host} port {settings.port}: {_why(error)}",
            "another program has it: choose another --port, or 0 for any",
        )
    return ok("port", f"{settings.port} is free")


def _why(error: OSError) -> str:
    # asyncio's and Python's own words repeat the address.
    return os.strerror(error.errno) if error.errno else str(error)


def _files(settings: ServerSettings) -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < settings.max_connections + _OTHER_FILES:
        return warn(
            "open files",
            f"{soft} allowed, {settings.max_connections} connections wanted",
            f"ulimit -n {settings.max_connections + _OTHER_FILES}, or a smaller max_connections",
        )
    return ok("open files", f"{soft} allowed")


def _workspace(folder: Path) -> Finding:
    if not folder.is_dir():
        return fail("workspace", f"{folder} is no folder", "name another, or start the server without it")
    return ok("workspace", f"{folder}: what clients show of its files is completed from it")


def _replicas(settings: ServerSettings, count: int, record: ServerRecord | None) -> Iterator[Finding]:
    """Whether so many processes with the model can be started, and whether those of a running server are up."""
    if find_spec("ray") is None:
        yield fail("replicas", "Ray Serve is not installed", "pip install 'calomel[cluster]'")
        return
    if record is None:
        yield _room(settings, count)
        return
    found = _status(record).get("replicas")
    if not isinstance(found, dict):
        yield warn("replicas", "the running server has none", "end it, and start it again with these settings")
        return
    up, told = len(found["up"]), f"{len(found['up'])} of {found['wanted']} up, {found['restarts']} restarted"
    yield ok("replicas", told) if up == found["wanted"] else warn("replicas", told, "the server's log says more")


def _room(settings: ServerSettings, count: int) -> Finding:
    from calomel.engine import CheckpointError  # imports torch
    from calomel.families.family import OpenOptions
    from calomel.suggest.replicas.opening import refuse_too_many

    options = OpenOptions(device=settings.device, cache_tokens=settings.cache_tokens, quantize=settings.quantize)
    if "RAY_ADDRESS" in os.environ:
        return ok("replicas", f"{count}, on the cluster at {os.environ['RAY_ADDRESS']}")
    try:
        refuse_too_many(settings.model or nano_path(), options, count)
    except CheckpointError as error:
        return fail("replicas", str(error), "fewer --replicas")
    return ok("replicas", f"{count}, for which there is room")


def _status(record: ServerRecord) -> dict[str, Any]:
    """What the running server says of itself; empty where it says nothing."""
    import httpx

    headers = {} if record.token is None else {"authorization": f"Bearer {record.token}"}
    try:
        with httpx.Client(base_url=record.url, trust_env=False, verify=False, timeout=_ANSWER_SECONDS) as client:  # noqa: S501
            answer = client.get("/calomel/v1/status", headers=headers)
            found: dict[str, Any] = answer.json() if answer.status_code == httpx.codes.OK else {}
    except (httpx.HTTPError, ValueError):
        return {}
    return found


def writable(folder: Path) -> Finding:
    """Whether the server can keep what it learns."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if os.access(place, os.W_OK):
        return ok("state", str(folder))
    return warn("state", f"{folder} cannot be written", "outcomes of suggestions are not kept: chmod u+w it")

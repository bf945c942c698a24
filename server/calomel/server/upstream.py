"""The client of the server that `upstream` names, for this server and for commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from calomel.infer import llama_cpp
from calomel.infer.completer import CompleterError
from calomel.infer.launch import open_llama
from calomel.infer.remote import is_loopback
from calomel.infer.upstream.exchange import problem_of, target_of
from calomel.server.errors import StartError
from calomel.server.settings import NAMES, ServeSettings, load
from calomel.workspace.settings import ServerSettings, load_settings, user_settings_path

if TYPE_CHECKING:
    from calomel.infer.in_process import EngineCompleter
    from calomel.infer.upstream.completer import UpstreamCompleter


def upstream_of(settings: ServeSettings) -> UpstreamCompleter | None:
    """The client of the upstream server that has the model; None for a model in this process. Raises StartError."""
    return None if settings.upstream is None else _client(settings.upstream, settings)


def _client(address: str, settings: ServeSettings) -> UpstreamCompleter:
    from calomel.infer.upstream.completer import UpstreamCompleter

    if is_own(address, settings):
        raise StartError(f"upstream: {address} is this server's own address: name the server with the model")
    try:
        return UpstreamCompleter(target_of(address, settings, settings.upstream_key))
    except CompleterError as error:
        raise StartError(str(error)) from None


def is_own(url: str, settings: ServeSettings) -> bool:
    """Whether this server will listen at an address: as its own upstream, it would ask itself for ever."""
    parts = urlsplit(url)
    return is_loopback(parts.hostname or "") and parts.port == settings.port


def upstream_at(address: str) -> UpstreamCompleter:
    """The client of the server at an address, with the rest from the environment, as `calomel serve` reads it.

    Plain HTTP may go where the user's editors may send it.

    Raises:
        StartError: nothing may be sent to that address, or a variable is wrong.
    """
    # Variables about how a server listens, or about a model of its own, are for another command.
    others = (name for name in NAMES if not name.startswith("upstream") and name != "offline")
    allow_http = load_settings(user_toml=user_settings_path())[0].server.allow_http
    problem = problem_of(address, allow_http, "server")
    if problem is not None:
        raise StartError(f"--{problem}")
    given = {**dict.fromkeys(others), "upstream": address, "allow_http": allow_http, "no_auth": True, "port": 0}
    return _client(address, load(given, use_config=False).settings)


def open_either(
    model: Path | None, device: str, threads: int | None, upstream: str | None
) -> EngineCompleter | UpstreamCompleter:
    """The model that a command's options name: in this process, in llama.cpp, or at the address `upstream`.

    Raises what `upstream_at`, `open_llama` and `calomel.infer.in_process.open_completer` raise.
    """
    if upstream is not None:
        return upstream_at(upstream)
    if model is not None and llama_cpp.opens(model):
        return open_llama(ServerSettings(model=model.absolute(), device=device, threads=threads))
    from calomel.infer.in_process import open_completer  # imports torch

    return open_completer(model, device, threads)

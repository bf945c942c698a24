"""The client of the server that `upstream` names, for this server and for commands."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from calomel.infer import llama_cpp
from calomel.infer.completer import CompleterError
from calomel.infer.launch import open_llama
from calomel.infer.remote import is_loopback
from calomel.infer.upstream.exchange import problem_of, target_of
from calomel.server.errors import StartError
from calomel.server.settings import NAMES, ServeSettings, SettingsError, load
from calomel.workspace.settings import BackendSettings, load_settings, user_settings_path

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


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server whose model a command asks. What is None, the environment says, as for `calomel serve`.

    Attributes:
        url: its address.
        model: its model, if it has several.
        format, fim, edit: as the settings of these names.
        key_file: file with its key.
    """

    url: str
    model: str | None = None
    format: str | None = None
    fim: str | None = None
    edit: str | None = None
    key_file: str | None = None


def upstream_at(upstream: Upstream) -> UpstreamCompleter:
    """The client of a server.

    Plain HTTP may go where the user's editors may send it.

    Raises:
        StartError: nothing may be sent to that address, or a variable is wrong.
    """
    # Variables about how a server listens, or about a model of its own, are for another command.
    others = [name for name in NAMES if not name.startswith("upstream") and name != "offline"]
    named = {f"upstream_{name}": value for name, value in asdict(upstream).items() if name != "url" and value}
    if upstream.key_file is not None:
        others.append("upstream_key")
    allow_http = load_settings(user_toml=user_settings_path())[0].backend.allow_http
    problem = problem_of(upstream.url, allow_http, "backend")
    if problem is not None:
        raise SettingsError(f"--{problem}")
    fixed = {"upstream": upstream.url, "allow_http": allow_http, "no_auth": True, "port": 0}
    given = {**dict.fromkeys(others), **named, **fixed}
    return _client(upstream.url, load(given, use_config=False).settings)


def outside(
    model: Path | None, device: str, threads: int | None, upstream: Upstream | None
) -> UpstreamCompleter | None:
    """The client of an upstream, or of llama.cpp with a GGUF file; None for a model of Calomel's own engine.

    Raises what `upstream_at` and `open_llama` raise.
    """
    if upstream is not None:
        return upstream_at(upstream)
    if model is not None and llama_cpp.opens(model):
        return open_llama(BackendSettings(model=model.absolute(), device=device, threads=threads))
    return None


def open_either(
    model: Path | None, device: str, threads: int | None, upstream: Upstream | None
) -> EngineCompleter | UpstreamCompleter:
    """The model that a command asks: in this process, or `outside`.

    Raises what `outside` and `calomel.infer.in_process.open_completer` raise.
    """
    client = outside(model, device, threads, upstream)
    if client is not None:
        return client
    from calomel.infer.in_process import open_completer  # imports torch

    return open_completer(model, device, threads)

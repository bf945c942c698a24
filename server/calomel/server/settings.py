"""Every setting of the server, its default and the reason for it; where settings come from, and which go together.

A setting comes from the command line, else from the environment variable `CALOMEL_` + its name, else from the user's
`calomel.toml`. That file is the user's own, or one that the user names. The current folder is never read: a cloned
repository must not configure a server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from calomel.infer.remote import is_loopback
from calomel.infer.runtime_file import MOST_SOCKET_BYTES, UNIX
from calomel.infer.upstream.exchange import is_sendable, problem_of
from calomel.prompts.renderer import EditKind
from calomel.server.errors import StartError
from calomel.workspace.settings import (
    TABLES,
    Aggressiveness,
    Device,
    FimFormat,
    HttpHost,
    Text,
    UpstreamFormat,
    user_settings_path,
)
from calomel.workspace.settings_reader import (
    RENAMED,
    SERVE,
    SettingProblem,
    Source,
    checked,
    read_file,
    setting,
    tables,
)

MIB: Final = 1024 * 1024
_OF_UPSTREAM: Final = ("upstream_format", "upstream_model", "upstream_fim", "upstream_edit", "upstream_key_file")
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s*,]+")


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """How `calomel serve` listens, whom it lets in, which model it opens and where it stops.

    Raises ValueError for a combination that would leave the server open by accident, or that makes no sense.
    """

    host: str = setting("127.0.0.1", "Address to listen on. By default, only this machine can connect.")
    port: Annotated[int, Meta(ge=0, le=65535)] = setting(
        8017, "Port to listen on; 0 lets the system choose a free one."
    )
    socket: Path | None = setting(
        None,
        "Unix socket to listen on instead of an address, so that only you can connect. Editors start their server "
        "this way.",
    )
    allow_remote: bool = setting(False, "Allow a `host` that other machines can reach.")
    allowed_hosts: tuple[str, ...] = setting(
        (), "Extra names to accept in the Host header. Other names are rejected, to prevent DNS rebinding."
    )
    allowed_origins: tuple[str, ...] = setting(
        (), "Origins of web pages that may use the server, e.g. `https://name:port`."
    )
    token: str | None = setting(
        None, "Token that clients send as `Authorization: Bearer`. Unset: the one in `token_file`.", secret=True
    )
    token_file: Path | None = setting(
        None,
        "File with a token, or a line `NAME TOKEN` for each person; created if missing. "
        "Unset: `token` in your state folder.",
    )
    fresh_token: bool = setting(
        False,
        "Use a random token at each start, written only to the runtime file. Editors start their server this way.",
    )
    no_auth: bool = setting(False, "Accept requests without a token, from every program and user of this machine.")
    tls_cert: Path | None = setting(None, "Certificate chain (PEM) for HTTPS. Unset: plain HTTP.")
    tls_key: Path | None = setting(None, "Private key of the certificate (PEM).")
    runtime_file: Path | None = setting(
        None,
        "File with address, token and process id for your editors. "
        "Unset: in your runtime folder, which other users cannot read.",
    )
    model: Path | None = setting(None, "A model's name, folder or GGUF file. Unset: nano.")
    upstream: Text | None = setting(
        None,
        "Address of a llama.cpp, Ollama, vLLM, LM Studio or hosted Mercury server to use as the model, e.g. "
        "`http://127.0.0.1:8080`. Unset: the model runs in this server.",
    )
    upstream_format: UpstreamFormat = setting("auto", "API of the upstream server; `auto` detects it.")
    upstream_model: Text | None = setting(None, "Model to use on the upstream server. Unset: the only one.")
    upstream_fim: FimFormat | None = setting(None, "Fill-in-the-middle format of the upstream model. Unset: detected.")
    upstream_edit: EditKind | None = setting(
        None, "Next-edit format of the upstream model. Unset: detected from its name, or none."
    )
    upstream_key: str | None = setting(
        None, "Key to send to the upstream server as `Authorization: Bearer`.", secret=True
    )
    upstream_key_file: Path | None = setting(None, "File with that key; nobody else may be able to read it.")
    allow_http: tuple[HttpHost, ...] = setting(
        (),
        "Hosts of other machines that `upstream` may name with `http://`. Everybody on the network between can read "
        "prompts, answers and the key.",
    )
    device: Device = setting("cpu", "Device for the model: cpu, cuda, cuda:N or mps.")
    threads: Annotated[int, Meta(ge=1, le=1024)] | None = setting(
        None, "Processor threads. Unset: chosen automatically."
    )
    quantize: Literal["int8"] | None = setting(None, "Round weights to eight bits: half the memory of bfloat16.")
    max_batch: Annotated[int, Meta(ge=1, le=256)] | None = setting(
        None, "Maximum requests per step. Unset: 8, or fewer if memory is short."
    )
    exact: bool = setting(False, "Turn off approximate caching, which bidirectional models use between steps (slower).")
    max_requests: Annotated[int, Meta(ge=1, le=65_536)] = setting(
        128, "Maximum running and waiting requests; enough for a team of 64."
    )
    client_share: Annotated[float, Meta(ge=0.01, le=1)] = setting(0.75, "Share of these that one client may use.")
    max_connections: Annotated[int, Meta(ge=1, le=65_536)] = setting(
        512, "Maximum open connections. A further one takes the place of the oldest that has shown no token."
    )
    max_body_bytes: Annotated[int, Meta(ge=1024, le=1024 * MIB)] = setting(
        4 * MIB, "Maximum size of a request; 32,768 tokens are about 130 KB of text."
    )
    receive_seconds: Annotated[float, Meta(ge=0.1, le=3600)] = setting(
        20.0, "Time limit in seconds for receiving a complete request and for sending an answer."
    )
    idle_minutes: Annotated[float, Meta(ge=0.1, le=10_080.0)] | None = setting(
        None, "Stop after this many idle minutes. Unset: never."
    )
    offline: bool = setting(
        False, "Refuse every connection to another machine; an upstream on this machine still works."
    )
    cache_tokens: Annotated[int, Meta(ge=1024, le=2**24)] | None = setting(
        None,
        "Size of the prompt cache, in tokens. Unset: what memory allows, up to 163,840 on a GPU and 65,536 on a CPU. "
        "It holds the contexts and answers of running and recent requests. nano takes 6 KB per token (3 KB in "
        "bfloat16).",
    )
    context_tokens: Annotated[int, Meta(ge=128, le=32_768)] | None = setting(
        None, "Maximum prompt size in tokens; longer prompts are cut. Unset: as many as suit the model."
    )
    aggressiveness: Aggressiveness = setting(
        "balanced", "How confident a next edit must be: quiet, balanced, eager, or a probability from 0 to 1."
    )
    outcome_log: bool = setting(
        True, "Record clients' feedback without text, for `calomel stats` and `calomel calibrate`."
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "One line per completion on standard error: counts and times, never text."
    )
    shutdown_seconds: Annotated[int, Meta(ge=0, le=3600)] = setting(
        5, "Seconds that running requests have to finish when the server stops."
    )

    def __post_init__(self) -> None:
        _refuse_an_open_door(self)
        _ask_one_model(self)
        _take_exact_names(self)

    def hosts(self) -> list[str]:
        """Names that the Host header may have, without ports."""
        names = ["127.0.0.1", "localhost", "[::1]", *self.allowed_hosts]
        own = f"[{self.host}]" if ":" in self.host else self.host
        return names if own in names else [*names, own]


class CombinationError(ValueError):
    """Settings that do not go together; `names` are all of them."""

    def __init__(self, message: str, *names: str) -> None:
        super().__init__(message)
        self.names = names

    def told(self, source: Source) -> str:
        """The message with other settings named as they are written there: `--no-auth`, or `no_auth` in a file."""
        return _HYPHENATED.sub(lambda name: f"--{name[0]}" if source.text else name[0].replace("-", "_"), str(self))


# Of a token that other machines may try to guess.
SHORTEST_TOKEN: Final = 16
TOO_SHORT: Final = f"a host that other machines can reach needs tokens of at least {SHORTEST_TOKEN} characters"

# How messages name settings of two words.
_HYPHENATED: Final = re.compile(r"(?<![-\w])(?:allow-remote|no-auth|token-file|tls-cert|tls-key)\b")


def _refuse_an_open_door(settings: ServeSettings) -> None:
    token = settings.token
    if token is not None and not is_sendable(token):
        raise CombinationError("the token may contain only printable ASCII characters without spaces", "token")
    if settings.no_auth and (token or settings.token_file is not None):
        raise CombinationError(
            "a token and no-auth were both given: remove one of them", "no_auth", "token", "token_file"
        )
    if token and settings.token_file is not None:
        raise CombinationError("a token and a token-file were both given: remove one of them", "token", "token_file")
    if token == "" and not settings.no_auth:
        raise CombinationError("the token is empty: add no-auth to serve without one, or unset it", "token", "no_auth")
    if settings.socket is not None:
        _check_socket(settings, settings.socket)
    elif not is_loopback(settings.host):
        if not settings.allow_remote:
            raise CombinationError(
                "host is not a loopback address, so other machines could connect: use 127.0.0.1, or add allow-remote",
                "host",
                "allow_remote",
            )
        if settings.no_auth:
            raise CombinationError(
                "a host that other machines can reach needs a token: remove no-auth", "no_auth", "host"
            )
        if token and len(token) < SHORTEST_TOKEN:
            raise CombinationError(TOO_SHORT, "token", "host")


def _check_socket(settings: ServeSettings, path: Path) -> None:
    if UNIX is None:
        raise CombinationError("socket: this system has no Unix sockets: use host and port", "socket")
    if len(os.fsencode(path)) > MOST_SOCKET_BYTES:
        message = f"socket is longer than {MOST_SOCKET_BYTES} bytes, which no system allows: {path}"
        raise CombinationError(message, "socket")
    if settings.tls_cert is not None:
        raise CombinationError("socket and tls-cert are both set: remove one of them", "socket", "tls_cert")


def _ask_one_model(settings: ServeSettings) -> None:
    if settings.upstream is None:
        given = [name for name in _OF_UPSTREAM if getattr(settings, name) not in {None, "auto"}]
        if given:
            raise CombinationError(
                f"{given[0]} needs upstream: set it to the address of the server with the model", *given, "upstream"
            )
        return
    problem = problem_of(settings.upstream, settings.allow_http, SERVE)
    if problem:
        raise CombinationError(problem, "upstream", *_OF_UPSTREAM)
    if settings.upstream_key is not None and settings.upstream_key_file is not None:
        raise CombinationError(
            "upstream_key and upstream_key_file are both set: remove one of them", "upstream_key", "upstream_key_file"
        )
    other = next((name for name in ("model", "quantize") if getattr(settings, name) is not None), None)
    if other:
        raise CombinationError(
            f"upstream and {other} are both set: remove one of them", "upstream", other, *_OF_UPSTREAM
        )
    if settings.offline and not is_loopback(urlsplit(settings.upstream).hostname or ""):
        raise CombinationError(
            "offline does not allow an upstream on another machine: remove one of them",
            "upstream",
            "offline",
            *_OF_UPSTREAM,
        )


def _take_exact_names(settings: ServeSettings) -> None:
    if any("*" in name or "/" in name for name in settings.allowed_hosts):
        raise CombinationError("allowed-hosts must be exact names, not patterns", "allowed_hosts")
    if not all(_ORIGIN.fullmatch(origin.lower()) for origin in settings.allowed_origins):
        raise CombinationError(
            "allowed-origins must be addresses such as https://devbox.lan:8443, without patterns or a path",
            "allowed_origins",
        )
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise CombinationError("set both tls-cert and tls-key", "tls_cert", "tls_key")


NAMES: Final = tuple(each.name for each in fields(ServeSettings))
_SECRETS: Final = tuple(each.name for each in fields(ServeSettings) if each.metadata["secret"])
DEFAULT: Final = "default"
_NAMED: Final = "CALOMEL_CONFIG"


class SettingsError(StartError):
    """A setting cannot be used; the message names it and its source, but never a secret."""


@dataclass(frozen=True, slots=True)
class Layered:
    """Settings and their sources.

    Attributes:
        settings: as the server will use them.
        origins: name of a setting to `default`, a file, a variable or an option.
        path: the file that was looked for; None if none was to be read.
    """

    settings: ServeSettings
    origins: Mapping[str, str]
    path: Path | None


def named_path() -> Path:
    """The file that is read if the command line names none."""
    name = os.environ.get(_NAMED, "")
    return Path(name).expanduser() if name else user_settings_path()


def load(options: Mapping[str, Any], config: Path | None = None, *, use_config: bool = True) -> Layered:
    """The settings of all layers.

    Args:
        options: those given on the command line; None is the default, whatever other layers say.
        config: the file to read; it must exist. None: what CALOMEL_CONFIG names, else the user's own, if any.
        use_config: False to read no file at all.

    Raises:
        SettingsError: a value is wrong, unknown, or in a file that cannot be trusted; or values do not go together.
    """
    layered, problems = examine(options, config, use_config=use_config)
    if problems:
        raise SettingsError("; ".join(map(str, problems)))
    return layered


def examine(
    options: Mapping[str, Any], config: Path | None = None, *, use_config: bool = True
) -> tuple[Layered, list[SettingProblem]]:
    """As `load`: the settings that can be used, with the defaults of the others, and what is wrong with the others."""
    problems: list[SettingProblem] = []
    path = (config or named_path()) if use_config else None
    found: dict[str, tuple[Source, Any]] = {}
    if path is not None:
        file = Source(str(path), path.parent)
        in_file = _in_file(path, file, problems, must_exist=config is not None or bool(os.environ.get(_NAMED)))
        found |= {name: (file, value) for name, value in in_file.items()}
    environment = {name: os.environ[variable(name)] for name in NAMES if variable(name) in os.environ}
    found |= {name: (Source(variable(name), text=True), value) for name, value in environment.items()}
    found |= {name: (Source(option(name), text=True), value) for name, value in options.items()}
    # The command line must not be refused for what it replaces: each value is checked in its last source alone.
    usual = ServeSettings()
    values: dict[str, Any] = {}
    wrong: set[str] = set()
    for name, (source, value) in found.items():
        before = len(problems)
        values |= checked(usual, "" if source.text else SERVE, {name: value}, source, problems)
        if len(problems) > before:
            wrong.add(name)
    settings = _together(values, found, wrong, problems)
    origins = {name: found[name][0].label if name in found else DEFAULT for name in NAMES}
    return Layered(settings, origins, path), problems


def _together(
    values: dict[str, Any],
    found: Mapping[str, tuple[Source, Any]],
    wrong: set[str],
    problems: list[SettingProblem],
) -> ServeSettings:
    """The settings with those values that go together; `problems` gets the others, unless they miss a `wrong` one."""
    while True:
        try:
            return ServeSettings(**values)
        except CombinationError as error:
            if wrong.isdisjoint(error.names):
                name = next(name for name in error.names if name in values)
                source = found[name][0]
                problems.append(
                    SettingProblem(source.label, "" if source.text else f"{SERVE}.{name}", error.told(source))
                )
            for name in error.names:
                values.pop(name, None)


def _in_file(path: Path, source: Source, problems: list[SettingProblem], *, must_exist: bool) -> Mapping[str, Any]:
    kinds: dict[str, type] = {SERVE: ServeSettings}
    given = read_file(path, source, kinds, problems)
    if given is None:
        if must_exist:
            problems.append(SettingProblem(source.label, "", "this file does not exist"))
        return {}
    # The other tables belong to the editors' side (`calomel.workspace.settings`), which says what is wrong in them.
    own = {name: values for name, values in given.items() if name not in {*TABLES, *RENAMED}}
    return tables(own, {**TABLES, **kinds}, source, problems).get(SERVE, {})


def shown(layered: Layered, name: str) -> str:
    """A setting's value for people; a secret is hidden."""
    value = getattr(layered.settings, name)
    if value is None:
        return "unset"
    if name in _SECRETS:
        return "(hidden)"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def variable(name: str) -> str:
    """The environment variable with a setting."""
    return f"CALOMEL_{name.upper()}"


def option(name: str) -> str:
    """How a setting is spelled on the command line."""
    # A repeatable option takes one name at a time.
    return "--" + name.replace("_", "-").removesuffix("s" if name in {"allowed_hosts", "allowed_origins"} else "")

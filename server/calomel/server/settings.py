"""Every setting of the server, its default and the reason for that default; and where settings come from.

A setting comes from the command line, else from the environment variable `CALOMEL_` + its name, else from the user's
`calomel.toml`. That file is the user's own, or one that the user names. The current folder is never read: a cloned
repository must not configure a server.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, NoDecode, SettingsConfigDict

from calomel.infer.remote import is_loopback
from calomel.infer.upstream.exchange import is_sendable, problem_of
from calomel.prompts.fim_tokens import FORMATS
from calomel.prompts.renderer import EditKind
from calomel.server.errors import StartError
from calomel.server.logs import escaped
from calomel.storage import is_own, rights_of_others
from calomel.workspace.settings import UpstreamFormat, user_settings_path

MIB: Final = 1024 * 1024
_OF_UPSTREAM: Final = ("upstream_format", "upstream_model", "upstream_fim", "upstream_edit", "upstream_key_file")
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s*,]+")


def _split(value: Any) -> Any:
    """Several names in one environment variable are separated by commas."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


NameList = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


class ServeSettings(BaseSettings):
    """How `calomel serve` listens, whom it lets in, which model it opens and where it stops.

    Raises `pydantic.ValidationError` (a `ValueError`) for a combination that would leave the server open by accident.
    """

    model_config = SettingsConfigDict(
        env_prefix="CALOMEL_",
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        # A token typed into the wrong field must not appear in the error about it.
        hide_input_in_errors=True,
    )

    host: str = "127.0.0.1"
    """Address to listen on. By default, only this machine can connect."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8017
    """Port to listen on; 0 lets the system choose a free one."""
    allow_remote: bool = False
    """Allow a `host` that other machines can reach."""
    allowed_hosts: NameList = ()
    """Extra names to accept in the Host header. Other names are rejected, to prevent DNS rebinding."""
    allowed_origins: NameList = ()
    """Origins of web pages that may use the server, e.g. `https://name:port`."""
    token: SecretStr | None = None
    """Token that clients send as `Authorization: Bearer`. Unset: the one in `token_file`."""
    token_file: Path | None = None
    """File with a token, or a line `NAME TOKEN` for each person; created if missing. Unset: `token` in your state
    folder.
    """
    fresh_token: bool = False
    """Use a random token at each start, written only to the runtime file. Editors start their server this way."""
    no_auth: bool = False
    """Accept requests without a token, from every program and user of this machine."""
    tls_cert: Path | None = None
    """Certificate chain (PEM) for HTTPS. Unset: plain HTTP."""
    tls_key: Path | None = None
    """Private key of the certificate (PEM)."""
    runtime_file: Path | None = None
    """File with address, token and process id for your editors. Unset: in your runtime folder, which other users
    cannot read.
    """
    model: Path | None = None
    """A model's name, folder or GGUF file. Unset: nano."""
    upstream: str | None = None
    """Address of a llama.cpp, Ollama, vLLM, LM Studio or hosted Mercury server to use as the model, e.g.
    `http://127.0.0.1:8080`. Unset: the model runs in this server.
    """
    upstream_format: UpstreamFormat = "auto"
    """API of the upstream server; `auto` detects it."""
    upstream_model: str | None = None
    """Model to use on the upstream server. Unset: the only one."""
    upstream_fim: str | None = None
    """Fill-in-the-middle format: left-to-right, qwen, starcoder, granite, santacoder, codegemma, deepseek, glm,
    codellama, seed or codestral. Unset: detected.
    """
    upstream_edit: EditKind | None = None
    """Next-edit format of the upstream model. Unset: detected from its name, or none."""
    upstream_key: SecretStr | None = None
    """Key to send to the upstream server as `Authorization: Bearer`."""
    upstream_key_file: Path | None = None
    """File with that key; nobody else may be able to read it."""
    device: str = "cpu"
    """Device for the model: cpu, cuda, cuda:N or mps."""
    threads: Annotated[int | None, Field(ge=1, le=1024)] = None
    """Processor threads. Unset: chosen automatically."""
    quantize: Literal["int8"] | None = None
    """Round weights to eight bits: half the memory of bfloat16."""
    max_batch: Annotated[int | None, Field(ge=1, le=256)] = None
    """Maximum requests per step. Unset: 8, or fewer if memory is short."""
    exact: bool = False
    """Turn off approximate caching, which bidirectional models use between steps (slower)."""
    max_requests: Annotated[int, Field(ge=1, le=65_536)] = 128
    """Maximum running and waiting requests; enough for a team of 64."""
    client_share: Annotated[float, Field(gt=0, le=1)] = 0.75
    """Share of these that one client may use."""
    max_connections: Annotated[int, Field(ge=1, le=65_536)] = 512
    """Maximum open connections; more are closed at once."""
    max_body_bytes: Annotated[int, Field(ge=1024, le=1024 * MIB)] = 4 * MIB
    """Maximum size of a request; 32,768 tokens are about 130 KB of text."""
    receive_seconds: Annotated[float, Field(gt=0, le=3600)] = 20.0
    """Time limit in seconds for receiving a complete request and for sending an answer."""
    idle_minutes: Annotated[float | None, Field(gt=0, le=10_080)] = None
    """Stop after this many idle minutes. Unset: never."""
    offline: bool = False
    """Refuse every connection to another machine; an upstream on this machine still works."""
    cache_tokens: Annotated[int | None, Field(ge=1024, le=2**24)] = None
    """Size of the prompt cache, in tokens. Unset: what memory allows, up to 163,840 on a GPU and 65,536 on a CPU.
    It holds the contexts and answers of running and recent requests. nano takes 6 KB per token (3 KB in bfloat16).
    """
    context_tokens: Annotated[int | None, Field(ge=128, le=32_768)] = None
    """Maximum prompt size in tokens; longer prompts are cut. Unset: what suits the model."""
    aggressiveness: Literal["quiet", "balanced", "eager"] | Annotated[float, Field(ge=0, le=1)] = "balanced"
    """How confident a next edit must be: quiet, balanced, eager, or a probability from 0 to 1."""
    outcome_log: bool = True
    """Record clients' feedback without text, for `calomel stats` and `calomel calibrate`."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """One line per completion on standard error: counts and times, never text."""
    shutdown_seconds: Annotated[int, Field(ge=0, le=3600)] = 5
    """Seconds that running requests have to finish when the server stops."""

    @model_validator(mode="after")
    def _refuse_an_open_door(self) -> Self:
        token = None if self.token is None else self.token.get_secret_value()
        if token is not None and not is_sendable(token):
            raise ValueError("the token may contain only printable ASCII characters without spaces")
        if self.no_auth and (token or self.token_file is not None):
            raise ValueError("a token and no-auth were both given: remove one of them")
        if token and self.token_file is not None:
            raise ValueError("a token and a token-file were both given: remove one of them")
        if token == "" and not self.no_auth:
            raise ValueError("the token is empty: add no-auth to serve without one, or unset it")
        if not is_loopback(self.host):
            if not self.allow_remote:
                raise ValueError(
                    "host is not a loopback address, so other machines could connect: "
                    "use 127.0.0.1, or add allow-remote"
                )
            if self.no_auth:
                raise ValueError("a host that other machines can reach needs a token: remove no-auth")
        return self

    @model_validator(mode="after")
    def _ask_one_model(self) -> Self:
        given = [name for name in _OF_UPSTREAM if getattr(self, name) not in {None, "auto"}]
        if self.upstream is None:
            if given:
                raise ValueError(f"{given[0]} needs upstream: set it to the address of the server with the model")
            return self
        problem = problem_of(self.upstream)
        if problem:
            raise ValueError(problem)
        if self.upstream_fim is not None and self.upstream_fim not in FORMATS:
            raise ValueError(f"upstream_fim must be one of {', '.join(FORMATS)}")
        if self.upstream_key is not None and self.upstream_key_file is not None:
            raise ValueError("upstream_key and upstream_key_file are both set: remove one of them")
        other = next((name for name in ("model", "quantize") if getattr(self, name) is not None), None)
        if other:
            raise ValueError(f"upstream and {other} are both set: remove one of them")
        if self.offline and not is_loopback(urlsplit(self.upstream).hostname or ""):
            raise ValueError("offline does not allow an upstream on another machine: remove one of them")
        return self

    @model_validator(mode="after")
    def _take_exact_names(self) -> Self:
        if any("*" in name or "/" in name for name in self.allowed_hosts):
            raise ValueError("allowed-hosts must be exact names, not patterns")
        if not all(_ORIGIN.fullmatch(origin.lower()) for origin in self.allowed_origins):
            raise ValueError(
                "allowed-origins must be addresses such as https://devbox.lan:8443, without patterns or a path"
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("set both tls-cert and tls-key")
        return self

    def hosts(self) -> list[str]:
        """Names that the Host header may have, without ports."""
        names = ["127.0.0.1", "localhost", "[::1]", *self.allowed_hosts]
        own = f"[{self.host}]" if ":" in self.host else self.host
        return names if own in names else [*names, own]


# The server's table; the file's others belong to the editors' side (`calomel.workspace.settings`).
TABLE: Final = "serve"
_OTHER_TABLES: Final = ("workspace", "privacy", "suggest", "server", "log")
_PREFIX: Final = "CALOMEL_"
_NAMED: Final = f"{_PREFIX}CONFIG"
_PATHS: Final = ("token_file", "tls_cert", "tls_key", "runtime_file", "upstream_key_file")
_SECRETS: Final = ("token", "upstream_key")
_MAX_BYTES: Final = 256 * 1024

DEFAULT: Final = "default"


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
        options: those given on the command line.
        config: the file to read; it must exist. None: what CALOMEL_CONFIG names, else the user's own, if any.
        use_config: False to read no file at all.

    Raises:
        SettingsError: a value is wrong, unknown, or in a file that cannot be trusted.
    """
    path = (config or named_path()) if use_config else None
    in_file = {} if path is None else read(path, must_exist=config is not None or bool(os.environ.get(_NAMED)))
    in_environment = {name: value for name, value in EnvSettingsSource(ServeSettings)().items() if value is not None}
    origins = dict.fromkeys(ServeSettings.model_fields, DEFAULT)
    origins.update(dict.fromkeys(in_file, str(path)))
    origins.update({name: _PREFIX + name.upper() for name in in_environment})
    origins.update({name: option(name) for name in options})
    try:
        settings = ServeSettings(**{**in_file, **in_environment, **options})
    except ValidationError as error:
        raise SettingsError("; ".join(_sentence(entry, origins) for entry in error.errors())) from None
    return Layered(settings, origins, path)


def read(path: Path, *, must_exist: bool) -> dict[str, Any]:
    """The server's settings in a file. Raises SettingsError."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        if must_exist:
            raise SettingsError(f"{path}: this file does not exist") from None
        return {}
    except OSError as error:
        raise SettingsError(f"cannot read {path} ({error.strerror})") from None
    if len(data) > _MAX_BYTES:
        raise SettingsError(f"{path} is larger than {_MAX_BYTES // 1024} KB")
    try:
        tables = tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from None
    _check_names(path, tables)
    values = tables.get(TABLE, {})
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: {TABLE} must be a table: [{TABLE}]")
    _check_names(path, values, TABLE)
    if values:
        _check_modes(path, status, secret=any(name in values for name in _SECRETS))
    return {name: _located(path, name, value) for name, value in values.items()}


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


def option(name: str) -> str:
    """How a setting is spelled on the command line."""
    # A repeatable option takes one name at a time.
    return "--" + name.replace("_", "-").removesuffix("s" if name in {"allowed_hosts", "allowed_origins"} else "")


def _check_names(path: Path, values: Mapping[str, Any], table: str = "") -> None:
    names = [TABLE, *_OTHER_TABLES] if not table else list(ServeSettings.model_fields)
    for name in values:
        if name in names:
            continue
        near = difflib.get_close_matches(name.replace("-", "_"), names, 1)
        if not table and not near and name.replace("-", "_") in ServeSettings.model_fields:
            raise SettingsError(f"{path}: {name} belongs in the table [{TABLE}]")
        hint = f"; did you mean {near[0]}?" if near else ""
        where = f"[{table}] " if table else ""
        raise SettingsError(f"{path}: {where}{escaped(name[:64])} is not a setting{hint}")


def _check_modes(path: Path, status: os.stat_result, *, secret: bool) -> None:
    """Raise SettingsError if others can write the file: they could open the server to all, or load their own model."""
    if not is_own(status) and status.st_uid:
        raise SettingsError(f"{path} belongs to another user")
    if rights_of_others(status, stat.S_IWGRP | stat.S_IWOTH):
        raise SettingsError(f"other users can write to {path}: chmod go-w it")
    if secret and rights_of_others(status, stat.S_IRGRP | stat.S_IROTH):
        raise SettingsError(f"{path} contains a token that other users can read: chmod 600 it, or use token_file")


def _located(path: Path, name: str, value: Any) -> Any:
    """Paths in a file are relative to it."""
    if name in _PATHS and isinstance(value, str):
        return path.parent / Path(value).expanduser()
    if name == "model" and isinstance(value, str) and ("/" in value or value.startswith("~")):
        return path.parent / Path(value).expanduser()
    return value


def _sentence(entry: Any, origins: Mapping[str, str]) -> str:
    message = str(entry["msg"]).removeprefix("Value error, ")
    name = str(entry["loc"][0]) if entry["loc"] else ""
    origin = origins.get(name, "")
    if not name:
        return message
    if origin.startswith("--"):
        return f"{origin}: {message}"
    return f"{name} ({origin}): {message}"

"""Where settings come from: the user's `calomel.toml`, over it the environment, over it the command line.

The file is the user's own, or one that he names. The current folder is never looked at: a repository that somebody
cloned must not configure a server.
"""

from __future__ import annotations

import difflib
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from calomel.server.errors import StartError
from calomel.server.settings import ServerSettings

# The server's table; the others of the file belong to the editors' side (`calomel.workspace.settings`).
TABLE: Final = "serve"
_OTHER_TABLES: Final = ("workspace", "privacy", "suggest", "server", "log")
_PREFIX: Final = "CALOMEL_"
_PATHS: Final = ("token_file", "upstream_token_file", "tls_cert", "tls_key", "runtime_file", "workspace")
_SECRETS: Final = ("token",)
_MAX_BYTES: Final = 256 * 1024

DEFAULT: Final = "default"


class SettingsError(StartError):
    """A setting cannot be used; the message names it and where it came from, and never a secret."""


@dataclass(frozen=True, slots=True)
class Layered:
    """Settings and their sources.

    Attributes:
        settings: as the server will take them.
        origins: name of a setting to `default`, a file, a variable or an option.
        path: the file that was looked for; None when none was to be read.
    """

    settings: ServerSettings
    origins: Mapping[str, str]
    path: Path | None


def config_path() -> Path:
    """The user's own file (on Linux `~/.config/calomel/calomel.toml`)."""
    import platformdirs

    return platformdirs.user_config_path("calomel", appauthor=False) / "calomel.toml"


def named_path() -> Path:
    """The file that is read when none is named on the command line."""
    return _named() or config_path()


def load(options: Mapping[str, Any], config: Path | None = None, *, use_config: bool = True) -> Layered:
    """The settings of all layers.

    Args:
        options: of the command line, those that were given.
        config: the file to read; it must be there. None: what CALOMEL_CONFIG names, else the user's own, if any.
        use_config: False to read no file at all.

    Raises:
        SettingsError: a value is wrong, unknown, or in a file that must not be believed.
    """
    named = config or _named()
    path = (config or named_path()) if use_config else None
    in_file = {} if path is None else read(path, must_exist=named is not None)
    in_environment = {name: value for name, value in EnvSettingsSource(ServerSettings)().items() if value is not None}
    origins = dict.fromkeys(ServerSettings.model_fields, DEFAULT)
    origins.update(dict.fromkeys(in_file, str(path)))
    origins.update({name: _PREFIX + name.upper() for name in in_environment})
    origins.update({name: option(name) for name in options})
    try:
        settings = ServerSettings(**{**in_file, **in_environment, **options})
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
            raise SettingsError(f"{path}: there is no such file") from None
        return {}
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror})") from None
    if len(data) > _MAX_BYTES:
        raise SettingsError(f"{path} is larger than {_MAX_BYTES // 1024} KB")
    try:
        tables = tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is no TOML: {error}") from None
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
    # A repeatable option names one thing at a time.
    return "--" + name.replace("_", "-").removesuffix("s" if name in {"allowed_hosts", "allowed_origins"} else "")


def _named() -> Path | None:
    name = os.environ.get(f"{_PREFIX}CONFIG", "")
    return Path(name).expanduser() if name else None


def _check_names(path: Path, found: Mapping[str, Any], table: str = "") -> None:
    known = [TABLE, *_OTHER_TABLES] if not table else list(ServerSettings.model_fields)
    for name in found:
        if name in known:
            continue
        near = difflib.get_close_matches(name.replace("-", "_"), known, 1)
        if not table and not near and name.replace("-", "_") in ServerSettings.model_fields:
            raise SettingsError(f"{path}: {name} belongs into the table [{TABLE}]")
        hint = f"; did you mean {near[0]}?" if near else ""
        where = f"[{table}] " if table else ""
        raise SettingsError(f"{path}: {where}{_printable(name)} is no setting{hint}")


def _check_modes(path: Path, status: os.stat_result, *, secret: bool) -> None:
    """Whoever can write the file can have the server listen to the world, or open a model of his."""
    if status.st_uid not in {os.getuid(), 0}:
        raise SettingsError(f"{path} belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SettingsError(f"other users can write to {path}: chmod go-w it")
    if secret and status.st_mode & (stat.S_IRGRP | stat.S_IROTH):
        raise SettingsError(f"{path} holds a token, and other users can read it: chmod 600 it, or use token_file")


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


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name[:64])

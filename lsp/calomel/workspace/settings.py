"""Settings from files and editors: every value is checked, what is wrong is said by name and left at its default."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, Final, get_args, get_type_hints

from calomel.workspace.preferences import (
    LogSettings,
    PrivacySettings,
    ServerSettings,
    Settings,
    SuggestSettings,
    WorkspaceSettings,
    user_settings_path,
)

__all__ = [
    "LogSettings",
    "PrivacySettings",
    "ServerSettings",
    "SettingProblem",
    "Settings",
    "SuggestSettings",
    "WorkspaceSettings",
    "load_settings",
    "user_settings_path",
]

# A settings file is a page; something larger is something else.
_MAX_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One wrong setting, for a person: where, which, and what is allowed. It never repeats the value."""

    source: str
    name: str
    message: str

    def __str__(self) -> str:
        """One sentence."""
        return f"{self.source}: {self.name}: {self.message}" if self.name else f"{self.source}: {self.message}"


def load_settings(
    *,
    user_toml: Path | None = None,
    workspace_toml: Path | None = None,
    initialization_options: Mapping[str, Any] | None = None,
    configuration: Mapping[str, Any] | None = None,
) -> tuple[Settings, list[SettingProblem]]:
    """The settings of all sources, later ones over earlier ones; a file that is not there says nothing."""
    problems: list[SettingProblem] = []
    settings = Settings()
    for path, label, trusted in (
        (user_toml, "calomel.toml", True),
        (workspace_toml, "the workspace's calomel.toml", False),
    ):
        values = {} if path is None else _read(path, label, problems)
        if trusted:
            # The user's own file is `calomel serve`'s, too.
            values = {name: value for name, value in values.items() if name != "serve"}
        settings = _merged(settings, values, label, problems, trusted=trusted)
    for said, label in ((initialization_options, "initializationOptions"), (configuration, "the editor's settings")):
        settings = _merged(settings, said or {}, label, problems, trusted=True)
    return settings, problems


def _read(path: Path, label: str, problems: list[SettingProblem]) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            problems.append(SettingProblem(label, "", f"larger than {_MAX_BYTES // 1024} KB, so it was not read"))
            return {}
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        problems.append(SettingProblem(label, "", f"could not be read ({error.strerror})"))
    except UnicodeDecodeError:
        problems.append(SettingProblem(label, "", "is not UTF-8"))
    except tomllib.TOMLDecodeError as error:
        problems.append(SettingProblem(label, "", f"is no TOML: {error}"))
    return {}


def _merged(
    settings: Settings, values: Mapping[str, Any], label: str, problems: list[SettingProblem], *, trusted: bool
) -> Settings:
    sections = {each.name: getattr(settings, each.name) for each in fields(Settings)}
    for name, value in values.items():
        if name not in sections:
            problems.append(SettingProblem(label, name, f"unknown; there are {', '.join(sections)}"))
        elif not isinstance(value, Mapping):
            problems.append(SettingProblem(label, name, "must be a table of settings"))
        else:
            changes = dict(_checked(sections[name], name, value, label, problems, trusted=trusted))
            sections[name] = replace(sections[name], **changes)
    return Settings(**sections)


def _checked(
    section: Any, name: str, values: Mapping[str, Any], label: str, problems: list[SettingProblem], *, trusted: bool
) -> Iterator[tuple[str, Any]]:
    known = {each.name: each for each in fields(section)}
    types = get_type_hints(type(section))
    for key, value in values.items():
        full = f"{name}.{key}"
        if key not in known:
            problems.append(SettingProblem(label, full, f"unknown; there are {', '.join(known)}"))
            continue
        if value is None:
            # Editors send null for what is not set.
            continue
        try:
            checked = _value(value, known[key], types[key])
            if not trusted:
                checked = _allowed_to_workspace(checked, known[key], getattr(section, key))
        except ValueError as error:
            problems.append(SettingProblem(label, full, str(error)))
        else:
            yield key, checked


def _value(value: Any, spec: Field[Any], kind: Any) -> Any:
    """The value in the field's type. Raises ValueError with what is allowed."""
    rules = spec.metadata
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if rules.get("of") is str:
        return _strings(value)
    if rules.get("of") is bool or rules.get("table"):
        return _table(value, rules)
    if "choices" in rules and (isinstance(value, str) or "low" not in rules):
        return _choice(value, rules)
    if bool in kinds:
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value
    if "low" in rules:
        return _number(value, rules, whole=int in kinds)
    if not isinstance(value, str) or not value:
        raise ValueError("must be a string that is not empty")
    return Path(value).expanduser() if Path in kinds else value


def _choice(value: Any, rules: Mapping[str, Any]) -> str:
    if value not in rules["choices"]:
        number = _bounds(rules, " or a number") if "low" in rules else ""
        raise ValueError(f"must be one of {', '.join(rules['choices'])}{number}")
    return str(value)


def _table(value: Any, rules: Mapping[str, Any]) -> dict[str, Any]:
    """Names to values."""
    levels = "choices" in rules
    each = f"{', '.join(rules['choices'])}{_bounds(rules, ' or a number')}" if levels else "true or false"
    if not isinstance(value, Mapping) or not (levels or all(isinstance(said, bool) for said in value.values())):
        raise ValueError(f"must be a table of names, each {each}")
    return {str(name): _level(said, rules) if levels else said for name, said in value.items()}


def _level(value: Any, rules: Mapping[str, Any]) -> str | float:
    return _choice(value, rules) if isinstance(value, str) else _number(value, rules, whole=False)


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ValueError("must be a list of strings")
    return tuple(value)


def _number(value: Any, rules: Mapping[str, Any], *, whole: bool) -> int | float:
    right = isinstance(value, int) if whole else isinstance(value, int | float)
    if not right or isinstance(value, bool) or not math.isfinite(value) or not rules["low"] <= value <= rules["high"]:
        names = f"{', '.join(rules['choices'])} or " if rules.get("choices") else ""
        raise ValueError(_bounds(rules, f"must be {names}a {'whole ' if whole else ''}number"))
    return int(value) if whole else float(value)


def _bounds(rules: Mapping[str, Any], what: str) -> str:
    return f"{what} from {rules['low']} to {rules['high']}"


def _allowed_to_workspace(value: Any, spec: Field[Any], now: Any) -> Any:
    """What a file of the workspace, which may be anybody's, is allowed to say. Raises ValueError."""
    if spec.metadata.get("user"):
        raise ValueError("may only be set in your own settings, not by a workspace")
    if spec.metadata.get("limit"):
        bound = now if now is not None else spec.metadata["high"]
        if value > bound:
            raise ValueError(f"a workspace may lower this limit, not raise it above {bound}")
    if spec.metadata.get("of") is str:
        if any(pattern.lstrip().startswith("!") for pattern in value):
            raise ValueError("a workspace may add patterns, not let files in again with `!`")
        return (*now, *value)
    return value

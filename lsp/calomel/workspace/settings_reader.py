"""The one reader of settings: what a field is, which files and values count, and what is said about the others."""

from __future__ import annotations

import difflib
import math
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from calomel.storage import is_own, open_regular, rights_of_others

# The table of `calomel serve`; it counts only in the user's own file, or in one that the user names.
SERVE: Final = "serve"
# Tables by their earlier names, which are read as well.
RENAMED: Final[Mapping[str, str]] = {"server": "backend"}
# A settings file is a page long; something larger is something else.
_MAX_BYTES: Final = 64 * 1024
_OTHERS_READ: Final = stat.S_IRGRP | stat.S_IROTH
# Every file is compared with every pattern.
_MOST_PATTERNS: Final = 1_000
_LONGEST_NAME: Final = 64


def setting(default: Any, why: str, *, user: bool = False, limit: bool = False, secret: bool = False) -> Any:
    """A field with its reason, for the documentation; its type says what it takes.

    Args:
        default: its value where nobody sets it.
        why: what it is for.
        user: a workspace may not set it.
        limit: a workspace may only lower it.
        secret: it is never shown, and a file with it must be readable for its owner alone.
    """
    metadata = {"why": why, "user": user, "limit": limit, "secret": secret}
    if isinstance(default, dict):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, repr=not secret, metadata=metadata)


@cache
def types_of(kind: type) -> Mapping[str, Any]:
    """The types of a table's settings, with their bounds."""
    return get_type_hints(kind, include_extras=True)


@dataclass(frozen=True, slots=True)
class Source:
    """Where values come from.

    Attributes:
        label: its name in messages.
        folder: relative paths start there; None: in the current folder.
        workspace: it comes with a workspace, or may, so it may be anybody's.
        text: its values are text, as in the environment.
    """

    label: str
    folder: Path | None = None
    workspace: bool = False
    text: bool = False


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One wrong setting, as a message: where, which, and what is allowed. It never repeats the value."""

    source: str
    name: str
    message: str

    def __str__(self) -> str:
        """One sentence."""
        return f"{self.source}: {self.name}: {self.message}" if self.name else f"{self.source}: {self.message}"


def read_file(
    path: Path, source: Source, kinds: Mapping[str, type], problems: list[SettingProblem]
) -> dict[str, Any] | None:
    """The tables of a file that count; None if there is no file.

    Args:
        path: of the file.
        source: how it is named, and whose it is.
        kinds: the tables that the caller uses. One with a secret that others can read does not count.
        problems: gets why less than all of the file counts.
    """
    found: dict[str, Any] = {}
    try:
        found, problem = _read(path, source, kinds, problems)
    except FileNotFoundError:
        return None
    except RecursionError:
        problem = "is nested too deeply, so Calomel did not read it"
    except (OSError, RuntimeError) as error:
        # A link that leads to itself is an error of either kind.
        problem = f"not readable ({getattr(error, 'strerror', None) or 'a link to itself'})"
    except UnicodeDecodeError:
        problem = "is not UTF-8"
    except tomllib.TOMLDecodeError as error:
        problem = f"is not valid TOML: {error}"
    if problem:
        problems.append(SettingProblem(source.label, "", problem))
    return found


def _read(
    path: Path, source: Source, kinds: Mapping[str, type], problems: list[SettingProblem]
) -> tuple[dict[str, Any], str]:
    """What a file says, and why less than all of it counts.

    A workspace's must lie in its folder. Whatever others may write at any time only hides more.
    """
    if source.workspace and not path.resolve().is_relative_to(path.parent.resolve()):
        return {}, "is a link that leads outside the folder, so Calomel did not read it"
    with open_regular(path) as file:
        status, data = os.fstat(file.fileno()), file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        return {}, f"larger than {_MAX_BYTES // 1024} KB, so Calomel did not read it"
    tables = tomllib.loads(data.decode("utf-8"))
    if _others_write(status, source):
        if source.workspace:
            kept = {name: value for name, value in tables.items() if name == "privacy"}
            return kept, "other users can change it, so only its privacy rules count; use `chmod o-w` or `chown`"
        return {}, "other users can change it, so Calomel did not read it; use `chmod go-w` or `chown`"
    for name, kind in (*kinds.items(), *((old, kinds[new]) for old, new in RENAMED.items() if new in kinds)):
        values = tables.get(name)
        secrets = [each.name for each in fields(kind) if each.metadata["secret"]]
        secret = next((each for each in secrets if isinstance(values, dict) and each in values), None)
        if secret and rights_of_others(status, _OTHERS_READ) and not source.workspace:
            hint = f"use `chmod 600` or {RENAMED.get(name, name)}.{secret}_file"
            message = f"other users can read it, so Calomel did not use [{name}]; {hint}"
            problems.append(SettingProblem(source.label, f"{name}.{secret}", message))
            tables[name] = {}
    return tables, ""


def _others_write(status: os.stat_result, source: Source) -> bool:
    """Whether somebody else may change the file at any time.

    People who share a folder may share a group. A group of the same number as its user has nobody else in it; where
    every user has one, as on Ubuntu and Fedora, new files are writable for it.
    """
    shared = source.workspace or status.st_gid == status.st_uid
    owned = is_own(status) or status.st_uid == 0
    return not owned or rights_of_others(status, stat.S_IWOTH if shared else stat.S_IWGRP | stat.S_IWOTH)


def tables(
    given: Mapping[str, Any], kinds: Mapping[str, type], source: Source, problems: list[SettingProblem]
) -> dict[str, Mapping[str, Any]]:
    """The tables among what a source says; `problems` gets whatever else is there."""
    found = {}
    for name, values in _by_present_names(given, kinds, source, problems).items():
        owners = [f"[{table}]" for table, kind in kinds.items() if name.replace("-", "_") in types_of(kind)]
        if name in kinds and isinstance(values, Mapping):
            found[name] = values
            continue
        if name in kinds:
            message = "must be a table of settings"
        elif name == SERVE:
            message = "belongs in your own calomel.toml"
        else:
            message = f"belongs in the table {' or '.join(owners)}" if owners else _unknown(name, kinds)
        problems.append(SettingProblem(source.label, _plain(name), message))
    return found


def _by_present_names(
    given: Mapping[str, Any], kinds: Mapping[str, type], source: Source, problems: list[SettingProblem]
) -> dict[str, Any]:
    """What a source says, with its tables under the names that they have now, whose settings win."""
    found = dict(given)
    for earlier, name in RENAMED.items():
        if name in kinds and isinstance(old := found.get(earlier), Mapping):
            new = found.get(name, {})
            if isinstance(new, Mapping):
                found = {each: values for each, values in found.items() if each != earlier}
                found[name] = {**old, **new}
                problems.append(SettingProblem(source.label, earlier, f"is now called {name}: rename the table"))
    return found


def checked(
    section: Any, table: str, values: Mapping[str, Any], source: Source, problems: list[SettingProblem]
) -> dict[str, Any]:
    """The values that count, in the types of their fields; `problems` gets the others.

    Args:
        section: the table as earlier sources say; a workspace may lower its limits.
        table: its name in messages; empty where the source's label names the setting.
        values: by name; None sets nothing, as editors send it for what is not set.
        source: where the values come from.
        problems: gets what is wrong.
    """
    types, rules = types_of(section.__class__), {each.name: each.metadata for each in fields(section)}
    found = {}
    for name, value in values.items():
        try:
            if name not in types:
                raise ValueError(_unknown(name, types))  # noqa: TRY301 (as for other wrong values)
            if value is None:
                continue
            taken = _value(name, value, types[name], source)
            if source.workspace:
                most = allowed(types[name]).high
                taken = _allowed_to_workspace(taken, rules[name], most, getattr(section, name))
            found[name] = taken
        except ValueError as error:
            problems.append(SettingProblem(source.label, f"{table}.{_plain(name)}" if table else "", str(error)))
    return found


def _plain(name: str) -> str:
    """A name that anybody may have written, on one line."""
    return ascii(name[:_LONGEST_NAME])[1:-1]


def _unknown(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name.replace("-", "_"), known, 1)
    return f"unknown; did you mean {near[0]}?" if near else "unknown; `calomel config reference` lists all settings"


def _value(name: str, value: Any, kind: Any, source: Source) -> Any:
    """The value in a field's type. Raises ValueError with what is allowed."""

    def path(wanted: Any, given: Any) -> Path:
        if wanted is not Path or not isinstance(given, str | Path) or not str(given):
            raise ValueError
        return _located(given, source.folder, or_name=name in {"model", "edit_model"})

    if source.text and isinstance(value, str) and get_origin(kind) is tuple:
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        if isinstance(value, float) and math.isnan(value):
            raise ValueError  # noqa: TRY301 (as for other wrong values)
        return msgspec.convert(value, kind, strict=not source.text, dec_hook=path)
    except ValueError:
        raise ValueError(f"must be {wanted(kind)}") from None


def _located(given: str | Path, folder: Path | None, *, or_name: bool) -> Path:
    """A path, relative to `folder`. With `or_name`, it is a name unless it has a slash and exists there."""
    try:
        path = Path(given).expanduser()
    except RuntimeError:  # there is no such user
        path = Path(given)
    if folder is None:
        return path
    there = folder / path
    # `Path.exists` raises for names that no file can have.
    return path if or_name and not ("/" in str(given) and os.path.exists(there)) else there  # noqa: PTH110


class Allowed(NamedTuple):
    """The words that a type takes, and its numbers: their type, the lowest and the highest."""

    words: tuple[str, ...] = ()
    number: type[float] | None = None
    low: float = 0
    high: float = 0


def allowed(kind: Any) -> Allowed:
    """The words and the numbers of a setting's type; of a table's, those of its values."""
    if get_origin(kind) is Mapping:
        return allowed(get_args(kind)[1])
    result = Allowed()
    for each in get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,):
        if get_origin(each) is Literal:
            result = result._replace(words=get_args(each))
        elif get_origin(each) is Annotated and (rules := get_args(each)[1]).ge is not None:
            result = result._replace(number=get_args(each)[0], low=rules.ge, high=rules.le)
    return result


def wanted(kind: Any) -> str:
    """The allowed values, in words."""
    if get_origin(kind) is tuple:
        return f"a list of {_described(get_args(kind)[0]) or 'strings'}"
    if get_origin(kind) is Mapping:
        return f"a table of names, each {wanted(get_args(kind)[1])}"
    words, number, low, high = allowed(kind)
    numbers = "" if number is None else f"a {'whole ' if number is int else ''}number from {low} to {high}"
    if words:
        return f"{', '.join(words)} or {numbers}" if numbers else f"{'one of ' * (len(words) > 1)}{', '.join(words)}"
    if Path in (kind, *get_args(kind)):
        return "a path"
    return "true or false" if kind is bool else numbers or _described(kind) or "a string that is not empty"


def _described(kind: Any) -> str | None:
    return next((rules.description for rules in get_args(kind)[1:] if isinstance(rules, msgspec.Meta)), None)


def _allowed_to_workspace(value: Any, rules: Mapping[str, Any], most: float, now: Any) -> Any:
    """The value, if a workspace, which may be anybody's, is allowed to set it. Raises ValueError.

    What is so already is no change: some editors send what the user configured once more, where a workspace may, too.
    """
    if value == now:
        return value
    if rules["user"]:
        raise ValueError("is ignored here, because a repository could set it: set it in your own calomel.toml")
    if rules["limit"]:
        bound = most if now is None else now
        if value > bound:
            raise ValueError(f"a workspace may lower this limit, not raise it above {bound}")
    if isinstance(value, tuple):
        if any(pattern.lstrip().startswith("!") for pattern in value):
            raise ValueError("a workspace may add patterns, but not include files with `!`")
        if len(value) > _MOST_PATTERNS:
            raise ValueError(f"a workspace may add {_MOST_PATTERNS} patterns, not {len(value)}")
        return (*now, *value)
    return value

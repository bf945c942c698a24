"""`calomel config`: the settings that the server would use, the source of each, and a reference of all settings."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import typer

from calomel.cli.options import AsJson, Config
from calomel.cli.output import columns, markdown

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

config = typer.Typer(help="Show settings: the server's, or every one.", no_args_is_help=True, rich_markup_mode=None)


@config.command()
def show(
    file: Config = None,
    as_json: AsJson = False,
) -> None:
    """Every setting of `calomel serve`, its value and where it came from; secrets are hidden."""
    from calomel.server.settings import DEFAULT, load, shown

    layered = load({}, file)
    rows = [(name, shown(layered, name), origin) for name, origin in layered.origins.items()]
    if as_json:
        print(json.dumps({name: {"value": value, "from": origin} for name, value, origin in rows}, indent=2))
    else:
        print(columns((name, value, "" if origin == DEFAULT else origin) for name, value, origin in rows))


@config.command()
def path(file: Config = None) -> None:
    """Where the settings file is, or would be."""
    from calomel.server.settings import named_path

    print(file or named_path())


@config.command()
def reference() -> None:
    """Every setting of editors and server, with type, default, bounds and reason, as a page of Markdown."""
    print(reference_page(), end="")


_HEAD: Final = """\
# Every setting

Made by `calomel config reference` out of the models that check the settings; do not edit. [settings.md](settings.md)
and [configuration.md](configuration.md) say how settings are given, and which of several wins.
"""
_EDITORS: Final = """\
## The editors' side

Tables of `calomel.toml`, members of `initializationOptions`, or settings of the editor below `calomel`. *Yours* is what
no workspace can set; *limits* a workspace can only lower.

"""
_SERVER: Final = """\
## The server's side

Names in the table `[serve]` of your own `calomel.toml`, and environment variables.

"""
_NAMES: Final = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path"}
_BOUNDS: Final = {"ge": "from {}", "gt": "above {}", "le": "to {}", "lt": "below {}"}


def reference_page() -> str:
    """The page of `calomel config reference`."""
    editors = markdown(("setting", "type", "default", "rules", "why"), _editors())
    server = markdown(("setting", "variable", "type", "default", "bounds", "why"), _server())
    return "\n".join((_HEAD, _EDITORS + editors, _SERVER + server))


def _editors() -> Iterator[tuple[str, ...]]:
    from calomel.workspace.settings import Settings

    for section in dataclasses.fields(Settings):
        kind = type(getattr(Settings(), section.name))
        hints = get_type_hints(kind)
        for each in dataclasses.fields(kind):
            default = getattr(kind(), each.name)
            name = f"`{section.name}.{each.name}`"
            words = _type(hints[each.name])
            if words == _NAMES[str] and "choices" in each.metadata:
                words = _type(Literal[each.metadata["choices"]])
            yield name, words, _default(default), _rules(each.metadata), str(each.metadata["why"])


def _rules(rules: Mapping[str, Any]) -> str:
    told = [f"{rules['low']:,} to {rules['high']:,}"] if "low" in rules else []
    told += ["yours"] if rules.get("user") else []
    told += ["limit"] if rules.get("limit") else []
    return ", ".join(told)


def _server() -> Iterator[tuple[str, ...]]:
    from calomel.server.settings import ServerSettings

    prefix = ServerSettings.model_config.get("env_prefix", "")
    for name, each in ServerSettings.model_fields.items():
        names, why = (f"`{name}`", f"`{prefix}{name.upper()}`"), " ".join((each.description or "").split())
        yield (*names, _type(each.annotation), _default(each.default), _bounds(each), why)


def _bounds(field: FieldInfo) -> str:
    told = [
        shape.format(f"{getattr(rule, name):,}")
        for rule in field.metadata
        for name, shape in _BOUNDS.items()
        if getattr(rule, name, None) is not None
    ]
    return " ".join(told)


def _type(kind: Any) -> str:
    """The type in words that users know."""
    from pydantic import SecretStr

    if kind in _NAMES or kind is SecretStr:
        return _NAMES.get(kind, "text")
    origin, inner = get_origin(kind), [each for each in get_args(kind) if each is not type(None)]
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in inner)
    if origin in {Union, types.UnionType}:
        return ", or ".join(dict.fromkeys(_type(each) for each in inner))
    if origin is tuple:
        return "list of texts"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"table of names, each {_type(inner[1])}"
    # `Annotated`: the annotated type counts.
    return _type(inner[0]) if inner else str(kind)


def _default(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | dict):
        return "none" if not value else f"`{list(value)}`"
    return f"`{value}`"

"""The model for all editors, as the user's own calomel.toml names it, and editors whose own settings name another."""

from __future__ import annotations

import asyncio
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from calomel.cli.checks import check_folder
from calomel.cli.editor import Here, mentioned, read, settings_of, zed_settings
from calomel.cli.editor_checks import info_of, nested, snake_case, vs_code_settings
from calomel.cli.output import CommandError, InputError, without_credentials
from calomel.infer import llama_cpp
from calomel.infer.completer import CompleterError
from calomel.infer.extras import has_engine, installing_engine
from calomel.infer.launch import model_folder
from calomel.storage import write_whole
from calomel.weights import gguf_in
from calomel.weights.folders import (
    SHIPPED,
    ModelFolder,
    ModelNameError,
    folder_of,
    is_model,
    known,
    of_others,
    why_none,
)
from calomel.weights.gguf import GgufError, check_gguf
from calomel.workspace.settings import CHOICE, EDIT_CHOICE, BackendSettings, load_settings, user_settings_path

# Settings that say where an upstream is and how it is asked; they stay while its address does.
_OF_AN_UPSTREAM: Final = ("upstream_format", "upstream_key_file")
_PLACES: Final = frozenset({"url", "model", "upstream"})
# Written with a choice that names it; another choice leaves it.
_DEVICE: Final = "device"
# By its earlier name, too, which gives way to the present one.
_HEADER: Final = re.compile(r"""([ \t]*\[[ \t]*(["']?))(backend|server)(\2[ \t]*\][ \t]*(?:#.*)?\s*)""")
_NEXT: Final = re.compile(r"[ \t]*\[")
_NAMES: Final = "|".join((*CHOICE, _DEVICE))
_SET: Final = re.compile(rf"""([ \t]*(["']?)({_NAMES})\2[ \t]*=[ \t]*)("(?:[^"\\]|\\.)*"|'[^']*')?(.*\s*)""")
# A server that gives such an answer may give another one later.
_LATER: Final = frozenset({"loading", "overloaded", "timeout", "unreachable"})
_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")


def choice() -> BackendSettings:
    """What the user's file chooses."""
    return load_settings(user_toml=user_settings_path())[0].backend


def described(server: BackendSettings) -> str:
    """The model of these settings, or the two, in words."""
    other = server.for_edits
    if other is not None:
        return f"{described(server.for_text)}, and {described(other)} for next edits,"
    if server.url is not None:
        return f"the server at {without_credentials(server.url)}"
    if server.upstream is not None:
        return f"{server.upstream_model or 'the model'} at {without_credentials(server.upstream)}"
    return str(server.model or SHIPPED)


def is_of(server: BackendSettings, model: ModelFolder) -> bool:
    """Whether these settings choose a model of this machine."""
    chosen = str(server.model or SHIPPED)
    names = chosen == str(model.path) or chosen.replace("/", "--") == model.name.replace("/", "--")
    return names and server.url is None and server.upstream is None


_UNPACKS: Final = ("gguf", "transformers")


def unpacks() -> bool:
    """Whether the packages are here that unpack a GGUF file for Calomel's own engine."""
    return all(find_spec(package) for package in _UNPACKS)


def runs_in(place: Path, family: str) -> str:
    """What would run a model, or what is missing, in words."""
    if llama_cpp.opens(place):
        return "llama.cpp"
    if gguf_in(place) is not None:
        return "own engine, if Llama, Qwen2 or Qwen3" if unpacks() else "needs Calomel's extra llama"
    if family == "unknown":
        return "nothing here"
    return "own engine" if has_engine() else "needs Calomel's extra engine"


def is_same(one: BackendSettings, other: BackendSettings) -> bool:
    """Whether both choose the same model."""
    return _choice_of(one) == _choice_of(other)


def _choice_of(server: BackendSettings) -> list[Any]:
    plain = replace(server, model=None) if str(server.model) == SHIPPED else server
    return [getattr(plain, name) for name in CHOICE]


def choose(wanted: Mapping[str, str]) -> Path:
    """Write the choice into the user's file, whose other lines stay as they are; returns its path.

    Raises InputError for a file that cannot be read or edited, CommandError for one that does not count, OSError.
    """
    path = user_settings_path()
    text, before = read(path), choice()
    same = wanted.get("upstream") is not None and wanted["upstream"] == before.upstream
    kept = tuple(name for name in _OF_AN_UPSTREAM if same and name not in wanted)
    if any(name in EDIT_CHOICE for name in wanted):
        kept = tuple(name for name in CHOICE if name not in EDIT_CHOICE)
    new = _edited(path, text or "", wanted, kept)
    if text != new:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, new, mode=0o600 if text is None else None)
    settings, problems = load_settings(user_toml=path)
    if any(str(getattr(settings.backend, name)) != value for name, value in wanted.items()):
        raise CommandError(f"{path} names the model, but does not count: {'; '.join(map(str, problems))}")
    return path


def _edited(path: Path, text: str, wanted: Mapping[str, str], kept: tuple[str, ...]) -> str:
    """The text with this choice. Raises InputError unless that is all that changes, as a TOML parser reads it."""
    lines = "".join(f"{name} = {_quoted(value)}\n" for name, value in wanted.items())
    by_hand = f"write this there, under [backend]: {'; '.join(lines.splitlines())}"
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not valid TOML: {error}", "correct it, then run this again") from None
    if "backend" not in tables and "server" in tables:
        tables["backend"] = tables.pop("server")
    section = tables.get("backend", {})
    if not isinstance(section, dict):
        raise InputError(f"{path}: backend is not a table", by_hand)
    rest = {name: value for name, value in section.items() if name not in CHOICE or name in kept}
    new = _with_lines(text, dict(wanted), kept)
    try:
        right = tomllib.loads(new) == {**tables, "backend": {**rest, **wanted}}
    except tomllib.TOMLDecodeError:
        right = False
    if not right:
        raise InputError(f"{path} writes [backend] in a form that this command does not edit", by_hand)
    return new


def _with_lines(text: str, wanted: dict[str, str], kept: tuple[str, ...]) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    lines = _LINES.findall(text)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += end
    start = next((number for number, line in enumerate(lines, 1) if _HEADER.fullmatch(line)), None)
    if start is None:
        lines += [end] * bool(lines) + [f"[backend]{end}"]
        start = len(lines)
    lines[start - 1] = _HEADER.sub(r"\1backend\4", lines[start - 1])
    stop = next((number for number in range(start, len(lines)) if _NEXT.match(lines[number])), len(lines))
    body = []
    for line in lines[start:stop]:
        found = _SET.fullmatch(line)
        if found is None or found[3] in kept or (found[3] == _DEVICE and _DEVICE not in wanted):
            body.append(line)
        elif found[3] in wanted:
            body.append(found[1] + _quoted(wanted.pop(found[3])) + found[5])
    added = [f"{name} = {_quoted(value)}{end}" for name, value in wanted.items()]
    return "".join([*lines[:start], *added, *body, *lines[stop:]])


def _quoted(value: str) -> str:
    """As a basic string of TOML, whose escapes are those of JSON. Raises InputError."""
    if not value.isprintable():
        raise InputError(f"{value!r} has characters that no settings file can hold")
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Own:
    """An editor that does not follow the user's file.

    Attributes:
        editor: its name.
        model: what it asks instead, in words; empty where only the editor knows.
        advice: how to let it follow.
    """

    editor: str
    model: str
    advice: str

    @property
    def told(self) -> str:
        """In one line."""
        asks = f" (it asks {self.model})" if self.model else ""
        return f"{self.editor} does not follow{asks}: {self.advice}"


def own_choices(here: Here) -> Iterator[Own]:
    """The editors whose own settings name another model than the user's file."""
    path = user_settings_path()
    ours = choice()
    for each, values in vs_code_settings(here):
        server, _ = load_settings(user_toml=path, configuration=nested(values), filtered=True)
        names = ", ".join(key for key in values if snake_case(key.removeprefix("calomel.backend.")) in CHOICE)
        if not is_same(server.backend, ours):
            advice = f"remove {names or 'calomel.backend'} from {each.settings(here)}"
            yield Own(each.name, described(server.backend), advice)
    yield from _neovims(here, ours)
    predictions = (settings_of(zed_settings(here)) or {}).get("edit_predictions")
    if isinstance(predictions, Mapping) and predictions.get("provider") == "open_ai_compatible_api":
        yield Own("Zed", "", f"it asks `calomel serve`: set model under [serve] in {path}, or use --model")


_LUA: Final = re.compile(r"\b(?:backend|server)\s*=\s*\{[^{}]*?\b(?:url|model|upstream)\s*=")


def _neovims(here: Here, ours: BackendSettings) -> Iterator[Own]:
    name = os.environ.get("NVIM_APPNAME") or "nvim"
    kept = Path(os.environ.get("XDG_DATA_HOME") or here.home / ".local" / "share") / name / "calomel" / "model.json"
    options = (settings_of(kept) or {}).get("choice")
    if isinstance(options, Mapping) and any(options.get(place) for place in _PLACES):
        path = user_settings_path()
        server = load_settings(user_toml=path, initialization_options={"backend": options})[0].backend
        if not is_same(server, ours):
            yield Own("Neovim", described(server), f"that was chosen with :CalomelModel; to undo it: rm {kept}")
    place = mentioned(here.config / name)
    if place is not None and _LUA.search(read(place) or ""):
        yield Own("Neovim", "", f"remove the model from settings.backend in {place}, unless it is the same")


def name_of(model: str) -> str:
    """How settings name a model: by its name, else by its whole path. Raises InputError for one that cannot run."""
    path = Path(os.path.expanduser(model))  # noqa: PTH111 (which raises no error for an unknown user)
    name = str(path.absolute()) if "/" in model and path.exists() else model
    try:
        place = model_folder(Path(name))
    except CompleterError:
        if not path.exists():
            names = dict.fromkeys(each.name for each in (*known(), *of_others()))
            raise InputError(f"found no model {model}", f"one of {', '.join(names)}, or a path") from None
        place = path.absolute()
        name = str(place)
    if place is None:
        return name
    if llama_cpp.opens(place):
        try:
            check_gguf(gguf_in(place) or place)
        except GgufError as error:
            raise InputError(str(error), "fetch it again") from None
        return name
    if not place.exists():
        raise InputError(f"{place} does not exist")
    if gguf_in(place) is not None:
        _open_packed(name, place)
        return name
    if not is_model(place):
        raise InputError(why_none(place))
    files = check_folder(place)
    if files.level != "ok":
        raise InputError(files.found)
    return name


def _open_packed(name: str, place: Path) -> None:
    """Raise InputError for a GGUF file that nothing here opens."""
    try:
        folder_of(name)
    except ModelNameError as error:
        advice = "" if find_spec("xllamacpp") else "install Calomel's extra `llama`: see docs/install.md#extras"
        raise InputError(f"{place}: {error}" if str(place) not in str(error) else str(error), advice) from None


def why_missing(model: str) -> str:
    """Why nothing here runs a model by this name, in words; empty if something does."""
    if model != SHIPPED or has_engine():
        return ""
    return f"Calomel's own engine is not installed: {installing_engine()}"


def asked(wanted: Mapping[str, str]) -> tuple[str, str]:
    """The model that an upstream answers with, and why it does not answer now, in words; one of them is empty.

    Raises InputError if it answers otherwise than these settings want.
    """
    before = choice()
    given = BackendSettings(allow_http=before.allow_http, **wanted)  # type: ignore[arg-type]
    if before.upstream == given.upstream:
        given = replace(given, **{name: getattr(before, name) for name in _OF_AN_UPSTREAM if name not in wanted})
    try:
        return asyncio.run(info_of(given)).id, ""
    except TimeoutError:
        return "", "it takes too long"
    except CompleterError as error:
        if error.code not in _LATER:
            raise InputError(str(error)) from None
        return "", str(error)

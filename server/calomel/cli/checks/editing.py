"""What editors are told by the user's settings: which model, where, and in which files nothing is suggested."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calomel.cli.checks.finding import Finding, fail, ok, warn
from calomel.suggest.completer import Completer, CompleterError
from calomel.suggest.silence import Silence, SilenceReason
from calomel.workspace.settings import SettingProblem, Settings, load_settings

_ANSWER_SECONDS: Final = 5.0
# Parts of an editor's own settings that are no settings of the language server.
_NONE_OF_OURS: Final = frozenset({"path", "editor"})
_ADVICE: Final = {
    "unreachable": "start it: calomel serve; or take server.url out, and editors start one for themselves",
    "timeout": "see whether it hangs: its log, its status page",
}
_REFUSED: Final = "server.url, server.token and server.token_file say where editors ask, and with what"
# Files that no setting makes fit for a model.
_UNFIT: Final = frozenset({"binary", "too_large", "unreadable"})


@dataclass(frozen=True, slots=True)
class Side:
    """Settings as one editor has them.

    Attributes:
        name: of the file that says so.
        settings: all of them, defaults included.
        problems: what is wrong in it.
    """

    name: str
    settings: Settings
    problems: tuple[SettingProblem, ...]


def sides(user_toml: Path, editors: Mapping[str, Mapping[str, Any]], folder: Path | None = None) -> list[Side]:
    """The settings of every editor, and those of VS Code where it has others.

    Args:
        user_toml: the user's own file.
        editors: flat settings of each relative of VS Code, by its name.
        folder: whose `calomel.toml` counts, too.
    """
    workspace = None if folder is None else folder / "calomel.toml"
    settings, problems = load_settings(user_toml=user_toml, workspace_toml=workspace)
    found = [Side(user_toml.name, settings, tuple(problems))]
    for name, values in editors.items():
        settings, problems = load_settings(user_toml=user_toml, workspace_toml=workspace, configuration=_nested(values))
        if settings != found[0].settings or len(problems) > len(found[0].problems):
            found.append(Side(name, settings, tuple(problems[len(found[0].problems) :])))
    return found


def check_sides(found: list[Side]) -> Iterator[Finding]:
    """Whether settings are right, suggestions are on, and the model that editors ask is there."""
    for side in found:
        for problem in side.problems:
            yield warn("editors' settings", str(problem), "its default is used; calomel config reference has all")
        yield from _suggestions(side)
        yield _model(side)


def check_file(file: Path, found: list[Side], folder: Path | None) -> Iterator[Finding]:
    """Whether something may be suggested in a file, and which rule or setting says no."""
    from calomel.workspace.languages import grammar_of
    from calomel.workspace.privacy import Privacy

    if not file.is_file():
        yield fail("file", f"{file} is no file", "name one that is there")
        return
    grammar = grammar_of(None, str(file))
    languages = (file.suffix.removeprefix("."),) if grammar is None else grammar.ids
    silent = False
    for side in found:
        verdict = Privacy(() if folder is None else (folder,), side.settings.privacy).allowed(file)
        off = [each for each in languages if not side.settings.suggest.language_enabled(each)]
        if not verdict.allowed:
            silent = True
            yield warn(
                "file",
                f"{file}: {Silence.kept(verdict.reason).message}",
                "no model could make use of it"
                if verdict.reason in _UNFIT
                else f'privacy.ignore = ["!{file.name}"] in your own settings lets it in, if you are sure',
            )
        elif off:
            silent = True
            yield warn(
                "file",
                f"{file}: {SilenceReason.OFF_LANGUAGE.message} ({', '.join(off)}, in {side.name})",
                f"suggest.languages = {{ {off[0]} = true }}",
            )
    if not silent:
        yield ok("file", f"{file}: nothing is in the way")


def around(file: Path) -> Path | None:
    """The folder of the project that a file is in."""
    return next((each for each in file.parents if (each / ".git").exists() or (each / "calomel.toml").exists()), None)


def _suggestions(side: Side) -> Iterator[Finding]:
    suggest = side.settings.suggest
    if not suggest.enabled:
        yield warn("suggestions", f"turned off in {side.name}", "suggest.enabled = true")
        return
    off = sorted(name for name, on in suggest.languages.items() if not on)
    if off:
        yield ok("suggestions", f"off in {side.name} for {', '.join(off)}")
    if not suggest.next_edit:
        yield ok("suggestions", f"no next edits: suggest.next_edit in {side.name}")


def _model(side: Side) -> Finding:
    from calomel.weights import nano_path

    server = side.settings.server
    if server.url is None:
        folder = server.model or nano_path()
        if not (folder / "config.json").is_file():
            return fail(
                "editors' model",
                f"there is no model in {folder}, which server.model in {side.name} names",
                "name another, or take server.model out for the shipped one",
            )
        return ok("editors' model", f"{folder}, in a server that the first editor starts")
    try:
        name = asyncio.run(_asked(side))
    except TimeoutError:
        return fail("editors' model", f"what listens at server.url of {side.name} says nothing", _ADVICE["timeout"])
    except CompleterError as error:
        return fail("editors' model", f"{error} (server.url in {side.name})", _ADVICE.get(error.code, _REFUSED))
    return ok("editors' model", f"{name}, at server.url of {side.name}")


async def _asked(side: Side) -> str:
    """Ask the configured server as an editor does. Raises CompleterError with the editor's own sentence."""
    from calomel.suggest.launch import connect

    completer: Completer = await connect(side.settings.server)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return (await completer.info()).id
    finally:
        await completer.aclose()


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """`calomel.a.b` of an editor's flat settings, as sections."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        head, _, rest = key.partition(".")
        section, _, name = rest.partition(".")
        if head == "calomel" and section and section not in _NONE_OF_OURS:
            if name:
                found.setdefault(section, {})[name] = value
            elif isinstance(value, Mapping):
                found.setdefault(section, {}).update(value)
    return found

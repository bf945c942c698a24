"""The part of `calomel doctor` about editors: their settings, the model that they ask, whether it is this server's."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from calomel.cli import jsonc
from calomel.cli.checks import Finding, fail, ok, warn
from calomel.server.settings import ServerSettings
from calomel.suggest.completer import Completer, CompleterError
from calomel.suggest.remote import is_loopback
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


_MAX_BYTES: Final = 1024 * 1024
_MAX_FILES: Final = 500
_VS_CODES: Final = {
    "VS Code": "Code",
    "VS Code Insiders": "Code - Insiders",
    "VSCodium": "VSCodium",
    "Cursor": "Cursor",
}
# Settings of Zed that hold a server's address, below `edit_predictions`, and what our server understands there.
_ZED_FORMATS: Final = frozenset(
    {"zeta2", "zeta2_1", "qwen", "star_coder", "deepseek_coder", "code_gemma", "codestral", "glm", "code_llama"}
)
_INFERRED: Final = frozenset({"zeta2", "zeta2.1"})


def vs_code_settings() -> dict[str, Mapping[str, Any]]:
    """The user's settings of VS Code and its relatives, of those that are here and can be read."""
    config = _config()
    found = {name: _settings(config / folder / "User" / "settings.json") for name, folder in _VS_CODES.items()}
    return {name: values for name, values in found.items() if values}


def _config() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def check_editors(settings: ServerSettings) -> Iterator[Finding]:
    """Each editor that has a configuration here."""
    config = _config()
    if shutil.which("calomel") is None:
        yield warn("editors", "no program `calomel` on the PATH: editors cannot start it", "give them its full path")
    found = [*_neovim(config / "nvim"), *_vs_codes(config, settings), *_zed(config / "zed" / "settings.json", settings)]
    yield from found
    if not found:
        yield ok("editors", "no configuration of Neovim, VS Code or Zed here")


def _neovim(folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        return
    for number, path in enumerate(sorted([*folder.rglob("*.lua"), *folder.rglob("*.vim")])):
        if number == _MAX_FILES:
            break
        if "calomel" in _text(path):
            yield ok("Neovim", f"set up in {path}; :checkhealth calomel says more")
            return
    packages = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "nvim" / "site" / "pack"
    if any(packages.glob("*/*/calomel")):
        yield warn("Neovim", "the plugin is there, but not set up", 'require("calomel").setup() in init.lua')
    else:
        yield warn("Neovim", "Calomel is not set up", "see editors/neovim/README.md")


def _vs_codes(config: Path, settings: ServerSettings) -> Iterator[Finding]:
    for name, folder in _VS_CODES.items():
        path = config / folder / "User" / "settings.json"
        if not path.is_file():
            continue
        values = _settings(path)
        if values is None:
            yield warn(name, f"{path} cannot be read as JSON", "open it in the editor, which shows where it is wrong")
            continue
        urls = [value for key, value in values.items() if "calomel" in key and key.endswith(".url")]
        nested = values.get("calomel")
        if isinstance(nested, Mapping) and isinstance(nested.get("server"), Mapping):
            urls.append(nested["server"].get("url"))
        given = [url for url in urls if isinstance(url, str) and url]
        if given:
            yield from (_pointed(name, path, url, settings) for url in given)
        elif any("calomel" in key for key in values):
            yield ok(name, f"set up in {path}")


def _zed(path: Path, settings: ServerSettings) -> Iterator[Finding]:
    if not path.is_file():
        return
    values = _settings(path)
    predictions = None if values is None else values.get("edit_predictions")
    if values is None:
        yield warn("Zed", f"{path} cannot be read as JSON", "open it in Zed, which shows where it is wrong")
    elif not isinstance(predictions, Mapping) or predictions.get("provider") != "open_ai_compatible_api":
        yield warn(
            "Zed",
            f"edit_predictions.provider in {path} is not open_ai_compatible_api",
            "calomel editor setup zed shows what it should be, and writes it",
        )
    else:
        yield _zed_provider(path, predictions.get("open_ai_compatible_api"), settings)


def _zed_provider(path: Path, provider: object, settings: ServerSettings) -> Finding:
    if not isinstance(provider, Mapping) or not isinstance(provider.get("api_url"), str):
        return warn("Zed", f"{path} gives no api_url", "http://127.0.0.1:8017/v1/completions is this server's")
    url = str(provider["api_url"])
    if not urlsplit(url).path.endswith("/v1/completions"):
        return warn("Zed", f"api_url in {path} has another path", "it is used as it is: end it in /v1/completions")
    form, model = provider.get("prompt_format", "infer"), str(provider.get("model", ""))
    if form == "infer" and model.partition(":")[0] not in _INFERRED:
        return warn("Zed", "prompt_format cannot be inferred from this model name", 'set prompt_format to "zeta2_1"')
    if form != "infer" and form not in _ZED_FORMATS:
        return warn("Zed", "prompt_format is none that this server reads", 'set prompt_format to "zeta2_1"')
    return _pointed("Zed", path, url, settings)


def _pointed(name: str, path: Path, url: str, settings: ServerSettings) -> Finding:
    """Whether an address in an editor's settings is this server's."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return warn(name, f"{path} has an address that is none", "http://127.0.0.1:8017 is this server's")
    if parts.hostname is None or not is_loopback(parts.hostname):
        return ok(name, f"set up in {path}, for a server on another machine")
    wanted = "http" if settings.tls_cert is None else "https"
    if port != settings.port or parts.scheme != wanted:
        return warn(
            name,
            f"{path} points at {parts.scheme} port {port}, the server listens with {wanted} on port {settings.port}",
            "change one of them",
        )
    return ok(name, f"set up in {path}")


def _settings(path: Path) -> Mapping[str, Any] | None:
    try:
        values = jsonc.loads(_text(path) or "{}")
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, Mapping) else None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""

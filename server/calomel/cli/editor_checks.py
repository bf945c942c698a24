"""The part of `calomel doctor` about editors: their settings, the model they ask, and whether it is this server's."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from calomel.cli.checks import Finding, check_device, check_folder, fail, ok, warn
from calomel.cli.editor import VS_CODES, Here, VsCode, mentioned, settings_of, zed_settings
from calomel.infer.completer import CompleterError, ModelInfo
from calomel.infer.remote import is_loopback, to_answer, unanswered
from calomel.suggest.silence import Silence, SilenceReason
from calomel.workspace.settings import BackendSettings, Settings, load_settings
from calomel.workspace.settings_reader import SettingProblem

# An upstream is asked several questions.
_ANSWER_SECONDS: Final = 10.0
# Parts of an editor's own settings that are not settings of the language server.
_NONE_OF_OURS: Final = frozenset({"path", "editor"})
# Refusals of files that no setting can lift.
_UNFIT: Final = frozenset({"binary", "too_large", "unreadable"})


@dataclass(frozen=True, slots=True)
class Side:
    """Settings as one editor has them.

    Attributes:
        name: of the file they come from.
        settings: all of them, defaults included.
        problems: what is wrong in it.
        prefix: of the names of the settings that choose the model.
    """

    name: str
    settings: Settings
    problems: tuple[SettingProblem, ...]
    prefix: str = "backend."


def sides(
    user_toml: Path, editors: Sequence[tuple[VsCode, Mapping[str, Any]]], folder: Path | None = None
) -> list[Side]:
    """The settings of every editor, and those of VS Code if they differ.

    Args:
        user_toml: the user's own file.
        editors: VS Code and its relatives, each with its flat settings.
        folder: its `calomel.toml` counts, too.
    """
    workspace = None if folder is None else folder / "calomel.toml"
    settings, problems = load_settings(user_toml=user_toml, workspace_toml=workspace, most=None)
    layers = [Side(user_toml.name, settings, tuple(problems))]
    for editor, values in editors:
        settings, problems = load_settings(
            user_toml=user_toml, workspace_toml=workspace, configuration=nested(values), filtered=True, most=None
        )
        if settings != layers[0].settings or len(problems) > len(layers[0].problems):
            layers.append(Side(editor.name, settings, tuple(problems[len(layers[0].problems) :])))
    return layers


def check_sides(layers: list[Side]) -> Iterator[Finding]:
    """Whether settings are valid, suggestions are on, and the model that editors ask is there."""
    for side in layers:
        for problem in side.problems:
            yield warn(
                "editors' settings",
                str(problem),
                "Calomel uses the default; calomel config reference lists all settings",
            )
        yield from _suggestions(side)
        yield from _models(side)


def check_file(file: Path, layers: list[Side], folder: Path | None) -> Iterator[Finding]:
    """Whether suggestions are allowed in a file, and which rule or setting forbids them."""
    from calomel.code.languages import grammar_of
    from calomel.workspace.privacy import Privacy

    if not file.is_file():
        yield fail("file", f"{file} is not a file", "name an existing file")
        return
    grammar = grammar_of(None, str(file))
    languages = (file.suffix.removeprefix("."),) if grammar is None else grammar.ids
    found_one = False
    for side in layers:
        verdict = Privacy(() if folder is None else (folder,), side.settings.privacy).allowed(file)
        off = [each for each in languages if not side.settings.suggest.language_enabled(each)]
        found_one = found_one or not verdict.allowed or bool(off)
        if verdict.reason in _UNFIT:
            advice = "no suggestions appear in such files; nothing to do"
            yield warn("file", f"{file}: {Silence.kept(verdict.reason).message}", advice)
        elif not verdict.allowed:
            advice = f'privacy.ignore = ["!{file.name}"] in your own settings includes it, if you are sure'
            yield warn("file", f"{file}: {Silence.kept(verdict.reason).message}", advice)
        elif off:
            why = f"{SilenceReason.OFF_LANGUAGE.message} ({', '.join(off)}, in {side.name})"
            yield warn("file", f"{file}: {why}", f"set suggest.languages = {{ {off[0]} = true }}")
    if not found_one:
        yield ok("file", f"{file}: not excluded")


def around(file: Path) -> Path | None:
    """The folder of the project that contains a file."""
    return next((each for each in file.parents if (each / ".git").exists() or (each / "calomel.toml").exists()), None)


def _suggestions(side: Side) -> Iterator[Finding]:
    suggest = side.settings.suggest
    if not suggest.enabled:
        yield warn("suggestions", f"turned off in {side.name}", "set suggest.enabled = true")
        return
    off = sorted(name for name, on in suggest.languages.items() if not on)
    if off:
        yield ok("suggestions", f"off in {side.name} for {', '.join(off)}")
    if not suggest.next_edit:
        yield ok("suggestions", f"no next edits: suggest.next_edit in {side.name}")


def _models(side: Side) -> Iterator[Finding]:
    """Ask the models of these settings, where editors would ask them."""
    yield from _model(side)
    other = side.settings.backend.for_edits
    if other is not None:
        for each in _model(replace(side, settings=replace(side.settings, backend=other), prefix="backend.edit_")):
            yield replace(each, subject=f"{each.subject} for edits")


def _model(side: Side) -> Iterator[Finding]:
    server = side.settings.backend
    if server.url is not None:
        advice = partial(_advice, f"{side.prefix}url", server.url, "start it (calomel serve)")
        yield _asked(side, f"{side.prefix}url in {side.name}", advice)
    elif server.upstream is not None:
        advice = partial(_advice, f"{side.prefix}upstream", server.upstream, "start that server")
        yield _asked(side, f"{side.prefix}upstream in {side.name}", advice)
    else:
        yield from _own(side)


def _own(side: Side) -> Iterator[Finding]:
    """The model in a server of the editors' own; it is asked if it runs, and started by nobody but an editor."""
    from calomel.infer import llama_cpp
    from calomel.infer.extras import SET_UPSTREAM, has_engine, without_engine
    from calomel.infer.launch import find, model_folder
    from calomel.weights import nano_path

    server, where = side.settings.backend, f"{side.prefix}model in {side.name}"
    wrong = "choose another, or remove backend.model to use nano"
    try:
        folder = model_folder(server.model) or nano_path()
        running = find(server) is not None
    except CompleterError as error:
        yield fail("editors' model", f"{error} ({where})", wrong)
        return
    if running:
        yield _asked(
            side, f"{folder}, in the server that your editors share", lambda _: "restart Calomel in your editor"
        )
        return
    if llama_cpp.opens(folder):
        from calomel.weights import gguf_in
        from calomel.weights.gguf import GgufError, check_gguf

        try:
            check_gguf(gguf_in(folder) or folder)
        except GgufError as error:
            yield fail("editors' model", f"{error} ({where})", "fetch it again, or choose another model")
            return
        yield ok("editors' model", f"{folder}, in a llama.cpp that the first editor starts")
        return
    if not has_engine():
        yield fail("editors' model", f"none is installed ({where})", without_engine(SET_UPSTREAM))
        return
    files = check_folder(folder, "editors' model")
    if files.level == "ok":
        yield ok("editors' model", f"{folder}, in a server that the first editor starts")
    else:
        yield fail("editors' model", f"{files.found} ({where})", wrong)
    if server.device != "cpu":
        device = check_device(server.device, "editors' device")
        yield replace(device, found=f"{device.found} (backend.device in {side.name})")


def _advice(setting: str, url: str, start: str, error: CompleterError) -> str:
    """What to do about a server of others that did not answer as it should."""
    if error.code == "loading":
        return "wait a moment, then run `calomel doctor` again"
    if str(error).startswith(unanswered(url.rstrip("/").removesuffix("/v1"))):
        return f"{to_answer(url, start)}, or remove {setting}"
    if error.code in {"refused", "unreachable"}:
        return f"correct that, or remove {setting}"
    return "see what that server printed"


def _asked(side: Side, where: str, advice: Callable[[CompleterError], str]) -> Finding:
    """Ask the model as an editor does; it says what the editor would."""
    server = side.settings.backend
    try:
        info = asyncio.run(info_of(server))
    except TimeoutError:
        slow = CompleterError("timeout", "the server does not answer")
        return fail("editors' model", f"{slow} ({where})", advice(slow))
    except CompleterError as error:
        level = warn if error.code in {"loading", "overloaded"} else fail
        return level("editors' model", f"{error} ({where})", advice(error))
    through = f" through {info.through}" if info.through else ""
    return ok("editors' model", f"{info.title}{through} ({where})")


async def info_of(server: BackendSettings) -> ModelInfo:
    """Describes the model that answers. Raises CompleterError, TimeoutError."""
    from calomel.infer.launch import connect

    async with asyncio.timeout(_ANSWER_SECONDS):
        completer = await connect(server)
        try:
            return await completer.info()
        finally:
            await completer.aclose()


def snake_case(name: str) -> str:
    """The name of a setting whose name VS Code has in camel case."""
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries `calomel.a.bC` of an editor's flat settings, as sections with `b_c`."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        head, _, rest = key.partition(".")
        section, _, name = rest.partition(".")
        if head == "calomel" and section and section not in _NONE_OF_OURS:
            if name:
                result.setdefault(section, {})[snake_case(name)] = value
            elif isinstance(value, Mapping):
                result.setdefault(section, {}).update({snake_case(name): each for name, each in value.items()})
    return result


# Prompt formats in Zed's `edit_predictions` that our server understands.
_ZED_FORMATS: Final = frozenset(
    {"zeta2", "zeta2_1", "qwen", "star_coder", "deepseek_coder", "code_gemma", "codestral", "glm", "code_llama"}
)
_INFERRED: Final = frozenset({"zeta2", "zeta2.1"})
_BROKEN: Final = "open it in the editor to see the mistake"


def vs_code_settings(here: Here) -> list[tuple[VsCode, Mapping[str, Any]]]:
    """VS Code and its relatives with the user's settings of each, as far as they exist and can be read."""
    settings = ((each, settings_of(each.settings(here))) for each in VS_CODES)
    return [(each, values) for each, values in settings if values]


def check_editors(here: Here) -> Iterator[Finding]:
    """Each editor that has a configuration here."""
    if shutil.which("calomel") is None:
        yield warn(
            "PATH",
            "`calomel` is not on the PATH: editors need its full path",
            f"run `{here.program} editor setup EDITOR` to see it",
        )
    findings = [*_neovim(here.config / "nvim"), *_vs_codes(here), *_zed(here)]
    yield from findings
    if not findings:
        yield ok("editors", "no Neovim, VS Code or Zed configuration found")


def _neovim(folder: Path) -> Iterator[Finding]:
    mention = mentioned(folder)
    if mention is not None:
        yield ok("Neovim", f"set up in {mention}; for details: :checkhealth calomel")
    elif folder.is_dir():
        yield warn("Neovim", "Calomel is not set up", "run `calomel editor setup neovim`")


def _vs_codes(here: Here) -> Iterator[Finding]:
    for each in VS_CODES:
        path = each.settings(here)
        values = settings_of(path)
        if values is None:
            yield warn(each.name, f"{path} is not valid JSON", _BROKEN)
        elif any("calomel" in key for key in values):
            yield ok(each.name, f"set up in {path}")


def _zed(here: Here) -> Iterator[Finding]:
    path = zed_settings(here)
    if not path.is_file():
        return
    values = settings_of(path)
    if values is None:
        yield warn("Zed", f"{path} is not valid JSON", _BROKEN)
        return
    wrong = _wrong_in_zed(values.get("edit_predictions"), here.url)
    if wrong is None:
        yield ok("Zed", f"set up in {path}")
    else:
        yield warn("Zed", f"{path}: {wrong}", "correct it as `calomel editor setup zed` shows")


def _wrong_in_zed(predictions: object, url: str | None) -> str | None:
    """What keeps Zed from asking the server at `url`, or one on another machine."""
    name = "open_ai_compatible_api"
    if not isinstance(predictions, Mapping) or predictions.get("provider") != name:
        return f"edit_predictions.provider is not {name}"
    provider = predictions.get(name)
    if not isinstance(provider, Mapping):
        provider = {}
    form, model = provider.get("prompt_format", "infer"), str(provider.get("model", ""))
    if form not in _ZED_FORMATS and not (form == "infer" and model.partition(":")[0] in _INFERRED):
        return "the server does not know prompt_format, or cannot infer it from the model's name"
    try:
        parts, own = urlsplit(str(provider.get("api_url"))), urlsplit(url or "")
        local, place = is_loopback(parts.hostname or ""), (parts.scheme, parts.port)
    except ValueError:
        return "api_url is not a valid URL"
    if parts.path != "/v1/completions":
        return "the path of api_url is not /v1/completions"
    if local and url is not None and place != (own.scheme, own.port):
        return f"api_url points to {parts.scheme} port {parts.port}, the server listens at {url}"
    return None

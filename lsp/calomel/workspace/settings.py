"""Every setting of the editor's side, its default and the reason for it; and how settings are read and validated."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, get_args, get_type_hints

import platformdirs

from calomel.prompts.fim_tokens import FORMATS
from calomel.prompts.renderer import EditKind
from calomel.storage import read_regular
from calomel.storage.system import is_own, rights_of_others

Aggressiveness = Literal["quiet", "balanced", "eager"] | float
LogLevel = Literal["debug", "info", "warning", "error"]
ReadAhead = Literal["always", "plugged_in", "never"]
Show = Literal["always", "hint", "on_request"]
UpstreamFormat = Literal["auto", "llama.cpp", "ollama", "vllm", "openai", "mercury"]

AGGRESSIVENESS: Final = ("quiet", "balanced", "eager")
LOG_LEVELS: Final[tuple[str, ...]] = get_args(LogLevel)
READ_AHEAD: Final[tuple[str, ...]] = get_args(ReadAhead)
SHOW: Final[tuple[str, ...]] = get_args(Show)
UPSTREAM_FORMATS: Final[tuple[str, ...]] = get_args(UpstreamFormat)
QUANTIZE: Final = ("int8", "int4")
UPSTREAM_FIM: Final = tuple(FORMATS)
UPSTREAM_EDIT: Final[tuple[str, ...]] = get_args(EditKind)


def setting(default: Any, why: str, **rules: Any) -> Any:
    """A field with its reason and its rules, for `calomel.workspace.settings` and the documentation.

    Rules: `low`, `high` (bounds, in the field's unit), `choices`, `limit` (a workspace may only lower it), `user`
    (a workspace may not set it at all), `optional` (may be absent), `of` (type of a list's items), `table` (of names,
    each with a value that follows the other rules).
    """
    metadata = {"why": why, **rules}
    if isinstance(default, tuple | dict):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    """What is read besides the open documents."""

    index: bool = setting(True, "Use definitions and calls in your other files.")
    index_files: int = setting(10_000, "Maximum number of files to index.", low=0, high=200_000, limit=True)


@dataclass(frozen=True, slots=True)
class PrivacySettings:
    """What no model ever sees. Only a `!pattern` in `ignore` lifts a built-in rule for secret files."""

    ignore: tuple[str, ...] = setting(
        (),
        "Patterns of files to hide from the model, as in .gitignore; `!pattern` includes a file again.",
        of=str,
    )
    gitignore: bool = setting(True, "Hide files that git ignores from the model.", user=True)
    mask_secrets: bool = setting(True, "Replace keys and passwords in your source with asterisks.", user=True)


@dataclass(frozen=True, slots=True)
class SuggestSettings:
    """When to suggest, and how much."""

    enabled: bool = setting(True, "Enable suggestions. If off, only the key asks for them.")
    show: Show = setting(
        "always",
        "What appears before you press the key: suggestions (always), a mark (hint), or nothing (on_request).",
        choices=SHOW,
    )
    languages: Mapping[str, bool] = setting(
        {}, "Turn suggestions on or off by language id; `*` means all other languages.", of=bool
    )
    next_edit: bool = setting(True, "Suggest next edits, not only inline completions.")
    in_comments: bool = setting(True, "Suggest inside comments.")
    in_strings: bool = setting(True, "Suggest inside strings.")
    aggressiveness: Aggressiveness = setting(
        "balanced",
        "How confident Calomel must be: quiet, balanced, eager, or a probability. Balanced aims to lose at most one in "
        "20 suggestions you would accept, eager one in 100.",
        choices=AGGRESSIVENESS,
        low=0.0,
        high=1.0,
    )
    aggressiveness_by_language: Mapping[str, Aggressiveness] = setting(
        {},
        "The same by language id; `*` means all other languages.",
        choices=AGGRESSIVENESS,
        low=0.0,
        high=1.0,
        table=True,
    )
    debounce_seconds: float | None = setting(
        None, "Seconds to wait after a keystroke. Unset: learned from your typing.", low=0.0, high=10.0,
        optional=True,
    )  # fmt: skip
    max_tokens: int = setting(
        64,
        "Maximum length of a suggestion, in tokens of about three characters.",
        low=1,
        high=1024,
        limit=True,
    )
    lines: int | None = setting(
        None, "Maximum lines of an inline completion. Unset: as many as the model writes.",
        low=1, high=1000, optional=True,
    )  # fmt: skip
    context_tokens: int | None = setting(
        None, "How much of your code the model reads, in tokens. Unset: what suits the model.",
        low=64, high=32_768, limit=True, optional=True,
    )  # fmt: skip

    read_ahead: ReadAhead = setting(
        "plugged_in",
        "When to process the code around a resting cursor in advance: always, not on battery (plugged_in), or never.",
        choices=READ_AHEAD,
    )

    def language_enabled(self, language_id: str) -> bool:
        """Suggest in documents of this language."""
        return self.languages.get(language_id, self.languages.get("*", True))


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Which model answers, and where. A workspace can set none of these: it could send your code elsewhere."""

    url: str | None = setting(
        None,
        "Address of a running Calomel server. Unset: your editor starts one, shared by all windows.",
        user=True,
        optional=True,
    )
    token: str | None = setting(None, "Token for `url`. `token_file` is safer.", user=True, optional=True)
    token_file: Path | None = setting(None, "File with the token for `url`.", user=True, optional=True)
    model: Path | None = setting(
        None,
        "Folder of a model, or its name in `calomel models list`. Unset: the built-in nano.",
        user=True,
        optional=True,
    )
    upstream: str | None = setting(
        None,
        "Address of a model server: http://127.0.0.1:8080 for llama.cpp, http://127.0.0.1:11434 for Ollama.",
        user=True,
        optional=True,
    )
    upstream_model: str | None = setting(
        None, "Model to use on that server, if it has several.", user=True, optional=True
    )
    upstream_format: UpstreamFormat = setting(
        "auto", "API of that server; auto detects it.", choices=UPSTREAM_FORMATS, user=True
    )
    upstream_fim: str | None = setting(
        None,
        "Fill-in-the-middle format of that model. Unset: detected.",
        choices=UPSTREAM_FIM,
        user=True,
        optional=True,
    )
    upstream_edit: EditKind | None = setting(
        None,
        "Next-edit format of that model. Unset: detected from its name, or none.",
        choices=UPSTREAM_EDIT,
        user=True,
        optional=True,
    )
    upstream_key_file: Path | None = setting(None, "File with the key for that server.", user=True, optional=True)
    device: str = setting(
        "cpu", "Where the model runs: cpu; cuda or cuda:N for an NVIDIA GPU; mps for an Apple one.", user=True
    )
    quantize: Literal["int8", "int4"] | None = setting(
        None,
        "Round that model's weights to eight bits (half the memory of bfloat16) or four (a quarter). Unset: unchanged.",
        choices=QUANTIZE,
        user=True,
        optional=True,
    )
    idle_minutes: float = setting(
        30.0,
        "Idle minutes after which a server started by your editor stops.",
        low=0.1,
        high=10_080.0,
        user=True,
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is recorded on this machine. Nothing leaves it."""

    level: LogLevel = setting(
        "info", "Log level. The log contains counts and times, never your text.", choices=LOG_LEVELS
    )
    outcomes: bool = setting(
        True,
        "Record whether you accept suggestions, without their text, for `calomel stats` and `calomel calibrate`.",
        user=True,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings."""

    workspace: WorkspaceSettings = field(default_factory=WorkspaceSettings)
    privacy: PrivacySettings = field(default_factory=PrivacySettings)
    suggest: SuggestSettings = field(default_factory=SuggestSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    log: LogSettings = field(default_factory=LogSettings)


def user_settings_path() -> Path:
    """The path of the user's own `calomel.toml` (on Linux `~/.config/calomel/calomel.toml`)."""
    return platformdirs.user_config_path("calomel", appauthor=False) / "calomel.toml"


# A settings file is a page long; something larger is something else.
_MAX_BYTES: Final = 64 * 1024
_OTHERS_WRITE: Final = 0o002
# Every file is compared with every pattern.
_MOST_PATTERNS: Final = 1_000
# Nobody reads more messages about one start.
_MOST_PROBLEMS: Final = 20


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One wrong setting, as a message: where, which, and what is allowed. It never repeats the value."""

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
    more_tomls: Sequence[Path] = (),
    initialization_options: Mapping[str, Any] | None = None,
    configuration: Mapping[str, Any] | None = None,
) -> tuple[Settings, list[SettingProblem]]:
    """The settings of all sources, later ones override earlier ones; a missing file sets nothing.

    `more_tomls` are the files of the workspace's other folders, of which only the rules about privacy count: they add
    to the others, and hold in every folder.
    """
    problems: list[SettingProblem] = []
    settings = Settings()
    sources = [(user_toml, "calomel.toml", True), (workspace_toml, "the workspace's calomel.toml", False)]
    for path, label, trusted in (*sources, *((path, str(path), False) for path in more_tomls)):
        values = {} if path is None else dict(_read(path, label, problems, trusted=trusted))
        if trusted:
            values.pop("serve", None)  # the user's own file is also that of `calomel serve`
        if path in more_tomls:
            values = {name: value for name, value in values.items() if name == "privacy"}
        settings = _merged(settings, values, label, problems, trusted=trusted)
    for said, label in ((initialization_options, "initializationOptions"), (configuration, "the editor's settings")):
        settings = _merged(settings, said or {}, label, problems, trusted=True)
    return settings, problems[:_MOST_PROBLEMS]


def _read(path: Path, label: str, problems: list[SettingProblem], *, trusted: bool) -> Mapping[str, Any]:
    try:
        values, problem = _said(path, trusted=trusted)
    except FileNotFoundError:
        return {}
    except RecursionError:
        values, problem = {}, "is nested too deeply, so Calomel did not read it"
    except (OSError, RuntimeError) as error:
        # A link that leads to itself is an error of either kind.
        values, problem = {}, f"not readable ({getattr(error, 'strerror', None) or 'a link to itself'})"
    except UnicodeDecodeError:
        values, problem = {}, "is not UTF-8"
    except tomllib.TOMLDecodeError as error:
        values, problem = {}, f"is not valid TOML: {error}"
    if problem:
        problems.append(SettingProblem(label, "", problem))
    return values


def _said(path: Path, *, trusted: bool) -> tuple[Mapping[str, Any], str]:
    """What a file says, and why less than all of it counts.

    A workspace's may be anybody's: it must lie in its folder. Whatever others may write at any time only hides more.
    """
    if not trusted and not path.resolve().is_relative_to(path.parent.resolve()):
        return {}, "is a link that leads outside the folder, so Calomel did not read it"
    data = read_regular(path, _MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        return {}, f"larger than {_MAX_BYTES // 1024} KB, so Calomel did not read it"
    values = tomllib.loads(data.decode("utf-8"))
    found = path.stat()
    if not rights_of_others(found, _OTHERS_WRITE) and (is_own(found) or found.st_uid == 0):
        return values, ""
    if trusted:
        return {}, "other users can change it, so Calomel did not read it; use `chmod o-w` or `chown`"
    return (
        {name: value for name, value in values.items() if name == "privacy"},
        "other users can change it, so only its privacy rules count; use `chmod o-w` or `chown`",
    )


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
            sections[name] = replace(_without_model(sections[name], changes), **changes)
    return Settings(**sections)


# Which model answers is one choice; whoever makes it anew takes nothing from an older one, a key least of all.
_PLACES: Final = ("url", "model", "upstream")
CHOICE: Final = (
    *_PLACES, "quantize", "upstream_format", "upstream_model", "upstream_fim", "upstream_edit", "upstream_key_file",
)  # fmt: skip


def _without_model(section: Any, changes: Mapping[str, Any]) -> Any:
    """The section, without the model of an earlier source where a later one names another."""
    if not isinstance(section, ServerSettings):
        return section
    if all(changes.get(name) in {None, getattr(section, name)} for name in _PLACES):
        return section
    usual = ServerSettings()
    return replace(section, **{name: getattr(usual, name) for name in CHOICE})


def chosen(server: ServerSettings, choice: Mapping[str, Any]) -> ServerSettings:
    """The settings with another model: `choice` names what differs from the defaults. Raises ValueError."""
    problems: list[SettingProblem] = []
    unknown = ", ".join(str(name) for name in choice if name not in CHOICE)
    if unknown:
        raise ValueError(f"{unknown}: not a setting that chooses a model")
    usual = ServerSettings()
    changes = dict(_checked(usual, "server", choice, "the choice", problems, trusted=True))
    if problems:
        raise ValueError("; ".join(map(str, problems)))
    return replace(server, **{name: changes.get(name, getattr(usual, name)) for name in CHOICE})


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
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise ValueError("must be a list of strings")
        return tuple(value)
    if rules.get("of") is bool or rules.get("table"):
        kinds = (float,) if rules.get("table") else (bool,)
        if not isinstance(value, Mapping):
            raise ValueError(f"must be a table of names, each {_wanted(rules, kinds)}")
        return {str(name): _one(each, rules, kinds) for name, each in value.items()}
    return _one(value, rules, kinds)


def _one(value: Any, rules: Mapping[str, Any], kinds: Sequence[Any]) -> Any:
    """A single value. Raises ValueError with what is allowed."""
    if isinstance(value, str) and "choices" in rules:
        right = value in rules["choices"]
    elif bool in kinds:
        right = isinstance(value, bool)
    elif "low" in rules:
        number = int if int in kinds else float
        right = isinstance(value, int | number) and not isinstance(value, bool) and math.isfinite(value)
        if right and rules["low"] <= value <= rules["high"]:
            return number(value)
        right = False
    else:
        right = isinstance(value, str) and bool(value) and "choices" not in rules
    if not right:
        raise ValueError(f"must be {_wanted(rules, kinds)}")
    return Path(value).expanduser() if Path in kinds else value


def _wanted(rules: Mapping[str, Any], kinds: Sequence[Any]) -> str:
    """The allowed values, in words."""
    number = (
        f"a {'whole ' if int in kinds else ''}number from {rules['low']} to {rules['high']}" if "low" in rules else ""
    )
    if "choices" in rules:
        names = ", ".join(rules["choices"])
        return f"{names} or {number}" if number else f"one of {names}"
    return "true or false" if bool in kinds else number or "a string that is not empty"


def _allowed_to_workspace(value: Any, spec: Field[Any], now: Any) -> Any:
    """The value, if a workspace's file, which may be anybody's, is allowed to set it. Raises ValueError."""
    if spec.metadata.get("user"):
        raise ValueError("belongs only in your own settings, not by a workspace")
    if spec.metadata.get("limit"):
        bound = now if now is not None else spec.metadata["high"]
        if value > bound:
            raise ValueError(f"a workspace may lower this limit, not raise it above {bound}")
    if spec.metadata.get("of") is str:
        if any(pattern.lstrip().startswith("!") for pattern in value):
            raise ValueError("a workspace may add patterns, but not include files with `!`")
        if len(value) > _MOST_PATTERNS:
            raise ValueError(f"a workspace may add {_MOST_PATTERNS} patterns, not {len(value)}")
        return (*now, *value)
    return value

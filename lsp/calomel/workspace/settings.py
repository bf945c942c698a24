"""Every setting of the editor's side, its default and the reason for it; and how settings are read and validated."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import platformdirs
from msgspec import Meta

from calomel.prompts.fim_tokens import FORMATS
from calomel.prompts.renderer import EditKind
from calomel.storage import is_own, read_regular, rights_of_others

if TYPE_CHECKING:
    FimFormat: TypeAlias = str
else:
    FimFormat = Literal[tuple(FORMATS)]
Aggressiveness: TypeAlias = Literal["quiet", "balanced", "eager"] | Annotated[float, Meta(ge=0.0, le=1.0)]
UpstreamFormat: TypeAlias = Literal["auto", "llama.cpp", "ollama", "vllm", "openai", "mercury"]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]


def setting(default: Any, why: str, *, user: bool = False, limit: bool = False) -> Any:
    """A field with its reason, for the documentation; its type says what it takes.

    Args:
        default: its value where nobody sets it.
        why: what it is for.
        user: a workspace may not set it.
        limit: a workspace may only lower it.
    """
    metadata = {"why": why, "user": user, "limit": limit}
    if isinstance(default, dict):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    """What is read besides the open documents."""

    index: bool = setting(True, "Use definitions and calls in your other files.")
    index_files: Annotated[int, Meta(ge=0, le=200_000)] = setting(
        10_000, "Maximum number of files to index.", limit=True
    )


@dataclass(frozen=True, slots=True)
class PrivacySettings:
    """What no model ever sees. Only a `!pattern` in `ignore` lifts a built-in rule for secret files."""

    ignore: tuple[str, ...] = setting(
        (), "Patterns of files to hide from the model, as in .gitignore; `!pattern` includes a file again."
    )
    gitignore: bool = setting(True, "Hide git-ignored files from the model.", user=True)
    mask_secrets: bool = setting(True, "Replace keys and passwords in your source with asterisks.", user=True)


@dataclass(frozen=True, slots=True)
class SuggestSettings:
    """When to suggest, and how much."""

    enabled: bool = setting(True, "Enable suggestions. If off, they appear only when you press the key that asks.")
    show: Literal["always", "hint", "on_request"] = setting(
        "always", "What appears before you press the key: suggestions (always), a mark (hint), or nothing (on_request)."
    )
    languages: Mapping[str, bool] = setting(
        {}, "Turn suggestions on or off by language id; `*` means all other languages."
    )
    next_edit: bool = setting(True, "Suggest next edits, not only inline completions.")
    in_comments: bool = setting(True, "Suggest inside comments.")
    in_strings: bool = setting(True, "Suggest inside strings.")
    aggressiveness: Aggressiveness = setting(
        "balanced",
        "How confident Calomel must be. Balanced aims to lose at most one in 20 suggestions you would accept, "
        "eager one in 100. A number is the probability of acceptance that a suggestion needs.",
    )
    aggressiveness_by_language: Mapping[str, Aggressiveness] = setting(
        {}, "How confident Calomel must be, by language id; `*` means all other languages."
    )
    debounce_seconds: Annotated[float, Meta(ge=0.0, le=10.0)] | None = setting(
        None, "Seconds to wait after a keystroke. Unset: learned from your typing."
    )
    max_tokens: Annotated[int, Meta(ge=1, le=1024)] = setting(
        64, "Maximum length of a suggestion, in tokens of about three characters.", limit=True
    )
    lines: Annotated[int, Meta(ge=1, le=1000)] | None = setting(
        None, "Maximum lines of an inline completion. Unset: as many as the model writes."
    )
    context_tokens: Annotated[int, Meta(ge=64, le=32_768)] | None = setting(
        None, "How much of your code the model reads, in tokens. Unset: what suits the model.", limit=True
    )

    read_ahead: Literal["always", "plugged_in", "never"] = setting(
        "plugged_in",
        "When to process the code around a resting cursor in advance: always, not on battery (plugged_in), or never.",
    )

    def language_enabled(self, language_id: str) -> bool:
        """Suggest in documents of this language."""
        return self.languages.get(language_id, self.languages.get("*", True))


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Which model answers, and where. A workspace can set none of these: it could send your code elsewhere."""

    url: Text | None = setting(
        None, "Address of a running Calomel server. Unset: your editor starts one, shared by all windows.", user=True
    )
    token: Text | None = setting(None, "Token for `url`. `token_file` is safer.", user=True)
    token_file: Path | None = setting(None, "File with the token for `url`.", user=True)
    model: Path | None = setting(None, "A model's name, folder or GGUF file. Unset: nano.", user=True)
    upstream: Text | None = setting(
        None,
        "Address of a model server: http://127.0.0.1:8080 for llama.cpp, http://127.0.0.1:11434 for Ollama.",
        user=True,
    )
    upstream_model: Text | None = setting(
        None, "Model to use on the server in `upstream`, if it has several.", user=True
    )
    upstream_format: UpstreamFormat = setting("auto", "API of the server in `upstream`; auto detects it.", user=True)
    upstream_fim: FimFormat | None = setting(
        None, "Fill-in-the-middle format of the model in `upstream`. Unset: detected.", user=True
    )
    upstream_edit: EditKind | None = setting(
        None, "Next-edit format of the model in `upstream`. Unset: detected from its name, or none.", user=True
    )
    upstream_key_file: Path | None = setting(None, "File with the key for the server in `upstream`.", user=True)
    device: Text = setting(
        "cpu", "Where the model runs: cpu; cuda or cuda:N for an NVIDIA GPU; mps for an Apple one.", user=True
    )
    quantize: Literal["int8"] | None = setting(
        None,
        "Round the weights of `model` to eight bits: half the memory of bfloat16.",
        user=True,
    )
    idle_minutes: Annotated[float, Meta(ge=0.1, le=10_080.0)] = setting(
        30.0, "Stop the server your editor started after this many idle minutes.", user=True
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is recorded on this machine. Nothing leaves it."""

    level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "Log level. The log contains counts and times, never your text."
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
# Where every user has a group of their own, as on Ubuntu and Fedora, new files are writable for that group.
_OTHERS_WRITE: Final = 0o002
_OTHERS_READ: Final = 0o044
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
    for options, label in ((initialization_options, "initializationOptions"), (configuration, "the editor's settings")):
        settings = _merged(settings, options or {}, label, problems, trusted=True)
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
    status = path.stat()
    if not rights_of_others(status, _OTHERS_WRITE) and (is_own(status) or status.st_uid == 0):
        server = values.get("server")
        if trusted and isinstance(server, dict) and "token" in server and rights_of_others(status, _OTHERS_READ):
            return values | {"server": {}}, (
                "contains a token that other users can read, so Calomel did not use [server]; "
                "use `chmod 600` or server.token_file"
            )
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
    metadata = {each.name: each.metadata for each in fields(section)}
    types = get_type_hints(type(section), include_extras=True)
    for key, value in values.items():
        full = f"{name}.{key}"
        if key not in metadata:
            problems.append(SettingProblem(label, full, f"unknown; there are {', '.join(metadata)}"))
            continue
        if value is None:
            # Editors send null for what is not set.
            continue
        try:
            checked = _value(value, types[key])
            if not trusted:
                most = allowed(types[key]).high
                checked = _allowed_to_workspace(checked, metadata[key], most, getattr(section, key))
        except ValueError as error:
            problems.append(SettingProblem(label, full, str(error)))
        else:
            yield key, checked


def _value(value: Any, kind: Any) -> Any:
    """The value in a field's type. Raises ValueError with what is allowed."""
    try:
        if isinstance(value, float) and math.isnan(value):
            raise ValueError  # noqa: TRY301 (as for other wrong values)
        return msgspec.convert(value, kind, dec_hook=_path)
    except ValueError:
        raise ValueError(f"must be {_wanted(kind)}") from None


def _path(kind: Any, value: Any) -> Path:
    if kind is not Path or not isinstance(value, str) or not value:
        raise ValueError
    try:
        return Path(value).expanduser()
    except RuntimeError:  # there is no such user
        return Path(value)


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


def _wanted(kind: Any) -> str:
    """The allowed values, in words."""
    if get_origin(kind) is tuple:
        return "a list of strings"
    if get_origin(kind) is Mapping:
        return f"a table of names, each {_wanted(get_args(kind)[1])}"
    words, number, low, high = allowed(kind)
    numbers = "" if number is None else f"a {'whole ' if number is int else ''}number from {low} to {high}"
    if words:
        return f"{', '.join(words)} or {numbers}" if numbers else f"{'one of ' * (len(words) > 1)}{', '.join(words)}"
    return "true or false" if kind is bool else numbers or "a string that is not empty"


def _allowed_to_workspace(value: Any, rules: Mapping[str, Any], most: float, now: Any) -> Any:
    """The value, if a workspace's file, which may be anybody's, is allowed to set it. Raises ValueError."""
    if rules["user"]:
        raise ValueError("belongs in your own settings, not in a workspace's")
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

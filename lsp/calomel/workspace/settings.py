"""Every setting of the editor's side, its default and the reason for it; and which of several sources wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, get_type_hints

import platformdirs
from msgspec import Meta

from calomel.prompts.fim_tokens import FORMATS
from calomel.prompts.renderer import EditKind
from calomel.workspace.settings_reader import SERVE, SettingProblem, Source, checked, read_file, setting, tables

if TYPE_CHECKING:
    FimFormat: TypeAlias = str
else:
    FimFormat = Literal[tuple(FORMATS)]
Aggressiveness: TypeAlias = Literal["quiet", "balanced", "eager"] | Annotated[float, Meta(ge=0.0, le=1.0)]
UpstreamFormat: TypeAlias = Literal["auto", "llama.cpp", "ollama", "vllm", "openai", "mercury"]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Device: TypeAlias = Annotated[
    str, Meta(pattern=r"^(cpu|mps|cuda(:[0-9]{1,3})?)$", description="cpu, cuda, cuda:N or mps")
]
_NAME_OR_ADDRESS: Final = r"[\w.-]+|[0-9.]+/[0-9]{1,2}|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(/[0-9]{1,3})?"
HttpHost: TypeAlias = Annotated[
    str, Meta(pattern=f"^({_NAME_OR_ADDRESS})$", description="names, addresses or networks such as 192.168.1.0/24")
]


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    """What is read besides the open documents."""

    index: bool = setting(True, "Use definitions and calls in your other files.")
    index_files: Annotated[int, Meta(ge=0, le=200_000)] = setting(
        10_000, "Maximum number of files to index.", limit=True
    )


@dataclass(frozen=True, slots=True)
class PrivacySettings:
    """What models do not see. Only a `!pattern` in `ignore` lifts a built-in rule for secret files."""

    ignore: tuple[str, ...] = setting(
        (), "Patterns of files to hide from the model, as in .gitignore; `!pattern` includes a file again."
    )
    gitignore: bool = setting(True, "Hide git-ignored files from the model.", user=True)
    mask_secrets: bool = setting(
        True, "Replace keys and passwords with asterisks for every server that your editors did not start.", user=True
    )


@dataclass(frozen=True, slots=True)
class SuggestSettings:
    """When to suggest, and how much."""

    enabled: bool = setting(True, "Enable suggestions. If off, they appear only when you press the key that asks.")
    show: Literal["always", "hint", "on_request"] = setting(
        "always",
        "Show suggestions (always), a mark (hint) or nothing (on_request) before you press the key that asks.",
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
        None, "Tokens of your code that the model reads. Unset: as many as suit the model.", limit=True
    )

    read_ahead: Literal["always", "plugged_in", "never"] = setting(
        "plugged_in",
        "When to process the code around a resting cursor in advance: always, not on battery (plugged_in), or never.",
    )

    def language_enabled(self, language_id: str) -> bool:
        """Suggest in documents of this language."""
        return self.languages.get(language_id, self.languages.get("*", True))


@dataclass(frozen=True, slots=True)
class BackendSettings:
    """Which model answers, and where. A workspace can set none of these: it could send your code elsewhere."""

    url: Text | None = setting(
        None, "Address of a running Calomel server. Unset: your editor starts one, shared by all windows.", user=True
    )
    token: Text | None = setting(None, "Token for `url`. `token_file` is safer.", user=True, secret=True)
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
    edit_model: Path | None = setting(
        None, "Another model for next edits: a name, folder or GGUF file. Unset: the same for both.", user=True
    )
    edit_upstream: Text | None = setting(None, "Address of another model server, for next edits only.", user=True)
    edit_upstream_model: Text | None = setting(
        None, "Model for next edits on the server in `edit_upstream`, or in `upstream`.", user=True
    )
    edit_upstream_key_file: Path | None = setting(
        None, "File with the key for the server in `edit_upstream`.", user=True
    )
    allow_http: tuple[HttpHost, ...] = setting(
        (),
        "Hosts of other machines that `url` and `upstream` may name with http://. Everybody on the network between "
        "can read your code and the key.",
        user=True,
    )
    device: Device = setting(
        "cpu", "Where the model runs: cpu; cuda or cuda:N for an NVIDIA GPU; mps for an Apple one.", user=True
    )
    quantize: Literal["int8"] | None = setting(
        None,
        "Round the weights of `model` to eight bits: half the memory of bfloat16.",
        user=True,
    )
    threads: Annotated[int, Meta(ge=1, le=1024)] | None = setting(
        None,
        "Processor threads for `model`. Unset: chosen automatically; for a GGUF file, one fewer than processors.",
        user=True,
    )
    idle_minutes: Annotated[float, Meta(ge=0.1, le=10_080.0)] = setting(
        30.0, "Stop the server your editor started after this many idle minutes.", user=True
    )

    @property
    def for_text(self) -> BackendSettings:
        """The model for text at the cursor; for next edits, too, where `for_edits` is None."""
        return replace(self, edit_model=None, edit_upstream=None, edit_upstream_model=None, edit_upstream_key_file=None)

    @property
    def for_edits(self) -> BackendSettings | None:
        """The model for next edits; None if that is the one for text."""
        if all(getattr(self, name) is None for name in EDIT_CHOICE):
            return None
        if self.edit_model is None and self.edit_upstream in {None, self.upstream}:
            key = self.edit_upstream_key_file or self.upstream_key_file
            return replace(self.for_text, upstream_model=self.edit_upstream_model, upstream_key_file=key)
        elsewhere = BackendSettings if self.upstream is None else OtherServer
        return elsewhere(
            model=self.edit_model,
            upstream=self.edit_upstream,
            upstream_model=self.edit_upstream_model,
            upstream_key_file=self.edit_upstream_key_file,
            upstream_edit=self.upstream_edit,
            **{name: getattr(self, name) for name in ("allow_http", "device", "quantize", "threads", "idle_minutes")},
        )


class OtherServer(BackendSettings):
    """The model for next edits at another server than `upstream`, whose key in the environment it must not get."""

    __slots__ = ()


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
    backend: BackendSettings = field(default_factory=BackendSettings)
    log: LogSettings = field(default_factory=LogSettings)


def user_settings_path() -> Path:
    """The path of the user's own `calomel.toml` (on Linux `~/.config/calomel/calomel.toml`)."""
    return platformdirs.user_config_path("calomel", appauthor=False) / "calomel.toml"


TABLES: Final[Mapping[str, type]] = get_type_hints(Settings)
# Nobody reads more messages about one start.
MOST_PROBLEMS: Final = 20


def load_settings(
    *,
    user_toml: Path | None = None,
    workspace_toml: Path | None = None,
    more_tomls: Sequence[Path] = (),
    initialization_options: Mapping[str, Any] | None = None,
    configuration: Mapping[str, Any] | None = None,
    filtered: bool = False,
    most: int | None = MOST_PROBLEMS,
) -> tuple[Settings, list[SettingProblem]]:
    """The settings of all sources, later ones override earlier ones; a missing file sets nothing.

    `more_tomls` are the files of the workspace's other folders, of which only the rules about privacy count: they add
    to the others, and hold in every folder. `configuration` may come from a repository, as Emacs takes it from its
    `.dir-locals.el` without a question, and may set what a workspace's file may; `filtered`: the editor has left out
    what a workspace may not set. Of the problems, the first `most` are returned.
    """
    problems: list[SettingProblem] = []
    settings = Settings()
    own = Source("calomel.toml", None if user_toml is None else user_toml.parent)
    sources = [(user_toml, own), (workspace_toml, Source("the workspace's calomel.toml", workspace=True))]
    for path, source in (*sources, *((path, Source(str(path), workspace=True)) for path in more_tomls)):
        given = {} if path is None else read_file(path, source, TABLES, problems) or {}
        if source is own:
            given.pop(SERVE, None)
        if path in more_tomls:
            given = {name: values for name, values in given.items() if name == "privacy"}
        settings = _merged(settings, given, source, problems)
    settings = _merged(settings, initialization_options or {}, Source("initializationOptions"), problems)
    editors = Source("the editor's settings", workspace=not filtered)
    settings = _merged(settings, configuration or {}, editors, problems)
    return settings, problems[:most]


def _merged(settings: Settings, given: Mapping[str, Any], source: Source, problems: list[SettingProblem]) -> Settings:
    for name, values in tables(given, TABLES, source, problems).items():
        section = getattr(settings, name)
        changes = checked(section, name, values, source, problems)
        settings = replace(settings, **{name: replace(_without_model(section, changes), **changes)})
    return settings


# Which model answers is one choice; whoever makes it anew takes nothing from an older one, a key least of all.
_PLACES: Final = ("url", "model", "upstream")
# The same of a model for next edits alone.
_EDIT_PLACES: Final = ("edit_model", "edit_upstream")
EDIT_CHOICE: Final = (*_EDIT_PLACES, "edit_upstream_model", "edit_upstream_key_file")
CHOICE: Final = (
    *_PLACES, "quantize", "upstream_format", "upstream_model", "upstream_fim", "upstream_edit", "upstream_key_file",
    *EDIT_CHOICE,
)  # fmt: skip


def _without_model(section: Any, changes: Mapping[str, Any]) -> Any:
    """The section, without the model of an earlier source where a later one names another."""
    if not isinstance(section, BackendSettings):
        return section
    usual = BackendSettings()
    for places, names in ((_PLACES, CHOICE), (_EDIT_PLACES, EDIT_CHOICE)):
        if any(changes.get(name) not in {None, getattr(section, name)} for name in places):
            section = replace(section, **{name: getattr(usual, name) for name in names})
    return section


def chosen(server: BackendSettings, choice: Mapping[str, Any]) -> BackendSettings:
    """The settings with another model: `choice` names what differs from the defaults. Raises ValueError."""
    problems: list[SettingProblem] = []
    unknown = ", ".join(str(name) for name in choice if name not in CHOICE)
    if unknown:
        raise ValueError(f"{unknown}: not a setting that chooses a model")
    usual = BackendSettings()
    changes = checked(usual, "backend", choice, Source("the choice"), problems)
    if problems:
        raise ValueError("; ".join(map(str, problems)))
    return replace(server, **{name: changes.get(name, getattr(usual, name)) for name in CHOICE})

"""Every setting of the editor's side, its default and the reason for that default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

import platformdirs

Aggressiveness = Literal["quiet", "balanced", "eager"] | float
LogLevel = Literal["debug", "info", "warning", "error"]

AGGRESSIVENESS: Final = ("quiet", "balanced", "eager")
LOG_LEVELS: Final[tuple[str, ...]] = get_args(LogLevel)


def setting(default: Any, why: str, **rules: Any) -> Any:
    """A field with its reason and its rules, for `calomel.workspace.settings` and the documentation.

    Rules: `low`, `high` (bounds, in the field's unit), `choices`, `limit` (a workspace may only lower it), `user`
    (a workspace may not set it at all), `optional` (may be absent), `of` (type of a list's items), `table` (of names,
    each with a value that keeps the other rules).
    """
    metadata = {"why": why, **rules}
    if isinstance(default, tuple | dict):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    """What is looked at beside the open documents."""

    index: bool = setting(True, "Definitions and usages in other files are what a model can not guess.")
    index_files: int = setting(
        10_000, "Files in the index, at most; beyond it memory grows for little.", low=0, high=200_000, limit=True
    )


@dataclass(frozen=True, slots=True)
class PrivacySettings:
    """What no model ever sees. Built-in rules for secret files stay, whatever is set here."""

    ignore: tuple[str, ...] = setting(
        (), "Patterns as in .gitignore, added to the built-in ones; `!pattern` lets one in again.", of=str
    )
    gitignore: bool = setting(
        True, "What is not worth a commit is rarely worth reading, and often generated.", user=True
    )
    mask_secrets: bool = setting(True, "Keys and passwords inside of source are replaced by asterisks.", user=True)


@dataclass(frozen=True, slots=True)
class SuggestSettings:
    """When to suggest, and how much."""

    enabled: bool = setting(True, "Off: nothing is suggested anywhere.")
    languages: Mapping[str, bool] = setting({}, "Language id to on or off; `*` for all that are not named.", of=bool)
    next_edit: bool = setting(True, "Also propose the next edit, not only text at the cursor.")
    in_comments: bool = setting(True, "Suggest inside of comments.")
    in_strings: bool = setting(True, "Suggest inside of strings.")
    aggressiveness: Aggressiveness = setting(
        "balanced",
        "balanced loses one in 20 that you would take, eager one in 100, quiet shows likely ones; or a number.",
        choices=AGGRESSIVENESS,
        low=0.0,
        high=1.0,
    )
    aggressiveness_by_language: Mapping[str, Aggressiveness] = setting(
        {},
        "Language id to how sure the model must be there; `*` for all that are not named.",
        choices=AGGRESSIVENESS,
        low=0.0,
        high=1.0,
        table=True,
    )
    debounce_seconds: float | None = setting(
        None, "Wait after a keystroke before asking. Unset: learned from the rhythm of typing.", low=0.0, high=10.0,
        optional=True,
    )  # fmt: skip
    max_tokens: int = setting(
        64, "Tokens of an answer, at most; longer ones are rarely right.", low=1, high=1024, limit=True
    )
    context_tokens: int | None = setting(
        None, "Tokens of context, at most. Unset: what the model is good and quick with.", low=64, high=32_768,
        limit=True, optional=True,
    )  # fmt: skip

    def language_enabled(self, language_id: str) -> bool:
        """Suggest in documents of this language."""
        return self.languages.get(language_id, self.languages.get("*", True))

    def aggressiveness_for(self, language_id: str) -> Aggressiveness:
        """How sure the model must be in documents of this language."""
        named = self.aggressiveness_by_language
        return named.get(language_id, named.get("*", self.aggressiveness))


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Which model answers, and where. A workspace can set none of these: it could send your code elsewhere."""

    url: str | None = setting(
        None, "A server that runs already. Unset: one is started and shared by all windows.", user=True, optional=True
    )
    token: str | None = setting(None, "For `url`. Better in `token_file`.", user=True, optional=True)
    token_file: Path | None = setting(None, "A file that holds the token for `url`.", user=True, optional=True)
    model: Path | None = setting(None, "Checkpoint folder. Unset: the shipped model.", user=True, optional=True)
    device: str = setting("cpu", "cpu, cuda or cuda:N.", user=True)
    idle_minutes: float = setting(
        30.0, "A server that was started ends after so long without a request.", low=0.1, high=10_080.0, user=True
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is written down on this machine. Nothing leaves it."""

    level: LogLevel = setting("info", "Counts and times, never your text.", choices=LOG_LEVELS)
    outcomes: bool = setting(
        True, "Keep what became of suggestions (no text), to calibrate the filter to you.", user=True
    )
    outcome_text: bool = setting(
        False,
        "Also keep their text and what the model was asked, secrets masked: `calomel align` learns from it.",
        user=True,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All of them."""

    workspace: WorkspaceSettings = field(default_factory=WorkspaceSettings)
    privacy: PrivacySettings = field(default_factory=PrivacySettings)
    suggest: SuggestSettings = field(default_factory=SuggestSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    log: LogSettings = field(default_factory=LogSettings)


def user_settings_path() -> Path:
    """Where the user's own `calomel.toml` lies (on Linux `~/.config/calomel/calomel.toml`)."""
    return platformdirs.user_config_path("calomel", appauthor=False) / "calomel.toml"

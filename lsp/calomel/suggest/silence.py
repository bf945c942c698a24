"""Why nothing is shown: a reason and a plain sentence for every silence; and the status of a suggester."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Self


class SilenceReason(StrEnum):
    """Every reason for showing nothing; its value is what is counted and sent to clients.

    Attributes:
        message: the sentence for people.
    """

    message: str

    def __new__(cls, value: str, message: str = "") -> Self:
        """A reason and its sentence."""
        reason = str.__new__(cls, value)
        reason._value_ = value
        reason.message = message
        return reason

    SUPERSEDED = "superseded", "A newer request replaced this one."
    OFF_GLOBALLY = "off_globally", "Suggestions are off."
    OFF_LANGUAGE = "off_language", "Suggestions are off for this language."
    OFF_FILE = "off_file", "Suggestions are off for this file."
    OFF_NEXT_EDIT = "off_next_edit", "Next-edit suggestions are off."
    SNOOZED = "snoozed", "You snoozed suggestions."
    ON_REQUEST = "on_request", "Suggestions appear only when you ask."
    IGNORED_PATH = "ignored_path", "An ignore rule excludes this file."
    UNKNOWN_DOCUMENT = "unknown_document", "The editor has not opened this document."
    NO_MODEL = "no_model", "No model answers."
    LOADING = "loading", "The model is still loading."
    OVERLOADED = "overloaded", "The model server is overloaded."
    TIMEOUT = "timeout", "The model did not answer in time."
    FAILED = "failed", "The model failed to answer. `calomel doctor` asks it and finds the reason."
    NOT_TRAINED_FOR_EDITS = (
        "not_trained_for_edits",
        "This model writes completions but no next edits.",
    )
    MULTI_CURSOR = "multi_cursor", "There are several cursors."
    MID_WORD = "mid_word", "The cursor is inside a word."
    IN_COMMENT = "in_comment", "Suggestions in comments are off."
    IN_STRING = "in_string", "Suggestions in strings are off."
    COOLDOWN = "cooldown", "You dismissed several suggestions in a row, so Calomel pauses."
    NO_RECENT_EDIT = "no_recent_edit", "You have not edited anything here recently."
    EMPTY = "empty", "The model suggested nothing."
    NO_CHANGE = "no_change", "The model would change nothing."
    NOT_ASKED = "not_asked", "Nothing here continues your last edits."
    DELETES_TOO_MUCH = (
        "deletes_too_much",
        "The suggestion would delete many lines.",
    )
    LOW_CONFIDENCE = "low_confidence", "The model was not confident enough."
    SAVES_NOTHING = "saves_nothing", "Accepting the suggestion would not save a keystroke."
    WHITESPACE_ONLY = "whitespace_only", "The suggestion is only white space."
    DUPLICATE_OF_SUFFIX = "duplicate_of_suffix", "The suggestion repeats what already follows the cursor."
    CUT_OFF = "cut_off", "The answer reached its length or time limit before it completed a line."
    TOO_LARGE = "too_large", "The suggestion was too long."
    WRONG_REGION = "wrong_region", "The suggestion changes lines outside its region."
    PROMPT_MARKER = "prompt_marker", "The suggestion contains prompt markup."
    REVERTS_EDIT = "reverts_edit", "The suggestion reverts a recent edit."
    RESUMES_UNDONE = "resumes_undone", "The suggestion continues an edit you undid."
    REINSERTS_DELETED = "reinserts_deleted", "The suggestion brings back text you just deleted."
    DELETES_TYPED = "deletes_typed", "The suggestion deletes text you just wrote."
    REPEATS_ABOVE = "repeats_above", "The suggestion repeats the lines above it."
    REPEATS_BELOW = "repeats_below", "The suggestion repeats the lines below it."
    REPEATS_ITSELF = "repeats_itself", "The suggestion repeats itself."
    NAMES_NEIGHBOUR = "names_neighbour", "The suggestion copies a name or number from a neighbouring block."
    UNBALANCED = "unbalanced", "The suggestion leaves a bracket or quote unmatched."
    UNKNOWN_NAME = "unknown_name", "The suggestion uses an unknown name."
    UNPARSABLE = "unparsable", "The suggestion adds a syntax error."
    EMPTY_COMMENT = "empty_comment", "The suggestion is an empty comment."
    PATH_LINE = "path_line", "The suggestion is the file's name."
    REJECTED_BEFORE = "rejected_before", "You dismissed this suggestion before."
    SECRET = "secret", "The suggestion touches or resembles a secret."
    DISAGREES_WITH_SELECTED = (
        "disagrees_with_selected",
        "The suggestion does not continue the selected completion item.",
    )
    STALE = "stale", "The file has changed since."
    CLOSED = "closed", "The session is ending."


# For files that models do not see, by the verdict's reason; the rule, if it names one, follows in brackets.
_HIDDEN: Final = {
    "secret_file": "This file may contain a secret.",
    "excluded": "A pattern in privacy.ignore excludes this file.",
    "gitignored": "Git ignores this file.",
    "too_large": "This file is larger than 1 MB.",
    "generated": "This file is generated.",
    "minified": "This file is minified.",
    "binary": "This is not a text file.",
    "unreadable": "Calomel cannot read this file.",
    "moved": "This file was moved or deleted.",
}


@dataclass(frozen=True, slots=True)
class Silence:
    """An answer without a suggestion.

    Attributes:
        reason: for counting.
        message: for people; one sentence, never the user's text.
        waited: seconds of debounce before it was decided.
        asked: a model was asked for this answer.
    """

    reason: SilenceReason
    message: str = ""
    waited: float = 0.0
    asked: bool = False

    @classmethod
    def of(cls, reason: SilenceReason, detail: str = "", *, waited: float = 0.0, asked: bool = False) -> Self:
        """The silence for `reason`: its sentence, followed by `detail` as another if there is any."""
        if detail:
            # Names keep their letters: llama.cpp, vLLM.
            first, _, _ = detail.partition(" ")
            detail = f"{detail[0].upper() if first.islower() and first.isalpha() else detail[0]}{detail[1:]}"
            detail = detail if detail.endswith((".", "!", "?", ")", "…")) else f"{detail}."
        return cls(reason, f"{reason.message} {detail}".strip(), waited, asked)

    @classmethod
    def kept(cls, reason: str) -> Self:
        """The silence in a file that no model sees, for the `reason` of `calomel.workspace.privacy.Verdict`."""
        name, _, rule = reason.partition(":")
        why = _HIDDEN.get(name, SilenceReason.IGNORED_PATH.message)
        return cls(SilenceReason.IGNORED_PATH, f"{why.removesuffix('.')} ({rule})." if rule else why)


@dataclass(slots=True)
class SuggesterStatus:
    """The state of a suggester.

    Attributes:
        requests: requests from the editor.
        asked: those that reached the model.
        cached: suggestions served without the model.
        silences: how often each reason was the answer.
        last: how the last request was answered: `{"reason", "message"}` or `{"shown": id}`; None before the first.
        outcomes: how often each outcome occurred.
        withheld: what was held back, as in `SuppressedTracker.report`.
        latency_p50: seconds from the question (without debounce) to the model's answer; None before the first.
        latency_p95: likewise.
        off: why suggestions are off altogether; None when they are on.
    """

    requests: int = 0
    asked: int = 0
    cached: int = 0
    silences: Counter[str] = field(default_factory=Counter)
    last: Mapping[str, str] | None = None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    withheld: Mapping[str, Any] = field(default_factory=dict)
    latency_p50: float | None = None
    latency_p95: float | None = None
    off: SilenceReason | None = None

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

    SUPERSEDED = "superseded", "A newer request took this one's place."
    OFF_GLOBALLY = "off_globally", "Suggestions are turned off."
    OFF_LANGUAGE = "off_language", "Suggestions are turned off for this language."
    OFF_FILE = "off_file", "Suggestions are turned off for this file."
    OFF_NEXT_EDIT = "off_next_edit", "Next-edit suggestions are turned off."
    SNOOZED = "snoozed", "Suggestions are snoozed."
    ON_REQUEST = "on_request", "Suggestions are shown when you ask for them."
    IGNORED_PATH = "ignored_path", "This file is excluded by an ignore rule, so no model sees it."
    UNKNOWN_DOCUMENT = "unknown_document", "The editor has not opened this document here."
    NO_MODEL = "no_model", "No model can be reached."
    LOADING = "loading", "The model is still loading."
    OVERLOADED = "overloaded", "The model server has too much to do."
    TIMEOUT = "timeout", "The model did not answer in time."
    FAILED = "failed", "The model failed to answer; the log says more."
    NOT_TRAINED_FOR_EDITS = (
        "not_trained_for_edits",
        "The loaded model fills in text and was not trained to rewrite it.",
    )
    MULTI_CURSOR = "multi_cursor", "Several cursors are typing at once."
    MID_WORD = "mid_word", "The cursor stands inside a word."
    IN_COMMENT = "in_comment", "Suggestions in comments are turned off."
    IN_STRING = "in_string", "Suggestions in strings are turned off."
    COOLDOWN = "cooldown", "Several suggestions were rejected in a row, so there is a pause."
    NO_RECENT_EDIT = "no_recent_edit", "The cursor moved, but nothing was edited here lately."
    EMPTY = "empty", "The model had nothing to add."
    NO_CHANGE = "no_change", "The model would leave the text as it is."
    NOT_ASKED = "not_asked", "No model was asked: nothing here follows from the last edits."
    DELETES_TOO_MUCH = (
        "deletes_too_much",
        "The suggestion would delete many lines, as if the model's answer had been cut.",
    )
    LOW_CONFIDENCE = "low_confidence", "The model was not sure enough."
    WHITESPACE_ONLY = "whitespace_only", "The suggestion was only white space."
    DUPLICATE_OF_SUFFIX = "duplicate_of_suffix", "The suggestion repeats what already follows the cursor."
    CUT_OFF = "cut_off", "The model's answer was cut off at its limit before a whole line of it was there."
    TOO_LARGE = "too_large", "The suggestion has more lines than anybody reads."
    WRONG_REGION = "wrong_region", "The suggestion changes other lines than those it was asked for."
    PROMPT_MARKER = "prompt_marker", "The suggestion contains marks of a prompt, which are no part of any file."
    REVERTS_EDIT = "reverts_edit", "The suggestion undoes what was just changed."
    RESUMES_UNDONE = "resumes_undone", "The suggestion goes on with an edit that was taken back."
    REINSERTS_DELETED = "reinserts_deleted", "The suggestion brings back what was just deleted."
    DELETES_TYPED = "deletes_typed", "The suggestion deletes what was just written."
    REPEATS_ABOVE = "repeats_above", "The suggestion repeats the lines above it."
    REPEATS_BELOW = "repeats_below", "The suggestion repeats the lines below it."
    REPEATS_ITSELF = "repeats_itself", "The suggestion says the same thing over and over."
    NAMES_NEIGHBOUR = "names_neighbour", "The suggestion has a number or a name of the block that it is copied from."
    UNBALANCED = "unbalanced", "The suggestion leaves a bracket or a quote without its counterpart."
    UNKNOWN_NAME = "unknown_name", "The suggestion uses a name that the file does not have."
    UNPARSABLE = "unparsable", "The suggestion makes a syntax error."
    EMPTY_COMMENT = "empty_comment", "The suggestion is a comment without words."
    PATH_LINE = "path_line", "The suggestion names the file instead of going on with it."
    REJECTED_BEFORE = "rejected_before", "The same suggestion was rejected before."
    SECRET = "secret", "The suggestion touches a secret, or looks like one."
    DISAGREES_WITH_SELECTED = (
        "disagrees_with_selected",
        "The suggestion does not continue the selected completion item.",
    )
    STALE = "stale", "The document changed in a way that the suggestion no longer fits."
    CLOSED = "closed", "The session is ending."


# For files that models do not see because of what they are, not because of a rule; by the verdict's reason.
_UNFIT: Final = {
    "too_large": "This file is larger than 1 MB, which no model reads.",
    "generated": "This file was made by a program, so no model sees it.",
    "minified": "This file is minified, so no model sees it.",
    "binary": "This file is no text, so no model sees it.",
    "unreadable": "This file cannot be read, so no model sees it.",
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
        """The silence for `reason`: its sentence, followed by `detail` if there is any."""
        return cls(reason, f"{reason.message} {detail}".strip(), waited, asked)

    @classmethod
    def kept(cls, reason: str) -> Self:
        """The silence in a file that no model sees, for the `reason` of `calomel.workspace.privacy.Verdict`."""
        why = _UNFIT.get(reason.partition(":")[0], SilenceReason.IGNORED_PATH.message)
        return cls(SilenceReason.IGNORED_PATH, why if reason in _UNFIT else f"{why} ({reason})")


@dataclass(slots=True)
class Status:
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

"""Why nothing is shown: one reason with one plain sentence for every silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, Self


class SilenceReason(StrEnum):
    """Every reason for showing nothing; the value is what is counted and sent to a client."""

    SUPERSEDED = "superseded"
    OFF_GLOBALLY = "off_globally"
    OFF_LANGUAGE = "off_language"
    OFF_FILE = "off_file"
    OFF_NEXT_EDIT = "off_next_edit"
    SNOOZED = "snoozed"
    IGNORED_PATH = "ignored_path"
    UNKNOWN_DOCUMENT = "unknown_document"
    NO_MODEL = "no_model"
    LOADING = "loading"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    FAILED = "failed"
    NOT_TRAINED_FOR_EDITS = "not_trained_for_edits"
    MULTI_CURSOR = "multi_cursor"
    MID_WORD = "mid_word"
    IN_COMMENT = "in_comment"
    IN_STRING = "in_string"
    COOLDOWN = "cooldown"
    NO_RECENT_EDIT = "no_recent_edit"
    EMPTY = "empty"
    NO_CHANGE = "no_change"
    DELETES_TOO_MUCH = "deletes_too_much"
    LOW_CONFIDENCE = "low_confidence"
    WHITESPACE_ONLY = "whitespace_only"
    DUPLICATE_OF_SUFFIX = "duplicate_of_suffix"
    CUT_OFF = "cut_off"
    TOO_LARGE = "too_large"
    WRONG_REGION = "wrong_region"
    PROMPT_MARKER = "prompt_marker"
    REVERTS_EDIT = "reverts_edit"
    RESUMES_UNDONE = "resumes_undone"
    REINSERTS_DELETED = "reinserts_deleted"
    DELETES_TYPED = "deletes_typed"
    REPEATS_ABOVE = "repeats_above"
    REPEATS_BELOW = "repeats_below"
    REPEATS_ITSELF = "repeats_itself"
    NAMES_NEIGHBOUR = "names_neighbour"
    UNBALANCED = "unbalanced"
    UNKNOWN_NAME = "unknown_name"
    UNPARSABLE = "unparsable"
    EMPTY_COMMENT = "empty_comment"
    PATH_LINE = "path_line"
    REJECTED_BEFORE = "rejected_before"
    SECRET = "secret"  # noqa: S105 (a reason)
    DISAGREES_WITH_SELECTED = "disagrees_with_selected"
    STALE = "stale"
    CLOSED = "closed"

    @property
    def message(self) -> str:
        """The sentence that a person reads."""
        return _SENTENCES[self]


_SENTENCES: Final[dict[SilenceReason, str]] = {
    SilenceReason.SUPERSEDED: "A newer request took this one's place.",
    SilenceReason.OFF_GLOBALLY: "Suggestions are turned off.",
    SilenceReason.OFF_LANGUAGE: "Suggestions are turned off for this language.",
    SilenceReason.OFF_FILE: "Suggestions are turned off for this file.",
    SilenceReason.OFF_NEXT_EDIT: "Next-edit suggestions are turned off.",
    SilenceReason.SNOOZED: "Suggestions are snoozed.",
    SilenceReason.IGNORED_PATH: "This file is excluded by an ignore rule, so no model sees it.",
    SilenceReason.UNKNOWN_DOCUMENT: "The editor has not opened this document here.",
    SilenceReason.NO_MODEL: "No model can be reached.",
    SilenceReason.LOADING: "The model is still loading.",
    SilenceReason.OVERLOADED: "The model server has too much to do.",
    SilenceReason.TIMEOUT: "The model did not answer in time.",
    SilenceReason.FAILED: "The model failed to answer; the log says more.",
    SilenceReason.NOT_TRAINED_FOR_EDITS: "The loaded model fills in text and was not trained to rewrite it.",
    SilenceReason.MULTI_CURSOR: "Several cursors are typing at once.",
    SilenceReason.MID_WORD: "The cursor stands inside a word.",
    SilenceReason.IN_COMMENT: "Suggestions in comments are turned off.",
    SilenceReason.IN_STRING: "Suggestions in strings are turned off.",
    SilenceReason.COOLDOWN: "Several suggestions were rejected in a row, so there is a pause.",
    SilenceReason.NO_RECENT_EDIT: "The cursor moved, but nothing was edited here lately.",
    SilenceReason.EMPTY: "The model had nothing to add.",
    SilenceReason.NO_CHANGE: "The model would leave the text as it is.",
    SilenceReason.DELETES_TOO_MUCH: "The suggestion would delete many lines, as if the model's answer had been cut.",
    SilenceReason.LOW_CONFIDENCE: "The model was not sure enough.",
    SilenceReason.WHITESPACE_ONLY: "The suggestion was only white space.",
    SilenceReason.DUPLICATE_OF_SUFFIX: "The suggestion repeats what already follows the cursor.",
    SilenceReason.CUT_OFF: "The model's answer was cut off at its limit before a whole line of it was there.",
    SilenceReason.TOO_LARGE: "The suggestion has more lines than anybody reads.",
    SilenceReason.WRONG_REGION: "The suggestion changes other lines than those it was asked for.",
    SilenceReason.PROMPT_MARKER: "The suggestion contains marks of a prompt, which are no part of any file.",
    SilenceReason.REVERTS_EDIT: "The suggestion undoes what was just changed.",
    SilenceReason.RESUMES_UNDONE: "The suggestion goes on with an edit that was taken back.",
    SilenceReason.REINSERTS_DELETED: "The suggestion brings back what was just deleted.",
    SilenceReason.DELETES_TYPED: "The suggestion deletes what was just written.",
    SilenceReason.REPEATS_ABOVE: "The suggestion repeats the lines above it.",
    SilenceReason.REPEATS_BELOW: "The suggestion repeats the lines below it.",
    SilenceReason.REPEATS_ITSELF: "The suggestion says the same thing over and over.",
    SilenceReason.NAMES_NEIGHBOUR: "The suggestion has a number or a name of the block that it is copied from.",
    SilenceReason.UNBALANCED: "The suggestion leaves a bracket or a quote without its counterpart.",
    SilenceReason.UNKNOWN_NAME: "The suggestion uses a name that the file does not have.",
    SilenceReason.UNPARSABLE: "The suggestion makes a syntax error.",
    SilenceReason.EMPTY_COMMENT: "The suggestion is a comment without words.",
    SilenceReason.PATH_LINE: "The suggestion names the file instead of going on with it.",
    SilenceReason.REJECTED_BEFORE: "The same suggestion was rejected before.",
    SilenceReason.SECRET: "The suggestion touches a secret, or looks like one.",
    SilenceReason.DISAGREES_WITH_SELECTED: "The suggestion does not continue the selected completion item.",
    SilenceReason.STALE: "The document changed in a way that the suggestion no longer fits.",
    SilenceReason.CLOSED: "The session is ending.",
}


# Where no rule of anybody's keeps a file from models, but what it is: by the verdict's reason.
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
        """The silence of `reason`, with its sentence and, if there is one, a second sentence of detail."""
        return cls(reason, f"{reason.message} {detail}".strip(), waited, asked)

    @classmethod
    def kept(cls, reason: str) -> Self:
        """The silence in a file that no model sees, for the `reason` of `calomel.workspace.privacy.Verdict`."""
        why = _UNFIT.get(reason.partition(":")[0], SilenceReason.IGNORED_PATH.message)
        return cls(SilenceReason.IGNORED_PATH, why if reason in _UNFIT else f"{why} ({reason})")


ModelState = Literal["unknown", "loading", "ready", "unreachable", "failed"]


@dataclass(frozen=True, slots=True)
class LastWithheld:
    """The latest suggestion that was held back, in numbers.

    Attributes:
        reason: of the silence.
        kind: `fill` or `edit`.
        maker: who proposed it.
        probability: that it would have been accepted, as far as the gate can tell.
        threshold: of its language; None when the gate has none.
    """

    reason: str
    kind: str
    maker: str
    probability: float
    threshold: float | None


@dataclass(frozen=True, slots=True)
class WithheldReport:
    """The suggestions that were held back, each counted once however often it came back.

    Attributes:
        by_reason: how many for each reason.
        by_maker: how many of each maker.
        typed: by reason, those that the user then wrote by hand.
        last: the latest one.
    """

    by_reason: Mapping[str, int] = field(default_factory=dict)
    by_maker: Mapping[str, int] = field(default_factory=dict)
    typed: Mapping[str, int] = field(default_factory=dict)
    last: LastWithheld | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """One look at a suggester.

    Attributes:
        state: of the model.
        model: id of the loaded model, None before it is known.
        message: one sentence for people.
        silences: how often each reason was the answer.
        outcomes: how often each outcome came.
        requests: questions of the editor.
        asked: questions that reached the model.
        cached: suggestions answered without the model.
        latency_p50: seconds from the question (debounce excluded) to the answer of the model; None before the first.
        latency_p95: likewise.
        off: the reason why nothing is suggested at all, None when it is on.
        last: how the last question was answered: `{"reason", "message"}` or `{"shown": id}`; None before the first.
        withheld: what was held back.
    """

    state: ModelState
    model: str | None
    message: str
    silences: Mapping[str, int] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)
    requests: int = 0
    asked: int = 0
    cached: int = 0
    latency_p50: float | None = None
    latency_p95: float | None = None
    off: str | None = None
    last: Mapping[str, str] | None = None
    withheld: WithheldReport = field(default_factory=WithheldReport)

"""Whether anything may be suggested, and whether the model is asked now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calomel.infer.fitting import splits_word
from calomel.suggest.pace import Cooldown
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.snapshot import Request, Trigger
from calomel.suggest.state import DocumentState
from calomel.workspace.documents import Document
from calomel.workspace.settings import SuggestSettings
from calomel.workspace.workspace import Workspace

# A moving cursor asks for a next edit only within this many seconds of an edit (Copilot's rule).
_AFTER_EDIT: Final = 10.0


class Permission:
    """The settings, overridden by what the user turned on or off by command since; the file's rules; the place.

    Attributes:
        settings: as they are now.
        snoozed_until: suggestions are off until then.
    """

    def __init__(
        self, workspace: Workspace, settings: SuggestSettings, cooldown: Cooldown, clock: Callable[[], float]
    ) -> None:
        self.settings = settings
        self.snoozed_until: float | None = None
        self._workspace = workspace
        self._cooldown = cooldown
        self._clock = clock
        self._by_hand: dict[tuple[str, str], bool] = {}

    def toggle(self, scope: str, name: str | None, *, enabled: bool | None) -> bool:
        """Turn suggestions on or off by command. Returns the new state.

        Args:
            scope: `global`, `language` or `file`.
            name: the language id or the URI.
            enabled: whether to turn them on; None toggles.

        Raises:
            ValueError: unknown scope, or the name that the scope needs is missing.
        """
        settings = self.settings
        defaults = {"global": settings.enabled, "language": settings.language_enabled(name or ""), "file": True}
        if scope not in defaults or (name is None and scope != "global"):
            raise ValueError(f"the scope {scope!r} is unknown or incomplete")
        key = scope, "" if scope == "global" else str(name)
        self._by_hand[key] = not self._by_hand.get(key, defaults[scope]) if enabled is None else enabled
        return self._by_hand[key]

    def off(self, document: Document | None = None) -> SilenceReason | None:
        """Why suggestions are off in a document, or in all; None when they are on."""
        settings = self.settings
        if not self._by_hand.get(("global", ""), settings.enabled):
            return SilenceReason.OFF_GLOBALLY
        if self.snoozed_until is not None and self._clock() < self.snoozed_until:
            return SilenceReason.SNOOZED
        if document is None:
            return None
        if not self._by_hand.get(("file", document.uri), True):
            return SilenceReason.OFF_FILE
        language = document.language_id
        by_language = self._by_hand.get(("language", language), settings.language_enabled(language))
        return None if by_language else SilenceReason.OFF_LANGUAGE

    def place(self, request: Request) -> str:
        """Where the cursor is: `code`, `comment` or `string`; empty if unknown."""
        syntax = self._workspace.syntax
        return "" if syntax is None else syntax.in_comment_or_string(request.document, request.offset) or "code"

    def forbidden(self, request: Request, state: DocumentState) -> Silence | None:
        """Why nothing may be suggested there; None when something may.

        An explicit question is answered whatever is turned off, but a file that is ignored is never read.
        """
        settings, explicit = self.settings, request.explicit
        reason = None if explicit else self.off(request.document)
        if reason is None and not explicit and settings.show == "on_request" and request.drafts is None:
            reason = SilenceReason.ON_REQUEST
        if reason is None and not explicit and request.kind == "edit" and not settings.next_edit:
            reason = SilenceReason.OFF_NEXT_EDIT
        if reason is None:
            unfit = self._workspace.verdict(request.document).reason or state.unfit(request.document)
            if unfit:
                return Silence.kept(unfit)
        if reason is None and state.cursors.several_at(request.offset):
            reason = SilenceReason.MULTI_CURSOR
        if reason is None and not explicit and not (settings.in_comments and settings.in_strings):
            place = self.place(request)
            if place == "comment" and not settings.in_comments:
                reason = SilenceReason.IN_COMMENT
            elif place == "string" and not settings.in_strings:
                reason = SilenceReason.IN_STRING
        return None if reason is None else Silence.of(reason)

    def unwelcome(self, request: Request, state: DocumentState) -> Silence | None:
        """Why the model is not asked now; None when it may be."""
        if request.explicit:
            return None
        if (
            request.kind == "fill"
            and request.selected is None
            and splits_word(request.before, request.document.text[request.offset :][:1])
        ):
            return Silence.of(SilenceReason.MID_WORD)
        age, moved = state.recent.age, request.trigger is Trigger.CURSOR
        if any(each.start <= request.offset <= each.end for each in request.diagnostics):
            age = 0.0  # going to a problem says as much as an edit
        if (age is None and (moved or request.kind == "edit")) or (age is not None and moved and age > _AFTER_EDIT):
            return Silence.of(SilenceReason.NO_RECENT_EDIT)
        return Silence.of(SilenceReason.COOLDOWN) if self._cooldown.left else None

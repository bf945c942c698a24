"""Where and when suggestions are turned off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calomel.suggest.silence import SilenceReason

SCOPES: Final = ("global", "language", "file")


class Switches:
    """What the settings say, and what the user turned on or off since by a command, which comes first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_hand: dict[tuple[str, str], bool] = {}
        self._snoozed_until: float | None = None

    def set(self, scope: str, name: str, *, enabled: bool) -> None:
        """Turn suggestions on or off by hand; `name` is the language id or the URI, empty for `global`."""
        if scope not in SCOPES:
            raise ValueError(f"the scope is one of {', '.join(SCOPES)}, not {scope!r}")
        self._by_hand[scope, name] = enabled

    def by_hand(self, scope: str, name: str) -> bool | None:
        """What the user said; None when nothing."""
        return self._by_hand.get((scope, name))

    def snooze(self, until: float | None) -> None:
        """Be silent until the clock shows `until`; None ends it."""
        self._snoozed_until = until

    @property
    def snoozed(self) -> float:
        """Seconds of silence that are left."""
        return 0.0 if self._snoozed_until is None else max(0.0, self._snoozed_until - self._clock())

    def off(self, uri: str, language: str, *, enabled: bool, language_enabled: bool) -> SilenceReason | None:
        """Why nothing may be suggested in a document; None when it may.

        Args:
            uri: of the document.
            language: its id.
            enabled: what the settings say of everything.
            language_enabled: what they say of this language.
        """
        if not self._said("global", "", default=enabled):
            return SilenceReason.OFF_GLOBALLY
        if self.snoozed:
            return SilenceReason.SNOOZED
        if not self._said("file", uri, default=True):
            return SilenceReason.OFF_FILE
        if not self._said("language", language, default=language_enabled):
            return SilenceReason.OFF_LANGUAGE
        return None

    def _said(self, scope: str, name: str, *, default: bool) -> bool:
        said = self._by_hand.get((scope, name))
        return default if said is None else said

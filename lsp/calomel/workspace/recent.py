"""Where the user has been: places looked at and edited, the newest first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from calomel.workspace.documents import TextChange

_MOST: Final = 24
# Closer than this it is the same place.
_SAME: Final = 20


@dataclass(frozen=True, slots=True)
class RecentPlace:
    """Some lines of a document.

    Attributes:
        uri: of the document.
        start, end: lines, `end` excluded.
        edited: something was changed here.
    """

    uri: str
    start: int
    end: int
    edited: bool


class RecentPlaces:
    """A short list that follows the edits."""

    def __init__(self) -> None:
        self._places: list[RecentPlace] = []
        # Counts, for each document, the places that were new.
        self._news: dict[str, int] = {}

    def add(self, uri: str, start: int, end: int, *, edited: bool) -> None:
        """The user looks at these lines, or edits them."""
        for at, place in enumerate(self._places):
            if place.uri == uri and start <= place.end + _SAME and end >= place.start - _SAME:
                was_edited = place.edited or edited
                self._places.insert(0, RecentPlace(uri, start, end, was_edited))
                del self._places[at + 1]
                return
        self._places.insert(0, RecentPlace(uri, start, end, edited))
        self._news[uri] = self._news.get(uri, 0) + 1
        del self._places[_MOST:]

    def shift(self, uri: str, change: TextChange) -> None:
        """Lines above a place were added or removed."""
        lines = _line_ends(change.inserted) - (change.end_line - change.start_line)
        if lines == 0:
            return
        for at, place in enumerate(self._places):
            if place.uri == uri and place.start > change.start_line:
                start = max(change.start_line, place.start + lines)
                self._places[at] = replace(place, start=start, end=max(start + 1, place.end + lines))

    def others(self, uri: str) -> tuple[RecentPlace, ...]:
        """The places of other documents, the newest first."""
        return tuple(place for place in self._places if place.uri != uri)

    def news_of_others(self, uri: str) -> int:
        """Grows when the user comes to a new place of another document."""
        return sum(count for each, count in self._news.items() if each != uri)


def _line_ends(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")

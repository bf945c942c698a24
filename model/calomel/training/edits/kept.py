"""The stories of one split that a build keeps, each once, and counts of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from calomel.training.corpus.cleaning import MeasuringData, SeenText
from calomel.training.edits.story import Story


@dataclass(slots=True)
class Kept:
    """One split's stories. Refused ones are counted in `dropped`, by reason."""

    measuring: MeasuringData | None
    stories: list[Story] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _seen: defaultdict[str, SeenText] = field(default_factory=lambda: defaultdict(SeenText))

    def add(self, story: Story) -> bool:
        """Keep the story and return True, or count why not."""
        edited = edited_lines(story)
        seen = self._seen[story.kind]
        fault = seen.fault(edited)
        if fault is None and self.measuring is not None:
            fault = self.measuring.fault(f"{story.text}\n{edited}")
        if fault is not None:
            self.dropped[fault] += 1
            return False
        seen.add(edited)
        self.stories.append(story)
        self._counts[story.language, story.kind] += 1
        return True

    def count(self, language: str, kind: str) -> int:
        """Stories of one kind in one language."""
        return self._counts[language, kind]

    def __len__(self) -> int:
        return len(self.stories)


def edited_lines(story: Story) -> str:
    """Return the lines that a story changes, each before and after: two stories are equal if these are."""
    parts = []
    for change, text in zip(story.changes, story.states(), strict=False):
        start = text.rfind("\n", 0, change.start) + 1
        end = text.find("\n", change.end)
        end = len(text) if end < 0 else end
        parts += [text[start:end], text[start : change.start] + change.text + text[change.end : end]]
    return "\n".join(parts)


def tally(stories: Sequence[Story]) -> dict[str, Any]:
    """Count one split; `changes` counts stories by their number of changes."""
    both: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for story in stories:
        both[story.kind][story.language] += 1
    return {
        "stories": len(stories),
        "by_kind": Counter(story.kind for story in stories),
        "by_language": Counter(story.language for story in stories),
        "by_kind_and_language": both,
        "changes": Counter(len(story.changes) for story in stories),
    }

"""The stories kept so far: tells which new one is a repetition or holds measuring data."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from calomel.training.corpus.contamination import MeasuringData
from calomel.training.corpus.duplicates import SeenText
from calomel.training.edits.story import Story


@dataclass(slots=True)
class Kept:
    """One split's stories. What is refused is counted in `dropped`, by reason."""

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

    def of_language(self, language: str) -> int:
        """Stories in one language."""
        return sum(count for (of, _), count in self._counts.items() if of == language)

    def __len__(self) -> int:
        return len(self.stories)

    def __iter__(self) -> Iterator[Story]:
        return iter(self.stories)


def edited_lines(story: Story) -> str:
    """Return the lines that a story changes, each before and after: what makes two stories the same."""
    parts = []
    for change, text in zip(story.changes, story.states(), strict=False):
        start = text.rfind("\n", 0, change.start) + 1
        end = text.find("\n", change.end)
        end = len(text) if end < 0 else end
        parts += [text[start:end], text[start : change.start] + change.text + text[change.end : end]]
    return "\n".join(parts)

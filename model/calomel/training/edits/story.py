"""A story: one intent carried out in one file, change by change; and stories on disk, cropped around their changes."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final

from calomel.prompts.parts import Edit, edited
from calomel.training.corpus.shards import read_lines, write_lines

WORDS: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))

# The kind of stories that commits tell.
COMMIT: Final = "commit"
LANGUAGES: Final = ("python", "typescript", "javascript", "go", "rust")
# No file that a person edits takes longer to parse.
_SECONDS: Final = 60.0


class Source:
    """One file; parsed when first needed.

    Attributes:
        path: with forward slashes; ".tsx" has a grammar of its own.
        language: one of `LANGUAGES`.
        text: the file's text.
    """

    def __init__(self, path: str, language: str, text: str) -> None:
        if language not in LANGUAGES:
            raise ValueError(f"{language!r} is not one of {', '.join(LANGUAGES)}")
        self.path = path
        self.language = language
        self.text = text

    def with_text(self, text: str) -> Source:
        """The same file with another text."""
        return Source(self.path, self.language, text)

    @cached_property
    def has_error(self) -> bool:
        """Whether the parser had to guess anywhere."""
        from calomel.code.languages import grammar_of  # a machine that only trains has no parsers
        from calomel.code.trees import parse

        tsx = PurePosixPath(self.path).suffix.lower() == ".tsx"
        tree = parse(self.text, grammar_of("typescriptreact" if tsx else self.language), _SECONDS)
        return tree is None or tree.root_node.has_error


# Characters from the first place of a story to its last. Places further apart do not fit into the text kept of a file.
REACH: Final = 12_000


@dataclass(frozen=True, slots=True)
class Story:
    """A text and the changes that a person makes to it, in order.

    Attributes:
        kind: the maker's name.
        language: "python", "typescript", "javascript", "go" or "rust".
        path: of the file, with forward slashes.
        text: before the first change.
        changes: each in the coordinates of the text that the earlier ones leave.
    """

    kind: str
    language: str
    path: str
    text: str
    changes: tuple[Edit, ...]

    def states(self) -> tuple[str, ...]:
        """The text before the first change and after each one: one more than there are changes."""
        texts = [self.text]
        for change in self.changes:
            texts.append(change.apply(texts[-1]))
        return tuple(texts)


def sequential(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Edits that all refer to the same text, as successive changes in the given order.

    They must not overlap. Of two insertions at one place, the earlier in the order comes first.
    """
    done: list[Edit] = []
    changes = []
    for edit in edits:
        moved = 0
        for other in done:
            if other.end <= edit.start:
                moved += len(other.text) - (other.end - other.start)
            elif edit.end > other.start or edit.start == edit.end == other.start == other.end:
                raise ValueError(f"{edit} overlaps {other}")
        changes.append(Edit(edit.start + moved, edit.end + moved, edit.text))
        done.append(edit)
    return tuple(changes)


def story_of(kind: str, source: Source, edits: Sequence[Edit]) -> Story | None:
    """The story of edits that all refer to the file's own text, in the order given.

    None if there is no story: no edit, edits that change nothing or overlap, places too far apart, or a result that
    does not parse (or a file that did not parse before).
    """
    edits = [edit for edit in edits if source.text[edit.start : edit.end] != edit.text]
    if not edits or source.has_error:
        return None
    by_place = sorted(edits, key=lambda edit: (edit.start, edit.end))
    if by_place[-1].end - by_place[0].start > REACH:
        return None
    if any(one.end > other.start for one, other in pairwise(by_place)):
        return None
    story = Story(kind, source.language, source.path, source.text, sequential(edits))
    result = edited(source.text, by_place)
    return None if result == source.text or source.with_text(result).has_error else story


# Characters of a story's text: several times the context that a small model sees around its region.
CROP_CHARACTERS = 12_000


def crop(story: Story, rng: random.Random, characters: int = CROP_CHARACTERS) -> Story | None:
    """Cut a story's text to whole lines around its changes, at most `characters` before the first change.

    The position of the changes in the crop is drawn. None if the changes are further apart than that.
    """
    first, last = _touched(story)
    text = story.text
    first = text.rfind("\n", 0, first) + 1
    if last == first or text[last - 1] != "\n":
        last = (text.find("\n", last) + 1) or len(text)
    room = characters - (last - first)
    if room < 0:
        return None
    before = min(first, max(round(room * rng.random()), room - (len(text) - last)))
    start = 0 if before == first else text.find("\n", first - before - 1) + 1
    end = min(len(text), last + room - (first - start))
    end = len(text) if end == len(text) else max(last, text.rfind("\n", 0, end) + 1)
    changes = tuple(Edit(c.start - start, c.end - start, c.text) for c in story.changes)
    return Story(story.kind, story.language, story.path, text[start:end], changes)


def _touched(story: Story) -> tuple[int, int]:
    """Return the range of the first text outside of which no change of the story does anything."""
    length = len(story.text)
    before = after = length
    for change in story.changes:
        before = min(before, change.start)
        after = min(after, length - change.end)
        length += len(change.text) - (change.end - change.start)
    return before, max(before, len(story.text) - after)


def write_stories(path: Path, stories: Iterable[Story]) -> None:
    """Write stories in the given order; the file appears whole or not at all."""
    write_lines(path, ({**asdict(story), "changes": story.changes} for story in stories))


def read_stories(path: Path) -> Iterator[Story]:
    """Yield a file's stories in order, without holding them in memory; see `read_lines`."""
    for fields in read_lines(path, "calomel edits"):
        yield Story(**{**fields, "changes": tuple(Edit(*each) for each in fields["changes"])})

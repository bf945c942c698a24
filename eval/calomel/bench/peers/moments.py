"""Where the peers are asked: rests of lines, going down held-out files as a person does who writes them.

A place is a file behind other files of its language, as an editor's context has it. Its moments have all in front of
the file in common, and what stands above the cursor grows from one to the next.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from calomel.bench.heldout import HeldoutFile
from calomel.bench.holes import Hole, TokenMeasure, rests_going_down
from calomel.prompts.parts import Excerpt, PromptParts

# Characters of a file that is gone down: enough lines to go down, and most of the context is left for other files.
SHORTEST, LONGEST = 1200, 7000
# Lines of an excerpt: small ones fill the context to within a few hundred tokens.
EXCERPT_LINES = 30
# Tokens of markers and of a path, and what a text has more of them in two parts than in one.
SPARE_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Moment:
    """A rest of a line to fill.

    Attributes:
        place: names what it shares its beginning with.
        related: what stands in front of the file.
        hole: the line, within its file.
    """

    place: str
    related: tuple[Excerpt, ...]
    hole: Hole

    @property
    def parts(self) -> PromptParts:
        """Of its prompt."""
        hole = self.hole
        return PromptParts(path=hole.path, prefix=hole.prefix, suffix=hole.suffix, related=self.related)

    @property
    def earlier(self) -> Moment:
        """One keystroke before."""
        return replace(self, hole=replace(self.hole, prefix=self.hole.prefix[:-1]))


def moments_going_down(
    files: Sequence[HeldoutFile], measure: TokenMeasure, *, context: int, places: int, moments: int, seed: int
) -> list[Moment]:
    """`moments` of each of `places`, every language alike; a place's last prompt has nearly `context` tokens.

    A language with too few files gives fewer places; the others do not fill in for it.
    """
    languages = sorted({file.language for file in files})
    share = -(-places // max(1, len(languages)))
    columns = [
        _places([file for file in files if file.language == language], measure, context, share, moments, seed)
        for language in languages
    ]
    return [moment for row in range(share) for column in columns if row < len(column) for moment in column[row]][
        : places * moments
    ]


def _places(
    own: list[HeldoutFile], measure: TokenMeasure, context: int, count: int, moments: int, seed: int
) -> list[list[Moment]]:
    """The places of one language."""
    random.Random(f"{seed}:places").shuffle(own)  # noqa: S311 - seeded, not secret
    found: list[list[Moment]] = []
    for file in _packages_in_turns(own):
        if len(found) == count:
            break
        if not SHORTEST <= len(file.text) <= LONGEST:
            continue
        holes = rests_going_down(file, measure, count=moments, seed=seed)
        if len(holes) < moments:
            continue
        room = context - measure.count(file.text) - SPARE_TOKENS
        related = _related(file, own, room, measure)
        found.append([Moment(f"{file.package}:{file.path}", related, hole) for hole in holes])
    return found


def _packages_in_turns(files: Sequence[HeldoutFile]) -> list[HeldoutFile]:
    """One file of each package, then a second one of each, and so on."""
    seen: Counter[str] = Counter()
    turns: list[int] = []
    for file in files:
        turns.append(seen[file.package])
        seen[file.package] += 1
    return [files[at] for at in sorted(range(len(files)), key=turns.__getitem__)]


def _related(file: HeldoutFile, own: Sequence[HeldoutFile], room: int, measure: TokenMeasure) -> tuple[Excerpt, ...]:
    """Excerpts of other files that `room` tokens hold, those of the file's own package nearest to it."""
    others = sorted((other for other in own if other is not file), key=lambda other: other.package != file.package)
    nearest_first: list[Excerpt] = []
    for other in others:
        room -= measure.count(other.path) + 2
        for excerpt in reversed(_excerpts(other)):
            room -= measure.count(excerpt.text)
            if room < 0:
                return tuple(reversed(nearest_first))
            nearest_first.append(excerpt)
    return tuple(reversed(nearest_first))


def _excerpts(file: HeldoutFile) -> list[Excerpt]:
    lines = file.text.splitlines(keepends=True)
    return [
        Excerpt(file.path, start, "".join(lines[start : start + EXCERPT_LINES]))
        for start in range(0, len(lines), EXCERPT_LINES)
    ]


def accepted(answer: str, truth: str) -> int:
    """How many characters of `answer`'s beginning the author of the file has written too."""
    count = 0
    for ours, theirs in zip(answer, truth, strict=False):
        if ours != theirs:
            break
        count += 1
    return count

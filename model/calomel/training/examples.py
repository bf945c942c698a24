"""Training examples of text and of edits: a causal front, and holes or places in it that branch off.

    text     front    [file] path [suffix] far suffix [prefix] text of the window
             branch   rest [near] near suffix [middle] | answer (causal) | canvas A | canvas B     one for each hole
    edits    front    edits, [file] path [suffix] far suffix [prefix] text of the window
             branch   rest [region] text [near] near suffix [middle] | new text of the region …    one for each place

A branch starts where the pre-token under its hole starts: it sees the front before that place and itself, and the front
never sees it. The ids along front and branch are exactly those that `calomel.prompts` renders for the same text or the
same moment: training shows the model what it sees at the cursor. One encoding of the front serves all of its holes.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from calomel.prompts.own import (
    EDITS_SHARE,
    NEAR_TOKENS,
    ContextRenderer,
    assemble_front,
    assemble_tail,
    region_ids,
    split_suffix,
)
from calomel.prompts.parts import EditRegion, RegionBounds, region_around
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.branch import REST, BranchWriter, Example, Ints, Question, draw_positions, empty_example
from calomel.training.config import BatchShape, HoleMix, TrainConfig
from calomel.training.corpus.shards import CorpusError, Document, by_language
from calomel.training.edits.scene import Focus, Scene
from calomel.training.edits.scenes import scene_of
from calomel.training.edits.story import COMMIT, Story
from calomel.training.rendered import Shard

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
# Longest hole in characters: a canvas of 64 tokens rarely holds more.
_LONGEST: Final = 220
_TRIES: Final = 6


@dataclass(frozen=True, slots=True)
class Hole:
    """Characters [start, end) of a text; empty if nothing is to be inserted."""

    start: int
    end: int


def cut(text: str, low: int, high: int, mix: HoleMix, rng: random.Random) -> Hole:
    """A random hole of `text` that starts in [low, high).

    A kind that does not fit at the drawn place is drawn again a few times; then the rest of the line is taken.
    """
    kinds = ("rest_of_line", "inside_line", "inside_token", "inside_indent", "several_lines", "nothing")
    shares = [getattr(mix, kind) for kind in kinds]
    for _ in range(_TRIES):
        kind = rng.choices(kinds, shares)[0]
        hole = _of_kind(kind, text, rng.randrange(low, high), rng)
        if hole is not None and low <= hole.start < high and hole.end - hole.start <= _LONGEST:
            return hole
    start = rng.randrange(low, high)
    return Hole(start, min(_line_end(text, start), start + _LONGEST))


def _of_kind(kind: str, text: str, at: int, rng: random.Random) -> Hole | None:
    begin, end = text.rfind("\n", 0, at) + 1, _line_end(text, at)
    line = text[begin:end]
    code = begin + len(line) - len(line.lstrip())
    if kind == "nothing":
        # Either nothing at all, or up to two characters.
        return Hole(at, min(len(text), at + rng.choice((0, 0, 1, 2))))
    # Where such a hole may start, and where it then ends.
    starts, stop = range(code, end), end
    if kind == "inside_indent":
        starts = range(begin, code)
    elif kind == "inside_token":
        words = list(_WORD.finditer(text, begin, end))
        word = rng.choice(words) if words else None
        starts, stop = (range(word.start() + 1, word.end()), word.end()) if word else (range(0), end)
    elif kind == "inside_line":
        # A shorter one would leave nothing on either side.
        starts = range(code, end - 1) if end - code >= 4 else range(0)  # noqa: PLR2004
    elif kind == "several_lines":
        starts = range(code, code + 1) if rng.random() < 0.5 else starts  # noqa: PLR2004
        for _ in range(rng.choice((1, 1, 2, 3))):
            stop = _line_end(text, min(stop + 1, len(text)))
    if not starts or not line.strip():
        return None
    start = rng.choice(starts)
    if kind in ("inside_token", "inside_line"):
        stop = rng.randrange(start, stop - (kind == "inside_line")) + 1
    return Hole(start, stop)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    if end < 0:
        return len(text)
    return end - 1 if end > at and text[end - 1] == "\r" else end


# Share of the windows that begin where the file does.
_FROM_START_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class _Front:
    """A front: a window of `text` after `head` ids of other context.

    `starts` and `ends` give, for each id of the window, the characters where its pre-token starts and ends.
    """

    text: str
    begin: int
    stop: int
    ids: list[int]
    head: int
    starts: list[int]
    ends: list[int]
    positions: Ints

    def boundary(self, at: int) -> tuple[int, int]:
        """The last pre-token boundary up to a character, and the rows of the front before it."""
        before = bisect_left(self.starts, at)
        if before and self.ends[before - 1] > at:  # inside of this pre-token
            at = self.starts[before - 1]
            before = bisect_left(self.starts, at)
        return at, self.head + before

    def question(self, seen: int, head: list[int], answer: list[int], changed: list[bool] | None = None) -> Question:
        """The question of a branch that sees `seen` rows."""
        return Question(seen, int(self.positions[seen - 1]) + 1, head, answer, changed)


class _Maker:
    def __init__(self, tokenizer: Tokenizer, config: TrainConfig) -> None:
        self._tokenizer = tokenizer
        self.vocab_size = tokenizer.vocab_size
        self._config = config
        self._writer = BranchWriter(tokenizer, config)

    def _begun(
        self,
        path: str,
        text: str,
        begin_at: Callable[[int], int],
        shape: BatchShape,
        rng: random.Random,
        edits: Sequence[int] = (),
        place: int = 0,
    ) -> tuple[Example, _Front]:
        """An example with only its front.

        The window begins where `begin_at` says, given its room in tokens, or later so that `place` is visible.
        """
        config, tokenizer = self._config, self._tokenizer
        path_ids = tokenizer.encode(path)[-NEAR_TOKENS:] if rng.random() < config.path_share else []
        far_room = rng.randrange(16, shape.front // 4) if rng.random() < config.far_suffix_share else 0
        room = shape.front - len(edits) - far_room - len(path_ids) - 3
        begin = begin_at(room)
        ids, starts, ends = tokenizer.encode_with_words(text[begin : begin + room * 6])
        if len(ids) > room and begin + ends[room - 1] < place:
            # The text before the place is cut instead, at a line.
            begin = text.rfind("\n", 0, max(0, place - room)) + 1
            ids, starts, ends = tokenizer.encode_with_words(text[begin : begin + room * 6])
        ids, starts, ends = ids[:room], [begin + each for each in starts[:room]], [begin + each for each in ends[:room]]
        stop = ends[-1] if ends else begin
        line = text.find("\n", stop) + 1
        far = tokenizer.encode(text[line : line + far_room * 6])[:far_room] if far_room and line else []
        head = [*edits, *assemble_front(path_ids, far, (), tokenizer)]
        out = empty_example(shape, tokenizer)
        positions = draw_positions(len(head) + len(ids), config, rng)
        front = _Front(text, begin, stop, [*head, *ids], len(head), starts, ends, positions)
        self._writer.front(out, front.ids, positions, shape)
        return out, front


class ExampleMaker(_Maker):
    """Makes examples of text; all randomness comes from the generator that is passed in."""

    def make(self, document: Document, shape: BatchShape, phase: float, rng: random.Random) -> Example:
        """The example of one window of `document`; `phase` in [0, 1) shifts the low-discrepancy masking rates."""
        text = document.text

        def begin_at(room: int) -> int:
            latest = max(0, len(text) - room * 2)
            return 0 if rng.random() < _FROM_START_SHARE else text.rfind("\n", 0, rng.randrange(latest + 1)) + 1

        out, front = self._begun(document.path, text, begin_at, shape, rng)
        for index in range(shape.holes):
            rate = (phase + index / shape.holes) % 1.0
            self._writer.branch(out, index, self._question(front, rng), shape, rate, rng)
        return out

    def _question(self, front: _Front, rng: random.Random) -> Question:
        tokenizer = self._tokenizer
        low = front.begin + min(160, (front.stop - front.begin) // 4)
        hole = cut(front.text, low, max(low + 1, front.stop), self._config.holes, rng)
        aligned = rng.random() < self._config.holes.aligned
        boundary, seen = front.boundary(hole.start)
        rest = tokenizer.encode(front.text[boundary : hole.start])
        if aligned or len(rest) > REST:
            hole, rest = Hole(boundary, max(boundary, hole.end)), []
        near, _ = split_suffix(front.text[hole.end : hole.end + NEAR_TOKENS * 12], tokenizer)
        head, answer = assemble_tail(rest, near, tokenizer), tokenizer.encode(front.text[hole.start : hole.end])
        return front.question(seen, head, answer)


_CHARACTERS_PER_TOKEN: Final = 3
# Text shown before the first place, in characters, at least and as a share of what fits.
_LEAST_BEFORE: Final = 60
_PLACE_TRIES: Final = 8


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The new text of one region.

    Attributes:
        start, end: of the region, in characters of the scene's text.
        region: its current text, with the cursor.
        text: its new text; the same if silence is right.
    """

    start: int
    end: int
    region: EditRegion
    text: str


def rewriting(scene: Scene, focus: Focus, bounds: RegionBounds) -> Rewriting | None:
    """The region of `focus` and its text after the scene's changes.

    None if there is no clear answer: the region is too long, or a change crosses its border.
    """
    text = scene.text
    start, end = region_around(text, focus.offset, bounds)
    if end - start > bounds.characters:
        return None
    new, at = "", start
    for change in scene.changes:
        if change.end < start or change.start > end:
            continue
        inside = start <= change.start and change.end <= end
        # An insertion between two regions belongs to either.
        between = change.start == change.end and change.start in (start, end) and 0 < change.start < len(text)
        if not inside or between:
            return None
        new += text[at : change.start] + change.text
        at = change.end
    cursor = focus.offset - start if focus.cursor else None
    return Rewriting(start, end, EditRegion(text[start:end], cursor), new + text[at:end])


class EditExampleMaker(_Maker):
    """Makes examples of edits; all randomness comes from the generator that is passed in."""

    def __init__(self, tokenizer: Tokenizer, config: TrainConfig) -> None:
        super().__init__(tokenizer, config)
        self._renderer = ContextRenderer(tokenizer)

    def make(self, scene: Scene, shape: BatchShape, phase: float, rng: random.Random) -> Example | None:
        """The example of one moment, with a branch for each place that is clear; None if none is.

        Remaining branches ask about other places of the window.
        """
        found = [place for focus in scene.focuses if (place := rewriting(scene, focus, self._config.region))]
        if not found:
            return None

        def begin_at(room: int) -> int:
            before = rng.randrange(_LEAST_BEFORE, max(_LEAST_BEFORE + 1, room * _CHARACTERS_PER_TOKEN))
            return scene.text.rfind("\n", 0, max(0, found[0].start - before)) + 1

        edits = self._renderer.last_edits(scene.hunks, int(shape.front * EDITS_SHARE))
        out, front = self._begun(scene.path, scene.text, begin_at, shape, rng, edits, found[0].start)
        places = [place for place in found if front.begin <= place.start <= front.stop]
        others = self._others(scene, front, rng)
        while len(places) < shape.holes and (other := next(others, None)) is not None:
            if all(other.start != place.start for place in places):
                places.append(other)
        written = 0
        for place in places:
            question = self._question(place, front, shape)
            if question is None or written >= shape.holes:
                continue
            self._writer.branch(out, written, question, shape, (phase + written / shape.holes) % 1.0, rng)
            written += 1
        return out if written else None

    def _others(self, scene: Scene, front: _Front, rng: random.Random) -> Iterator[Rewriting]:
        """Some clear places of the window, drawn at random."""
        for _ in range(_PLACE_TRIES if front.stop > front.begin else 0):
            focus = Focus(rng.randrange(front.begin, front.stop), "elsewhere", cursor=False)
            other = rewriting(scene, focus, self._config.region)
            if other is not None and front.begin <= other.start <= front.stop:
                yield other

    def _question(self, place: Rewriting, front: _Front, shape: BatchShape) -> Question | None:
        """The question of the branch about `place`; None if the region does not fit."""
        tokenizer = self._tokenizer
        region = region_ids(place.region, tokenizer)
        boundary, seen = front.boundary(place.start)
        rest = tokenizer.encode(front.text[boundary : place.start])
        if len(rest) > REST or len(region) > shape.region + 2:
            return None
        near, _ = split_suffix(front.text[place.end : place.end + NEAR_TOKENS * 12], tokenizer)
        answer, old = tokenizer.encode(place.text), tokenizer.encode(place.region.text)
        return front.question(seen, assemble_tail(rest, near, tokenizer, region), answer, changed_ids(old, answer))


def changed_ids(old: Sequence[int], new: Sequence[int]) -> list[bool]:
    """Which ids of `new` are not the same ids of `old` in the same order."""
    changed = [True] * len(new)
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        changed[block.b : block.b + block.size] = [False] * block.size
    return changed


_STORY_TRIES: Final = 50


# The share of stories from commits, if a language has both kinds.
_COMMITS_SHARE: Final = 0.5
# The share of moments in which nothing is left to change. Most places of the others are silent already.
_SILENT_SHARE: Final = 0.5


class EditExamples:
    """Examples of edits, drawn by language, then by origin (commits or not), then evenly among the stories."""

    def __init__(self, shard: Shard, tokenizer: Tokenizer, config: TrainConfig) -> None:
        self._shard = shard
        stories, self._shares = by_language(shard.entries, config.languages)
        self._stories = {
            language: [
                [each for each in told if (each.told["kind"] == COMMIT) == committed] for committed in (True, False)
            ]
            for language, told in stories.items()
        }
        self._maker = EditExampleMaker(tokenizer, config)

    def story(self, rng: random.Random) -> Story:
        """A story."""
        language = rng.choices(list(self._stories), self._shares)[0]
        committed, told = self._stories[language]
        found = committed if not told or (committed and rng.random() < _COMMITS_SHARE) else told
        return self._shard.story(rng.choice(found))

    def draw(self, shape: BatchShape, phase: float, rng: random.Random) -> Example:
        """An example of a random moment of a random story.

        Raises:
            CorpusError: hardly any story yields one; the shape is too small for them.
        """
        for _ in range(_STORY_TRIES):
            scene = scene_of(self.story(rng), rng)
            if scene is None or (not scene.changes and rng.random() >= _SILENT_SHARE):
                continue
            example = self._maker.make(scene, shape, phase, rng)
            if example is not None:
                return example
        raise CorpusError(f"{_STORY_TRIES} stories in a row give no example of the shape {shape}")

"""One training example of edits: the diff stream and the file as it is now, and questions about places in it.

    front    edits, [file] path [suffix] far suffix [prefix] text of the window                causal, shared
    branch   rest [region] text [near] near suffix [middle] | new text of the region …         one for each place

The ids are those that `calomel.prompts.context` gives for the same moment: a recorded situation and the example made
from it are the same to the model. Silence is an answer that repeats the region.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from calomel.prompts.context import EDITS_SHARE, ContextRenderer
from calomel.prompts.fim import NEAR_TOKENS, assemble_front, assemble_tail, region_ids, split_suffix
from calomel.prompts.parts import EditRegion
from calomel.prompts.region import RegionBounds, region_around
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.branch import REST, BranchWriter, Example, Ints, Question, draw_positions, empty_example
from calomel.training.config import BatchShape, TrainConfig
from calomel.training.edits.scene import Focus, Scene

_CHARACTERS_PER_TOKEN: Final = 3
# Text that is shown before the first place, in characters, at least and as a share of what fits.
_LEAST_BEFORE: Final = 60
_TRIES: Final = 8


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What becomes of one region.

    Attributes:
        start, end: of the region, in characters of the scene's text.
        region: its text now, with the cursor.
        text: what it becomes; the same when silence is right.
    """

    start: int
    end: int
    region: EditRegion
    text: str


def rewriting(scene: Scene, focus: Focus, bounds: RegionBounds) -> Rewriting | None:
    """The region of `focus` and what the scene's changes make of it.

    None where there is no clear answer: the region is too long, or a change crosses its border.
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


class EditExampleMaker:
    """Makes examples; all randomness comes from the generator that is passed in."""

    def __init__(self, tokenizer: Tokenizer, config: TrainConfig) -> None:
        self._tokenizer = tokenizer
        self._config = config
        self._renderer = ContextRenderer(tokenizer)
        self._writer = BranchWriter(tokenizer, config)

    def make(self, scene: Scene, shape: BatchShape, phase: float, rng: random.Random) -> Example | None:
        """The example of one moment, with a branch for each place that is clear; None when none is.

        Branches that are left over ask about other places of the window.
        """
        found = [place for focus in scene.focuses if (place := rewriting(scene, focus, self._config.region))]
        if not found:
            return None
        front = self._front(scene, found[0], shape, rng)
        places = [place for place in found if front.shows(place)]
        for _ in range(_TRIES):
            if len(places) >= shape.holes or front.stop <= front.begin:
                break
            offset = rng.randrange(front.begin, front.stop)
            other = rewriting(scene, Focus(offset, "elsewhere", cursor=False), self._config.region)
            if other and front.shows(other) and all(other.start != place.start for place in places):
                places.append(other)
        out = empty_example(shape, self._tokenizer)
        positions = draw_positions(len(front.ids), self._config, rng)
        self._writer.front(out, front.ids, positions, shape)
        written = 0
        for place in places:
            question = self._question(scene, place, front, positions, shape)
            if question is None or written >= shape.holes:
                continue
            rate = (phase + written / shape.holes) % 1.0
            self._writer.branch(out, written, question, shape, rate, rng)
            written += 1
        return out if written else None

    def _front(self, scene: Scene, first: Rewriting, shape: BatchShape, rng: random.Random) -> _Front:
        config, tokenizer = self._config, self._tokenizer
        path = tokenizer.encode(scene.path)[-NEAR_TOKENS:] if rng.random() < config.path_share else []
        far_room = rng.randrange(16, shape.front // 4) if rng.random() < config.far_suffix_share else 0
        edits = self._renderer.last_edits(scene.hunks, int(shape.front * EDITS_SHARE))
        room = shape.front - len(edits) - far_room - len(path) - 3
        before = rng.randrange(_LEAST_BEFORE, max(_LEAST_BEFORE + 1, room * _CHARACTERS_PER_TOKEN))
        begin = scene.text.rfind("\n", 0, max(0, first.start - before)) + 1
        ids, starts, ends = tokenizer.encode_with_words(scene.text[begin : begin + room * 6])
        if len(ids) > room and begin + ends[room - 1] < first.start:
            # The place has to be seen: the text before it is cut instead, at a line.
            begin = scene.text.rfind("\n", 0, max(0, first.start - room)) + 1
            ids, starts, ends = tokenizer.encode_with_words(scene.text[begin : begin + room * 6])
        ids, starts, ends = ids[:room], starts[:room], ends[:room]
        stop = begin + (ends[-1] if ends else 0)
        line = scene.text.find("\n", stop) + 1
        far = tokenizer.encode(scene.text[line : line + far_room * 6])[:far_room] if far_room and line else []
        head = [*edits, *assemble_front(path, far, (), tokenizer)]
        return _Front(begin, stop, [*head, *ids], len(head), [begin + s for s in starts], [begin + e for e in ends])

    def _question(
        self, scene: Scene, place: Rewriting, front: _Front, positions: Ints, shape: BatchShape
    ) -> Question | None:
        """What the branch of `place` asks; None when the region does not fit."""
        tokenizer = self._tokenizer
        region = region_ids(place.region, tokenizer)
        before = bisect_left(front.starts, place.start)
        boundary = place.start
        if before and front.ends[before - 1] > place.start:  # the region starts inside this pre-token
            boundary = front.starts[before - 1]
            before = bisect_left(front.starts, boundary)
        rest = tokenizer.encode(scene.text[boundary : place.start])
        if len(rest) > REST or len(region) > shape.region + 2:
            return None
        near, _ = split_suffix(scene.text[place.end : place.end + NEAR_TOKENS * 12], tokenizer)
        answer = tokenizer.encode(place.text)
        old = tokenizer.encode(place.region.text)
        seen = front.head + before
        head = assemble_tail(rest, near, tokenizer, region)
        return Question(seen, int(positions[seen - 1]) + 1, head, answer, changed_ids(old, answer))


def changed_ids(old: Sequence[int], new: Sequence[int]) -> list[bool]:
    """Which ids of `new` are not the same ids of `old` in the same order."""
    changed = [True] * len(new)
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        changed[block.b : block.b + block.size] = [False] * block.size
    return changed


@dataclass(frozen=True, slots=True)
class _Front:
    begin: int
    stop: int
    ids: list[int]
    head: int  # ids before the window's own text
    starts: list[int]  # for each id of the window, the character at which its pre-token starts
    ends: list[int]  # and ends

    def shows(self, place: Rewriting) -> bool:
        """Whether all text before the place, from the window's beginning on, is in the front."""
        return self.begin <= place.start <= self.stop

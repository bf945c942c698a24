"""Preferences as questions in tokens: answers to the same prompt stand together, so that it is encoded once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from calomel.prompts.context import ContextRenderer
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.preference.config import AlignConfig
from calomel.training.preference.layout import Question
from calomel.training.preference.preference import Kind, Preference, silence


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question and what is thought of its answers.

    Attributes:
        question: with A answers.
        desirable, weights: of each answer; an answer that nobody judged has no weight.
        silence: which answer leaves everything as it is; None when none does.
        kind: `fill` or `edit`.
    """

    question: Question
    desirable: tuple[bool, ...]
    weights: tuple[float, ...]
    silence: int | None
    kind: Kind


@dataclass(slots=True)
class _Asked:
    kind: Kind
    silence: str
    # Answer to weights: undesirable, desirable.
    answers: dict[str, list[float]] = field(default_factory=dict)


class Renderer:
    """Renders preferences as inference would, with one tokenizer.

    Attributes:
        too_long: how many answers were left out.
    """

    def __init__(self, tokenizer: Tokenizer, config: AlignConfig, *, positions: int, max_canvas: int) -> None:
        self.too_long = 0
        self._tokenizer = tokenizer
        self._renderer = ContextRenderer(tokenizer)
        self._config = config
        self._positions = positions
        self._canvas: dict[Kind, int] = {
            "fill": min(config.fill_canvas, max_canvas),
            "edit": min(config.edit_canvas, max_canvas),
        }

    def lessons(self, preferences: Iterable[Preference], *, with_silence: bool = False) -> list[Lesson]:
        """Lessons in the order of their first preference; answers that are too long are left out.

        An answer that is judged twice in the same way counts twice; one that is judged both ways counts as both.

        Args:
            preferences: of any questions.
            with_silence: every question has silence among its answers, without a weight where nobody judged it.
        """
        asked: dict[tuple[int, ...], _Asked] = {}
        for each in preferences:
            size = min(each.max_context or self._config.context, self._config.context)
            room = self._config.longest + max(self._canvas.values())
            context = self._renderer.render(each.parts, min(size, self._positions - room)).context
            known = asked.setdefault(context, _Asked(each.kind, silence(each.parts)))
            known.answers.setdefault(each.answer, [0.0, 0.0])[each.desirable] += each.weight
            if with_silence:
                known.answers.setdefault(known.silence, [0.0, 0.0])
        lessons = [self._lesson(context, known) for context, known in asked.items()]
        return [lesson for lesson in lessons if any(lesson.weights)]

    def _lesson(self, context: tuple[int, ...], asked: _Asked) -> Lesson:
        judged: list[tuple[list[int], bool, float, bool]] = []
        for text, weights in asked.answers.items():
            ids = self._tokenizer.encode(text)
            if len(ids) >= self._config.longest:
                self.too_long += 1
                continue
            quiet = text == asked.silence
            sides = [(side, weight) for side, weight in enumerate(weights) if weight] or [(1, 0.0)]
            judged += [(ids, bool(side), weight, quiet) for side, weight in sides]
        silent = [number for number, each in enumerate(judged) if each[3]]
        return Lesson(
            question=Question.of(context, [each[0] for each in judged], self._canvas[asked.kind]),
            desirable=tuple(each[1] for each in judged),
            weights=tuple(each[2] for each in judged),
            silence=silent[0] if silent else None,
            kind=asked.kind,
        )


def split(
    preferences: Sequence[Preference], share: float, seed: int
) -> tuple[tuple[Preference, ...], tuple[Preference, ...]]:
    """Those to learn from and those held out: whole groups, about `share` of the preferences.

    Groups come in an order that depends on their names and the seed alone.
    """
    sizes: dict[str, int] = {}
    for each in preferences:
        sizes[each.group] = sizes.get(each.group, 0) + 1
    room = share * len(preferences)
    held: set[str] = set()
    for group in sorted(sizes, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest()):
        # A group that alone is more than what is asked for stays: nothing else would be left.
        if sizes[group] <= room + 0.5 and len(held) + 1 < len(sizes):
            held.add(group)
            room -= sizes[group]
    return (
        tuple(each for each in preferences if each.group not in held),
        tuple(each for each in preferences if each.group in held),
    )

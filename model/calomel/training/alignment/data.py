"""What became of suggestions, as questions in tokens whose answers should become likelier or less; and settings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from calomel.engine.config import ModelConfig
from calomel.prompts.own import ContextRenderer
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.alignment.loss import Question

Kind = Literal["fill", "edit"]
Fate = Literal["accepted", "partly", "rejected"]


class AlignmentError(ValueError):
    """There is nothing to learn from, or a run cannot go on; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Preference:
    """An answer to a question, and what somebody thought of it.

    Attributes:
        parts: what the model saw.
        kind: `fill` puts text into a hole, `edit` rewrites the region of `parts`.
        answer: the text of the hole, or what the region becomes. Silence is an empty hole, or the region as it is.
        desirable: it should become likelier; otherwise less likely.
        weight: of its loss, beside the others'.
        group: what it shares with preferences that must not be split from it, as the ones of one file.
        max_context: tokens of prompt at most, as the question said; 0 where it said nothing.
    """

    parts: PromptParts
    kind: Kind
    answer: str
    desirable: bool
    weight: float = 1.0
    group: str = ""
    max_context: int = 0


def silence(parts: PromptParts) -> str:
    """The answer that leaves everything as it is."""
    return "" if parts.region is None else parts.region.text


@dataclass(frozen=True, slots=True)
class Judged:
    """A suggestion and what became of it.

    Attributes:
        parts, kind, max_context: the question, as in `Preference`.
        answer: the suggestion: the text of the hole, or what the region becomes.
        fate: `accepted` as a whole, or typed by hand all the same; `partly`; or `rejected`.
        wanted: what the person wrote instead; None where that is not known.
        group: as in `Preference`.
    """

    parts: PromptParts
    kind: Kind
    answer: str
    fate: Fate
    wanted: str | None = None
    group: str = ""
    max_context: int = 0


# What a suggestion teaches besides itself counts half, and so does one of which a part was taken.
_BESIDES: Final = 0.5
_PARTLY: Final = 0.5


def preferences_of(judged: Iterable[Judged]) -> Iterator[Preference]:
    """The suggestions themselves, and the answers that would have been right or wrong in their place.

    Silence is right where every suggestion to a question was rejected, and is counted once for all of them. A
    suggestion to do nothing was never seen by anybody and teaches nothing.
    """
    questions: dict[PromptParts, list[Judged]] = {}
    for each in judged:
        if each.answer != silence(each.parts):
            questions.setdefault(each.parts, []).append(each)
    for suggestions in questions.values():
        for each in suggestions:
            yield _preference(each, each.answer, desirable=each.fate != "rejected")
        taken = [each for each in suggestions if each.fate != "rejected"]
        surest = max(taken or suggestions, key=lambda each: each.fate == "accepted")
        nothing = silence(surest.parts)
        yield _preference(surest, nothing, desirable=not taken, weight=_BESIDES)
        answers = {nothing, *(each.answer for each in suggestions)}
        for wanted in () if taken else dict.fromkeys(each.wanted for each in suggestions):
            if wanted is not None and wanted not in answers:
                yield _preference(surest, wanted, desirable=True, weight=_BESIDES)


def _preference(judged: Judged, answer: str, *, desirable: bool, weight: float = 1.0) -> Preference:
    if judged.fate == "partly":
        weight *= _PARTLY
    return Preference(judged.parts, judged.kind, answer, desirable, weight, judged.group, judged.max_context)


# A minibatch of fewer than eight has no origin worth the name, and a run has dozens of them.
NEEDED: Final = 200
NEEDED_OF_EACH: Final = 40


def check_enough(judged: Iterable[Judged]) -> None:
    """Raise AlignmentError, saying how many suggestions there are and how many are needed."""
    fates = [each.fate for each in judged if each.answer != silence(each.parts)]
    rejected = fates.count("rejected")
    taken = len(fates) - rejected
    if len(fates) < NEEDED or min(taken, rejected) < NEEDED_OF_EACH:
        raise AlignmentError(
            f"there are {len(fates)} judged suggestions with text, {taken} of them taken and {rejected} rejected; "
            f"alignment needs {NEEDED}, of either kind {NEEDED_OF_EACH}"
        )


# Weighted desirable : undesirable. The authors of KTO advise 1 to 4/3.
_RATIO: Final = 7 / 6


def balance(preferences: Sequence[Preference]) -> tuple[float, float]:
    """What desirable and undesirable answers are multiplied by, so that the former weigh 7/6 of the latter.

    Raises AlignmentError when one side is missing.
    """
    wanted = sum(each.weight for each in preferences if each.desirable)
    unwanted = sum(each.weight for each in preferences if not each.desirable)
    if not wanted or not unwanted:
        raise AlignmentError("all answers are desirable, or none: there is nothing to tell apart")
    # Neither is multiplied by more than 1.
    undesirable = min(1.0, wanted / unwanted / _RATIO)
    return _RATIO * undesirable * unwanted / wanted, undesirable


@dataclass(frozen=True, slots=True)
class AlignConfig:
    """An alignment.

    Attributes:
        learning_rate: of AdamW, behind the warm-up. On nano 2e-4 makes all answers less likely within six steps, and
            3e-5 none.
        epochs: how often every answer is seen; each time with other masks.
        batch: questions in a minibatch; each has two answers or three.
        draws: masks of an answer in each epoch.
        beta: slope of the loss; KTO's and ELBO-KTO's own, for sums over an answer's tokens.
        warmup: share of the steps on which the learning rate rises.
        context: tokens of prompt at most, where a question does not say fewer.
        longest: answers of more tokens are left out.
        fill_canvas, edit_canvas: tokens of a canvas, as inference has them.
        held_out: share of groups that nothing is learned from.
        held_out_draws: masks of an answer in an evaluation.
        seed: of masks, order and what is held out.
        threads: of the processor; 0 for PyTorch's choice.
        checkpoint_minutes: how often the state is saved.
    """

    learning_rate: float = 3e-5
    epochs: int = 2
    batch: int = 8
    draws: int = 4
    beta: float = 0.1
    warmup: float = 0.1
    context: int = 1024
    longest: int = 128
    fill_canvas: int = 16
    edit_canvas: int = 48
    held_out: float = 0.1
    held_out_draws: int = 8
    seed: int = 0
    threads: int = 0
    checkpoint_minutes: float = 5.0


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

    def __init__(self, tokenizer: Tokenizer, config: AlignConfig, model: ModelConfig) -> None:
        self.too_long = 0
        self._tokenizer = tokenizer
        self._renderer = ContextRenderer(tokenizer)
        self._config = config
        largest = model.diffusion.max_canvas
        self._canvas = {"fill": min(config.fill_canvas, largest), "edit": min(config.edit_canvas, largest)}
        # An answer and a canvas need room behind the prompt.
        self._context = min(config.context, model.max_position_embeddings - config.longest - max(self._canvas.values()))

    def lessons(self, preferences: Iterable[Preference], *, with_silence: bool = False) -> list[Lesson]:
        """Lessons in the order of their first preference; answers that are too long are left out.

        An answer that is judged twice in the same way counts twice; one that is judged both ways counts as both.

        Args:
            preferences: of any questions.
            with_silence: every question has silence among its answers, without a weight where nobody judged it.
        """
        asked: dict[tuple[int, ...], _Asked] = {}
        for each in preferences:
            size = min(each.max_context or self._context, self._context)
            context = self._renderer.render(each.parts, size).context
            known = asked.setdefault(context, _Asked(each.kind, silence(each.parts)))
            known.answers.setdefault(each.answer, [0.0, 0.0])[each.desirable] += each.weight
            if with_silence:
                known.answers.setdefault(known.silence, [0.0, 0.0])
        lessons = [self._lesson(context, known) for context, known in asked.items()]
        return [lesson for lesson in lessons if any(lesson.weights)]

    def _lesson(self, context: tuple[int, ...], asked: _Asked) -> Lesson:
        answers: list[tuple[int, ...]] = []
        desirable: list[bool] = []
        weights: list[float] = []
        silent: int | None = None
        for text, sides in asked.answers.items():
            ids = tuple(self._tokenizer.encode(text))
            if len(ids) >= self._config.longest:
                self.too_long += 1
                continue
            if text == asked.silence:
                silent = len(answers)
            for good in [good for good in (False, True) if sides[good]] or [True]:
                answers.append(ids)
                desirable.append(good)
                weights.append(sides[good])
        question = Question(context, tuple(answers), self._canvas[asked.kind])
        return Lesson(question, tuple(desirable), tuple(weights), silent, asked.kind)


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

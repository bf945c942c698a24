"""What became of suggestions, as questions in tokens whose answers should become likelier or less; and settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

from calomel.prompts.own import ContextRenderer
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.alignment.loss import Question

Kind = Literal["fill", "edit"]


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

    @property
    def silent(self) -> bool:
        """The answer leaves everything as it is."""
        return self.answer == silence(self.parts)


def silence(parts: PromptParts) -> str:
    """The answer that leaves everything as it is."""
    return "" if parts.region is None else parts.region.text


Fate = Literal["accepted", "partly", "rejected"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A suggestion and what became of it.

    Attributes:
        parts, kind, max_context: the question, as in `Preference`.
        answer: the suggestion: the text of the hole, or what the region becomes.
        fate: `accepted` as a whole, or typed by hand all the same; `partly`; or `rejected`.
        wanted: what the person wrote instead; None where that is not known.
        group: as in `Preference`.
        certainty: how sure that fate is, 0 to 1: who does nothing for ten seconds says less than who presses Escape.
    """

    parts: PromptParts
    kind: Kind
    answer: str
    fate: Fate
    wanted: str | None = None
    group: str = ""
    certainty: float = 1.0
    max_context: int = 0


@dataclass(frozen=True, slots=True)
class Lessons:
    """What one judged suggestion teaches besides itself, as weights; 0 leaves a lesson out.

    Attributes:
        silence: all suggestions were rejected: leaving everything as it is would have been right.
        wanted: all were rejected: what the person wrote instead would have been right.
        unsilence: one was accepted: leaving everything as it is would have been wrong.
        partly: a suggestion of which a part was taken is desirable.
    """

    silence: float = 0.5
    wanted: float = 0.5
    unsilence: float = 0.5
    partly: float = 0.5


def preferences_of(judged: Iterable[Judged], lessons: Lessons) -> Iterator[Preference]:
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
            weight = lessons.partly if each.fate == "partly" else 1.0
            yield from _preference(each, each.answer, each.fate != "rejected", weight)
        taken = [each for each in suggestions if each.fate != "rejected"]
        surest = max(taken or suggestions, key=lambda each: (each.fate == "accepted", each.certainty))
        nothing = silence(surest.parts)
        if taken:
            weight = lessons.partly if surest.fate == "partly" else 1.0
            yield from _preference(surest, nothing, False, lessons.unsilence * weight)
            continue
        yield from _preference(surest, nothing, True, lessons.silence)
        answers = {nothing, *(each.answer for each in suggestions)}
        for wanted in dict.fromkeys(each.wanted for each in suggestions):
            if wanted is not None and wanted not in answers:
                yield from _preference(surest, wanted, True, lessons.wanted)


def _preference(judged: Judged, answer: str, desirable: bool, weight: float) -> Iterator[Preference]:  # noqa: FBT001
    weight *= judged.certainty
    if weight > 0:
        yield Preference(judged.parts, judged.kind, answer, desirable, weight, judged.group, judged.max_context)


@dataclass(frozen=True, slots=True)
class Enough:
    """How much there must be to learn from.

    Attributes:
        judged: suggestions in all; a minibatch of fewer than eight has no origin worth the name, and a run has dozens.
        each: of them taken, and of them rejected.
    """

    judged: int = 200
    each: int = 40

    def check(self, judged: Iterable[Judged]) -> None:
        """Raise AlignmentError, saying how many there are and how many are needed."""
        fates = [each.fate for each in judged if each.answer != silence(each.parts)]
        rejected = fates.count("rejected")
        taken = len(fates) - rejected
        if len(fates) < self.judged or min(taken, rejected) < self.each:
            raise AlignmentError(
                f"there are {len(fates)} judged suggestions with text, {taken} of them taken and {rejected} rejected; "
                f"alignment needs {self.judged}, of either kind {self.each}"
            )


# Weighted desirable : undesirable, as the authors of KTO advise.
LOWEST: Final = 1.0
HIGHEST: Final = 4 / 3


@dataclass(frozen=True, slots=True)
class Balance:
    """Weights of the two sides.

    Attributes:
        desirable, undesirable: what the loss of an answer is multiplied by.
        ratio: of the weighted sums.
    """

    desirable: float
    undesirable: float
    ratio: float

    @property
    def warning(self) -> str | None:
        """What to tell who chose these weights; None when they are good."""
        if LOWEST - 1e-9 <= self.ratio <= HIGHEST + 1e-9:
            return None
        return (
            f"desirable answers weigh {self.ratio:.2f} times the undesirable ones, outside of 1 to 4/3: "
            "without --desirable-weight and --undesirable-weight they are balanced"
        )


def balance(preferences: Sequence[Preference], desirable: float | None, undesirable: float | None) -> Balance:
    """The weights to use; what is None is chosen so that the ratio lies in the middle of what is advised.

    Raises AlignmentError when one side is missing.
    """
    wanted = sum(each.weight for each in preferences if each.desirable)
    unwanted = sum(each.weight for each in preferences if not each.desirable)
    if not wanted or not unwanted:
        raise AlignmentError("all answers are desirable, or none: there is nothing to tell apart")
    middle = (LOWEST + HIGHEST) / 2
    if undesirable is None:
        # Neither is multiplied by more than 1 unless somebody says so.
        undesirable = (
            min(1.0, wanted / unwanted / middle) if desirable is None else desirable * wanted / unwanted / middle
        )
    if desirable is None:
        desirable = middle * undesirable * unwanted / wanted
    return Balance(
        desirable, undesirable, desirable * wanted / (undesirable * unwanted) if undesirable else float("inf")
    )


Scale = Literal["sum", "token"]

# KTO's and ELBO-KTO's own; of sums over an answer's tokens.
_BETA_OF_SUMS: Final = 0.1
# So many tokens an answer has, roughly: the same slope at the origin for a typical one.
_TOKENS: Final = 20


@dataclass(frozen=True, slots=True)
class AlignConfig:
    """An alignment.

    Attributes:
        learning_rate: of AdamW, behind the warm-up. On nano 2e-4 makes all answers less likely within six steps, and
            3e-5 none.
        epochs: how often every answer is seen; each time with other masks.
        batch: questions in a minibatch; each has two answers or three.
        draws: masks of an answer in each epoch.
        beta: of the loss; None for the one that belongs to `scale`.
        scale: rewards are sums over an answer's tokens (`sum`; a long answer saturates first: its reward is many
            times a short one's), or means (`token`; length tells nothing, but a token of a short answer counts more).
        canvas: weight of the loss on canvases.
        causal: weight of the loss on exact likelihoods, by which drafts and edits are judged. Behind six steps on nano
            their margin is 1.6 nats with it and 0.6 without, that of canvases the same.
        desirable, undesirable: weights of the two kinds of answers; None for balance.
        warmup: share of the steps on which the learning rate rises.
        weight_decay: of AdamW.
        max_grad_norm: longer gradients are cut to this.
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
    beta: float | None = None
    scale: Scale = "sum"
    canvas: float = 1.0
    causal: float = 1.0
    desirable: float | None = None
    undesirable: float | None = None
    warmup: float = 0.1
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    context: int = 1024
    longest: int = 128
    fill_canvas: int = 16
    edit_canvas: int = 48
    held_out: float = 0.1
    held_out_draws: int = 8
    seed: int = 0
    threads: int = 0
    checkpoint_minutes: float = 5.0

    def __post_init__(self) -> None:
        """Raises AlignmentError for numbers that make no sense together."""
        if self.canvas <= 0 and self.causal <= 0:
            raise AlignmentError("both losses have no weight: nothing would be learned")
        if min(self.epochs, self.batch, self.draws, self.held_out_draws, self.fill_canvas, self.edit_canvas) < 1:
            raise AlignmentError("epochs, batch, draws and canvases must be 1 or more")
        if not 0 <= self.held_out < 1:
            raise AlignmentError("the share that is held out must be 0 or more, and less than 1")

    @property
    def slope(self) -> float:
        """Beta as it is used."""
        if self.beta is not None:
            return self.beta
        return _BETA_OF_SUMS if self.scale == "sum" else _BETA_OF_SUMS * _TOKENS

    def fingerprint(self) -> str:
        """A run that is resumed has the same."""
        fields = asdict(self)
        for name in ("threads", "checkpoint_minutes"):
            del fields[name]
        return json.dumps(fields, sort_keys=True)


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

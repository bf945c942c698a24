"""A hole to fill, and its filling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from calomel.prompts.parts import PromptParts
from calomel.suggest.fitting import HoleText, hole_text

if TYPE_CHECKING:
    from calomel.engine import Constraint, Priority, Result, SamplingParams

FinishReason = Literal["stop", "length", "deadline"]

# The embedded model was trained on contexts of 512 tokens; a cold context of 8K takes seconds on a CPU (`bench speed`).
DEFAULT_CONTEXT: Final = 2048


@dataclass(frozen=True, slots=True)
class FillRequest:
    """A hole and how to fill it.

    Attributes:
        prefix: the text before the hole.
        suffix: the text behind it.
        path: the file's path, which tells the model the language; None when unknown.
        max_tokens: bound on the answer.
        min_tokens: the model may not end before so many; 1 where a user asked for an answer, 0 where silence is one.
        stop: the answer ends before the first of these strings.
        sampling: None for the most probable tokens.
        policy: a reveal policy of the engine; None for the default.
        max_steps: denoising steps per canvas; None for the default.
        canvas_lengths: candidate canvas lengths; None for the default.
        max_context: tokens of prompt at most.
        priority: None for interactive.
        deadline: seconds from now after which what is known is the answer; None for no bound.
        parts: everything around the hole; takes the place of prefix, suffix and path.
        constraint: what the answer may be, see `Filler.grammars`; it takes as many steps as it needs then.
        whole_word: the model is asked from the beginning of the word that the cursor stands in, and its answer goes on
            with what is there of it. A checkpoint of our own alone, and not with a constraint.
        recall: what stands elsewhere between the same text may be the answer, where it is likelier right than the
            model's own; not with a temperature, penalties, a `policy` or a constraint.
        fitted: what does not fit the hole is cut off the answer, see `calomel.suggest.fitting`; not with a constraint,
            and not where more than one token is asked for.
    """

    prefix: str
    suffix: str = ""
    path: str | None = None
    max_tokens: int = 64
    stop: tuple[str, ...] = ()
    sampling: SamplingParams | None = None
    policy: str | None = None
    max_steps: int | None = None
    canvas_lengths: tuple[int, ...] | None = None
    max_context: int = DEFAULT_CONTEXT
    priority: Priority | None = None
    min_tokens: int = 0
    deadline: float | None = None
    parts: PromptParts | None = None
    constraint: Constraint | None = None
    whole_word: bool = True
    recall: bool = True
    fitted: bool = False

    @property
    def hole(self) -> HoleText | None:
        """The text around the hole, where the answer has to fit it."""
        if not self.fitted or self.constraint is not None or self.min_tokens > 1:
            return None
        if self.parts is None:
            return hole_text(self.prefix, self.suffix, self.path)
        return hole_text(self.parts.prefix, self.parts.suffix, self.parts.path)


@dataclass(frozen=True, slots=True)
class Fill:
    """A filled hole.

    Attributes:
        text: what to insert; prefix + text + suffix is byte-exact.
        finish_reason: `stop` for the end token or a stop string, `length` for `max_tokens`, `deadline`.
        confidence: geometric mean of the probabilities of the text's tokens when they were revealed, the end token's
            too if it ended the answer; 0 to 1. Of a recalled text the probability that it is right.
        seconds: from the request to the answer.
        result: the engine's own account.
        trimmed: the prompt was longer than the model was let read; what is far from the hole was left out.
    """

    text: str
    finish_reason: FinishReason
    confidence: float
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    steps: int
    forwards: int
    seconds: float
    result: Result = field(repr=False)
    trimmed: bool = False

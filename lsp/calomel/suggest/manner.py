"""How a model is asked for one kind of answer, and how it makes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calomel.engine import SamplingParams
    from calomel.prompts.renderer import PromptRenderer


@dataclass(frozen=True, slots=True)
class Manner:
    """For holes, or for regions.

    Attributes:
        renderer: writes the prompts and reads the answers.
        policy: a reveal policy of the engine.
        max_steps: denoising steps per canvas.
        canvases: canvas lengths; with more than one, the length probe chooses.
        sampling: None for the most probable tokens.
        ended: whether an answer is over although no end token has come; None where nothing else ends one.
    """

    renderer: PromptRenderer
    policy: str
    max_steps: int
    canvases: tuple[int, ...]
    sampling: SamplingParams | None = None
    ended: Callable[[Sequence[int]], bool] | None = None

    def lengths(self, longest: int, max_tokens: int) -> tuple[int, ...]:
        """The canvas lengths for an answer of `max_tokens` and its end, none longer than `longest`; each once."""
        return tuple(dict.fromkeys(min(length, longest, max_tokens + 1) for length in self.canvases))

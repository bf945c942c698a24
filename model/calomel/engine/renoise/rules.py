"""What a checkpoint publishes of how its canvases are denoised."""

from __future__ import annotations

from dataclasses import dataclass

from calomel.engine.config import DiffusionConfig

# There is no mask token; this is the id of none.
_NO_MASK = -1


@dataclass(frozen=True, slots=True)
class RenoiseRules:
    """How a canvas of uniform noise is denoised. The defaults are those of DiffusionGemma's generation code.

    Attributes:
        canvas: positions of every canvas; the one length that the model was trained on.
        end_token_ids: each of them ends an answer.
        hottest: temperature before the first step; it falls linearly with the steps.
        coldest: temperature that the last step comes near to.
        stable: so many steps in a row must leave the best tokens unchanged before a canvas is done early.
        pictures: tokens that stand for pictures, which a context can't have.
        sure: mean entropy in nats, at the step's temperature, below which a stable canvas is done.
    """

    canvas: int
    end_token_ids: tuple[int, ...]
    hottest: float = 0.8
    coldest: float = 0.4
    pictures: tuple[int, ...] = ()
    stable: int = 1
    sure: float = 0.005


@dataclass(frozen=True, slots=True)
class RenoiseShape:
    """What is asked of the model before a request is queued, with the rules of its canvases."""

    vocab_size: int
    max_position_embeddings: int
    rules: RenoiseRules

    @property
    def diffusion(self) -> DiffusionConfig:
        """How the checkpoint denoises, as far as other workers' requests ask."""
        return DiffusionConfig(
            mask_token_id=_NO_MASK,
            end_token_id=self.rules.end_token_ids[0],
            max_canvas=self.rules.canvas,
            verifiable=False,
        )

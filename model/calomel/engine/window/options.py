"""What a family says of its way to denoise in a window."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """How the canvases of a family are denoised.

    Attributes:
        block: a canvas is denoised in blocks of so many positions, from left to right, all of it masked from the start
            (LLaDA's semi-autoregressive mode); None for all of it at once.
        dual_cache: the first forward of a block leaves the keys and values of the whole window, and the steps behind it
            forward the block alone (Fast-dLLM, arXiv 2505.22618). Approximate: what stands around the block is as old
            as the block's beginning.
        eps: where the time of the Dream family's schedule ends.
        alg_temp: the randomness of which positions are revealed; a policy may say otherwise.
        transfer: tokens revealed per step where a canvas changes its length, so that there is no number of steps.
        expand_token_id: this token becomes two masks (DreamOn); None where canvases keep their length.
        delete_token_id: the position of this token is dropped (DreamOn).
        expand_budget: how often a canvas may grow; None for what is published: twice `max_new_tokens` and the suffix.
        end_token_ids: tokens that end an answer besides the configuration's end token.
    """

    block: int | None = None
    dual_cache: bool = False
    eps: float = 1e-3
    alg_temp: float = 0.0
    transfer: int = 1
    expand_token_id: int | None = None
    delete_token_id: int | None = None
    expand_budget: int | None = None
    end_token_ids: tuple[int, ...] = ()

    @property
    def elastic(self) -> bool:
        """Whether canvases grow and shrink."""
        return self.expand_token_id is not None or self.delete_token_id is not None

"""How a family generates, from its own published configuration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Generation:
    """Defaults of a request to a checkpoint.

    Attributes:
        policy: `Request.policy`.
        max_steps: denoising steps per canvas.
        fill_canvases: canvas lengths for a hole; with more than one, the length probe chooses.
        edit_canvas: canvas length for a region that is rewritten.
        temperature: 0 takes the best token.
        top_p: as in `SamplingParams`.
        top_k: as in `SamplingParams`.
        source: where these are published.
    """

    policy: str
    max_steps: int
    fill_canvases: tuple[int, ...]
    edit_canvas: int
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    source: str = ""

"""The ways to decode that are compared: each changes the shipped way in one respect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Order = Literal["shipped", "no_far_suffix", "no_suffix", "prefix_first"]

LEFT_TO_RIGHT: Final = "left_to_right"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to decode; what is None is as shipped.

    Attributes:
        name: of its row.
        policy: a reveal policy.
        max_steps: denoising steps of a canvas.
        canvases: canvas lengths; the length probe chooses of several.
        context: tokens of prompt at most.
        min_tokens: the answer may not end before so many.
        end_bias: added to the end token's logit, in every forward.
        order: of the parts of the prompt.
        one_line: the answer ends before the first line end.
        from_boundary: the prompt ends where the prefix's last word begins, and the answer has to begin with what is
            there of it; so no token is split by the cursor.
    """

    name: str
    policy: str | None = None
    max_steps: int | None = None
    canvases: tuple[int, ...] | None = None
    context: int | None = None
    min_tokens: int = 0
    end_bias: float = 0.0
    order: Order = "shipped"
    one_line: bool = False
    from_boundary: bool = True


SHIPPED: Final = Variant("shipped")
CAUSAL: Final = Variant("left to right", LEFT_TO_RIGHT)
FROM_CURSOR: Final = Variant("from the cursor", from_boundary=False)
CANVAS_8: Final = Variant("canvas of 8", canvases=(8,))

# Grouped by what they change; those of one order stand together, so that its prompt is in the cache.
VARIANTS: Final = (
    SHIPPED,
    CANVAS_8,
    Variant("canvas of 24", canvases=(24,)),
    Variant("canvas of 32", canvases=(32,)),
    Variant("canvas of 8, 16 or 32 (probe)", canvases=(8, 16, 32)),
    Variant("1 step", max_steps=1),
    Variant("2 steps", max_steps=2),
    Variant("4 steps", max_steps=4),
    Variant("16 steps", max_steps=16),
    Variant("from left to right, sure by 0.5", "prefix:0.5"),
    Variant("from left to right, sure by 0.9", "prefix:0.9"),
    Variant("from left to right, one token a step", "sequential", 16),
    Variant("wherever sure, 0.5, 4 steps", "threshold:0.5", 4),
    Variant("wherever sure, 0.9", "threshold:0.9"),
    Variant("one token a step", "fixed:1", 16),
    Variant("verified", "verified"),
    CAUSAL,
    Variant("never silent", min_tokens=1),
    Variant("end token -2", end_bias=-2.0),
    Variant("end token -1", end_bias=-1.0),
    Variant("end token +1", end_bias=1.0),
    Variant("end token +2", end_bias=2.0),
    Variant("one line", one_line=True),
    FROM_CURSOR,
    Variant("from the cursor, left to right", LEFT_TO_RIGHT, from_boundary=False),
    Variant("from the cursor, one line", from_boundary=False, one_line=True),
    Variant("context of 512", context=512),
    Variant("context of 512, left to right", LEFT_TO_RIGHT, context=512),
    Variant("no far suffix", order="no_far_suffix"),
    Variant("no suffix", order="no_suffix"),
    Variant("prefix before far suffix", order="prefix_first"),
)

# Of several answers the one that the causal mode thinks likeliest, over all its tokens and the end, or a token of them.
CHOICES: Final = {
    "shipped or left to right": (SHIPPED.name, CAUSAL.name),
    "shipped or from the cursor": (SHIPPED.name, FROM_CURSOR.name),
    "any of the four": (SHIPPED.name, CANVAS_8.name, CAUSAL.name, FROM_CURSOR.name),
}

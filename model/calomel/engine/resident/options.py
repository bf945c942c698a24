"""How steps run on the device without the host."""

from __future__ import annotations

from dataclasses import dataclass

from calomel.engine.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class ResidentOptions:
    """What of an engine's work stays on the device.

    Attributes:
        look: the host looks at the canvases every so many steps. A canvas that is whole before waits for it, and what
            the device computes of it in between is thrown away; each look costs a synchronisation.
        tokens: the keys and values of so many tokens of running and recent requests are in one tensor, where these
            steps find them; a request that finds no room there is served step by step. None for half of the prefix
            cache.
        graphs: steps of one shape are captured as a CUDA graph when they come again; without effect elsewhere.
        flash: attention by flash-attn, or by PyTorch's own copy of it, where one is there and fits.
    """

    look: int = 4
    tokens: int | None = None
    graphs: bool = True
    flash: bool = True

    def __post_init__(self) -> None:
        if self.look < 1:
            raise InvalidRequestError(f"look is {self.look}; it must be at least 1")
        if self.tokens is not None and self.tokens < 1:
            raise InvalidRequestError(f"tokens is {self.tokens}; it must be at least 1")

"""When an answer is over before the engine's end token, as something that another process can be told.

`calomel.engine.Request.until` is any function of an answer's tokens. These two are also data, so that an engine
elsewhere decides at the same tokens as one of this process would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from calomel.suggest.stop import cut_at_stop

if TYPE_CHECKING:
    from calomel.prompts.tokenizer import TextTokenizer
    from calomel.suggest.manner import Manner

# How the tokens are read: as what fills a hole, as what becomes of a region, or as they are.
Reading = Literal["hole", "region", "plain"]
READINGS: Final[tuple[Reading, ...]] = ("hole", "region", "plain")


@dataclass(frozen=True, slots=True)
class Ending:
    """An answer is over with the first stop string, or when its own form says so.

    Attributes:
        reading: which of the model's ways to answer it is.
        stop: stop strings.
        ended: whether the form says so; None where nothing but the end token does.
        read: tokens to text.
    """

    reading: Reading
    stop: tuple[str, ...]
    ended: Callable[[Sequence[int]], bool] | None = field(compare=False)
    read: Callable[[Sequence[int]], str] = field(compare=False)

    def __call__(self, ids: Sequence[int]) -> bool:
        """Whether an answer of these tokens is over."""
        if self.ended is not None and self.ended(ids):
            return True
        return bool(self.stop) and cut_at_stop(self.read(ids), self.stop)[1]


class Patience:
    """An answer is over when it has grown so often. Of one request: it counts.

    Attributes:
        times: how often.
    """

    def __init__(self, times: int) -> None:
        self.times = times
        self._asked = 0

    def __call__(self, ids: Sequence[int]) -> bool:
        """Whether this was the last time."""
        del ids
        self._asked += 1
        return self._asked >= self.times


def ending(reading: Reading, manner: Manner, stop: Sequence[str]) -> Ending | None:
    """For an answer in this manner; None where the end token alone ends it."""
    if not stop and manner.ended is None:
        return None
    return Ending(reading, tuple(stop), manner.ended, manner.renderer.read)


def plain_ending(tokenizer: TextTokenizer, stop: Sequence[str]) -> Ending | None:
    """For an answer that is read as it is; None without stop strings."""
    return Ending("plain", tuple(stop), None, tokenizer.decode) if stop else None

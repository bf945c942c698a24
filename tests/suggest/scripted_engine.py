"""An engine that says what it is told to, token by token, with the face of a real one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from calomel.engine import Engine, Request
from calomel.engine.request import CanvasState, Result
from calomel.infer.filler import Filler
from calomel.prompts.token_healing import HealingConstraint
from calomel.prompts.tokenizer import Tokenizer

_AT_ONCE = 3


@dataclass
class ScriptedEngine:
    """Answers every hole with `says`; of tokens beyond a request's bound none is said, as an engine does.

    Attributes:
        tokenizer: of the answers.
        says: the whole answer.
        ends: whether it ends there by itself.
    """

    tokenizer: Tokenizer
    says: str = ""
    ends: bool = True
    config: Any = field(
        default_factory=lambda: SimpleNamespace(
            max_position_embeddings=8192, diffusion=SimpleNamespace(max_canvas=32, verifiable=False)
        )
    )
    occupancy: tuple[int, int] = (0, 0)
    positions: int = 8192
    decoder: Any = field(default_factory=lambda: SimpleNamespace(keeps_contexts=False, cache=None))

    def filler(self) -> Filler:
        """What asks it."""
        return Filler(cast("Engine", self), self.tokenizer)

    def submit(self, request: Request) -> Any:
        ids = self.tokenizer.encode(self.says)
        most = request.max_new_tokens
        if isinstance(request.constraint, HealingConstraint):
            owed = self.tokenizer.encode(request.constraint.text)
            ids = [*owed, *ids]
            most = len(owed) + (request.constraint.most or most)
        said = ids[:most]
        return ScriptedHandle(tuple(said), stops=self.ends and len(said) == len(ids))

    def submit_all(self, requests: Sequence[Request]) -> tuple[Any, ...]:
        return tuple(self.submit(each) for each in requests)

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class ScriptedHandle:
    ids: tuple[int, ...]
    stops: bool
    done: bool = True

    def result(self) -> Result:
        count = len(self.ids)
        return Result(
            ids=self.ids,
            log_probs=(-0.1,) * count,
            entropies=(0.1,) * count,
            end_log_prob=-0.1 if self.stops else None,
            finish_reason="stop" if self.stops else "length",
            steps=1,
            forwards=1,
            cached_tokens=0,
            computed_tokens=1,
            prefill_seconds=0.0,
            denoise_seconds=0.0,
        )

    async def wait(self) -> Result:
        return self.result()

    async def astates(self) -> AsyncIterator[CanvasState]:
        for known in range(_AT_ONCE, len(self.ids) + _AT_ONCE, _AT_ONCE):
            yield CanvasState(known, self.ids, tuple(at < known for at in range(len(self.ids))))

    def cancel(self) -> None:
        pass

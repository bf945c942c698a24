"""Who takes part: our engine as the doors use it, our engine left to right, and the peers; all asked the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from calomel.bench.holes import Hole
from calomel.bench.model import LEFT_TO_RIGHT, OpenModel
from calomel.bench.peers.peer import Peer
from calomel.prompts.context import ContextRenderer
from calomel.prompts.fim import read_answer
from calomel.prompts.parts import PromptParts
from calomel.suggest.fill import FillRequest
from calomel.suggest.stop import cut_at_stop

LINE_END = ("\n",)


class Contender(Protocol):
    """One way to fill a hole."""

    @property
    def name(self) -> str:
        """As in the report's keys."""

    def fill(self, hole: Hole, context: int) -> str:
        """The rest of the line: rendering and tokenizing the prompt are part of it."""


@dataclass(frozen=True, slots=True)
class Ours:
    """Our engine through the filler of every door, with `policy`; None for the shipped one."""

    model: OpenModel
    name: str = "ours"
    policy: str | None = None

    def fill(self, hole: Hole, context: int) -> str:
        """See `Contender`."""
        asked = FillRequest(
            prefix=hole.prefix,
            suffix=hole.suffix,
            path=hole.path,
            max_tokens=hole.max_tokens,
            max_context=context,
            stop=LINE_END,
            policy=self.policy,
        )
        return self.model.filler.fill(asked).text


@dataclass(frozen=True, slots=True)
class Theirs:
    """A peer, given the very prompt that ours renders."""

    peer: Peer
    model: OpenModel
    renderer: ContextRenderer

    @property
    def name(self) -> str:
        """As in the report's keys."""
        return self.peer.name

    def fill(self, hole: Hole, context: int) -> str:
        """See `Contender`."""
        tokenizer = self.model.tokenizer
        parts = PromptParts(path=hole.path, prefix=hole.prefix, suffix=hole.suffix)
        prompt = self.renderer.render(parts, context)
        end = self.model.engine.config.diffusion.end_token_id

        def ends(ids: Sequence[int]) -> bool:
            return cut_at_stop(read_answer(ids, tokenizer), LINE_END)[1]

        ids = self.peer.decode(prompt.context, hole.max_tokens, end, ends)
        return cut_at_stop(read_answer(ids, tokenizer), LINE_END)[0]


def ours(model: OpenModel) -> tuple[Ours, ...]:
    """Our engine, with the shipped policy, and left to right where the weights can do that."""
    return (Ours(model), Ours(model, "ours_left_to_right", LEFT_TO_RIGHT)) if model.verifiable else (Ours(model),)

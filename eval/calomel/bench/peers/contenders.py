"""Who takes part: our engine as the doors use it, our engine left to right, and the peers; all asked the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from calomel.bench.model import LEFT_TO_RIGHT, OpenModel
from calomel.bench.peers.moments import Moment
from calomel.bench.peers.peer import Peer
from calomel.prompts.context import ContextRenderer
from calomel.prompts.fim import read_answer
from calomel.suggest.fill import FillRequest
from calomel.suggest.filler import own_renderer
from calomel.suggest.stop import cut_at_stop

LINE_END = ("\n",)
# The model's own answers, which is what other engines give.
ALONE: Final = "ours_model_alone"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a contender put into a hole.

    Attributes:
        text: up to the line's end.
        prompt: tokens of the prompt.
        read: how many of them were read anew.
    """

    text: str
    prompt: int = 0
    read: int = 0


class Contender(Protocol):
    """One way to fill a hole."""

    @property
    def name(self) -> str:
        """As in the report's keys."""

    def fill(self, moment: Moment, context: int) -> Answer:
        """The rest of the line: rendering and tokenizing the prompt are part of it."""


@dataclass(frozen=True, slots=True)
class Ours:
    """Our engine through the filler of every door, with `policy`; None for the shipped one.

    As the doors ask it, or for what the bare prompt gives, which is what peers are given.
    """

    model: OpenModel
    name: str = "ours"
    policy: str | None = None
    as_doors: bool = True

    def fill(self, moment: Moment, context: int) -> Answer:
        """See `Contender`."""
        asked = FillRequest(
            prefix=moment.hole.prefix,
            suffix=moment.hole.suffix,
            max_tokens=moment.hole.max_tokens,
            max_context=context,
            stop=LINE_END,
            policy=self.policy,
            parts=moment.parts,
            recall=self.as_doors,
            whole_word=self.as_doors,
        )
        filled = self.model.filler.fill(asked)
        return Answer(filled.text, filled.prompt_tokens, filled.prompt_tokens - filled.cached_tokens)


@dataclass(frozen=True, slots=True)
class Theirs:
    """A peer, given the very prompt that ours renders, by a renderer of its own."""

    peer: Peer
    model: OpenModel
    renderer: ContextRenderer

    @property
    def name(self) -> str:
        """As in the report's keys."""
        return self.peer.name

    def fill(self, moment: Moment, context: int) -> Answer:
        """See `Contender`."""
        tokenizer = self.model.tokenizer
        prompt = self.renderer.render(moment.parts, context).context
        end = self.model.engine.config.diffusion.end_token_id

        def ends(ids: Sequence[int]) -> bool:
            return cut_at_stop(read_answer(ids, tokenizer), LINE_END)[1]

        ids = self.peer.decode(prompt, moment.hole.max_tokens, end, ends)
        return Answer(cut_at_stop(read_answer(ids, tokenizer), LINE_END)[0], len(prompt), self.peer.read)


def ours(model: OpenModel) -> tuple[Ours, ...]:
    """Our engine: as the doors ask it, on the bare prompt, and left to right where the weights can do that."""
    found = (Ours(model), Ours(model, ALONE, as_doors=False))
    return (*found, Ours(model, "ours_left_to_right", LEFT_TO_RIGHT, as_doors=False)) if model.verifiable else found


def theirs(model: OpenModel, peer: Peer) -> Theirs:
    """`peer`, which remembers what it rendered as ours does."""
    return Theirs(peer, model, own_renderer(model.tokenizer))

"""The interface of the adapters for wire formats, and what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any, Final

from calomel.engine import SamplingParams
from calomel.infer.completer import FinishReason
from calomel.infer.upstream.exchange import LOADING_SECONDS, READ_SECONDS, Exchange, Target, UpstreamError
from calomel.prompts.fim_tokens import FORMATS, LEFT_TO_RIGHT, FimFormat, likeliest, write_fim
from calomel.prompts.parts import PromptParts

# The window of servers that do not report one (Ollama's default num_ctx).
DEFAULT_WINDOW: Final = 4096
# Servers list no more likeliest tokens than 20, unless told otherwise (vLLM, Ollama).
RIVALS: Final = 10
_NAMES_SHOWN: Final = 8
_LARGEST: Final = 1e6


@dataclass(frozen=True, slots=True)
class Known:
    """What a server reports about its model.

    Attributes:
        model: its name on the server.
        window: tokens of prompt and answer together.
        log_probs: it reported the log-probability of a token.
        edits: it rewrites regions.
    """

    model: str
    window: int = DEFAULT_WINDOW
    log_probs: bool = False
    edits: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """A hole or a region to ask about. For a hole, `parts.related` is all that is used of other files and edits.

    `prompt`, if given, is sent as it is, instead of a hole in the model's fill-in-the-middle tokens. The answer begins
    with `begin` if the server can be told so (`Adapter.begins`). With the log-probability of each token come those of
    the `rivals` likeliest ones in its place, or fewer.
    """

    parts: PromptParts
    max_tokens: int = 1
    stop: tuple[str, ...] = ()
    sampling: SamplingParams = field(default_factory=SamplingParams)
    prompt: str | None = None
    begin: str = ""
    rivals: int = 1


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer: its text, its log-probability (NaN if unknown), and both of the likeliest ones there.

    `rivals` have the token itself among them if it is one of the likeliest; empty if they are unknown.
    """

    text: str
    log_prob: float
    rivals: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer; the last one has a finish reason. Tokens may be missing, or not spell the text.

    `read` tokens of the prompt took the server `reading` seconds; the others it had read before.
    """

    text: str = ""
    tokens: tuple[Token, ...] = ()
    finish: FinishReason | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    read: int = 0
    reading: float = 0.0

    @property
    def is_scored(self) -> bool:
        """Whether each of its tokens has a log-probability."""
        return bool(self.tokens) and all(isfinite(token.log_prob) for token in self.tokens)


class Adapter(ABC):
    """Asks one server. Every method raises UpstreamError."""

    name: str
    # Whether the server can be told how an answer begins.
    begins = False
    # Whether it keeps what it has read of a prompt, and runs where its user's other programs do.
    keeps = False

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._target: Target = exchange.target
        self._form: FimFormat | None = None if exchange.target.fim is None else FORMATS[exchange.target.fim]

    @property
    def continues(self) -> bool:
        """Whether a hole is asked for by the text before it alone: the model has no tokens for more."""
        return self._form is LEFT_TO_RIGHT

    @property
    def form(self) -> FimFormat | None:
        """In whose tokens, and with whose tokens broken up in the user's text, a hole is written here, if it is."""
        return self._form

    @property
    def rereads(self) -> bool:
        """Whether what stands behind a hole comes behind the text before it, so that it is read anew at every key."""
        return self._form is None or not (self._form.suffix_first or self.continues)

    async def names(self) -> list[str]:
        """The models that it has; empty if it does not tell."""
        return []

    @abstractmethod
    async def look(self) -> Known:
        """Ask what the server can do; must be called first."""

    @abstractmethod
    def fill(self, ask: Ask, patience: float = READ_SECONDS) -> AsyncGenerator[Piece]:
        """Stream the text for a hole; closing the stream frees the server's slot."""

    async def count(self, ask: Ask) -> int:  # noqa: ARG002
        """The tokens of its prompt; 0 if the server does not count them."""
        return 0

    async def rewrite(self, ask: Ask) -> str:
        """What the region becomes; only with `Known.edits`."""
        del ask
        raise UpstreamError("refused", f"{self.name} does not rewrite regions")

    async def _try(self) -> bool:
        """Ask for one token, which loads the model if necessary. Whether its log-probability came along."""
        trial = Ask(PromptParts(prefix="def add(a, b):\n    return ", suffix="\n"), rivals=RIVALS)
        async with aclosing(self.fill(trial, LOADING_SECONDS)) as pieces:
            return any([isfinite(token.log_prob) async for piece in pieces for token in piece.tokens])

    async def _counted(self, form: FimFormat) -> int:  # noqa: ARG002
        """The number of tokens that the model has for those of a format; 0 if the server does not count."""
        return 0

    async def _found(self, model: str) -> FimFormat:
        """The format whose tokens are each one token of the model."""
        for form in likeliest(model):
            if await self._counted(form) == len(form.marks):
                return form
        return LEFT_TO_RIGHT

    def _check_tokens(self, model: str, counted: int, form: FimFormat) -> None:
        """Raise UpstreamError unless the model has the tokens of the named format, which it counts as one each."""
        if counted != len(form.marks):
            message = f"{model or 'the model'} has no tokens {' '.join(form.marks)}: remove upstream_fim to detect them"
            raise UpstreamError("refused", message)

    def _one_of(self, names: Sequence[str]) -> str:
        """The model that was named, or the only one."""
        wanted, shown = self._target.model, ", ".join(names[:_NAMES_SHOWN])
        if wanted is not None:
            model = next((name for name in names if name in {wanted, f"{wanted}:latest"}), None)
            if model is None:
                there = f"it has {shown}" if names else "it has no models"
                raise UpstreamError("refused", f"the server at {self._target.base} has no {wanted}: {there}")
            return model
        if len(names) != 1:
            message = (
                f"the server at {self._target.base} has several models: set upstream_model to one of them ({shown})"
                if names
                else f"the server at {self._target.base} has no model: load one"
            )
            raise UpstreamError("refused", message)
        return names[0]


def prompt_of(ask: Ask, form: FimFormat | None) -> str:
    """The prompt of a hole: `ask.prompt` if given, else the hole in a format's tokens."""
    return ask.prompt if ask.prompt is not None else write_fim(ask.parts, form or FORMATS["qwen"])


def drawn(sampling: SamplingParams, **names: str) -> dict[str, Any]:
    """The sampling parameters that differ from the defaults, under the server's `names`; an empty name drops one."""
    usual, fields = SamplingParams(), {"temperature": sampling.temperature}
    for name in ("top_p", "top_k", "frequency_penalty", "presence_penalty", "repetition_penalty", "seed"):
        value, key = getattr(sampling, name), names.get(name, name)
        if value != getattr(usual, name) and key:
            fields[key] = value
    return fields


def record(value: Any) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """A JSON array; an empty one for anything else."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """A JSON string; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def whole(value: Any) -> int:
    """A count; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else 0


def number(value: Any) -> float:
    """A log-probability; NaN for anything else."""
    return float(value) if isinstance(value, int | float) and abs(value) < _LARGEST else nan


def amount(value: Any) -> float:
    """A number that is not negative; 0 for anything else."""
    return float(value) if isinstance(value, int | float) and isfinite(value) and value > 0 else 0.0

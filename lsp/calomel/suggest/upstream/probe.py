"""One token, before anybody asks: whether an upstream is there, serves this model, and says how sure it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from calomel.engine.request import Request
from calomel.prompts.tokenizer import TextTokenizer
from calomel.suggest.upstream.answer import Answer
from calomel.suggest.upstream.errors import UpstreamError
from calomel.suggest.upstream.exchange import MODELS, Line
from calomel.suggest.upstream.stream import whole
from calomel.suggest.upstream.target import Upstream

_TEXT: Final = "def add(a, b):\n    return a +"
_TOKENS: Final = 4
_LIST_BYTES: Final = 1 << 20


async def probe(ask: Callable[[Request], Awaitable[Answer]], tokenizer: TextTokenizer) -> None:
    """Ask for a few tokens. Raises UpstreamError with what to do where they can not be used."""
    answer = await ask(Request(context=tuple(tokenizer.encode(_TEXT)), max_new_tokens=_TOKENS))
    if answer.mismatch():
        raise UpstreamError(
            "the upstream's tokens stand for another text than in the model folder's tokenizer: it serves another model"
        )


async def served_model(line: Line, upstream: Upstream) -> str:
    """The name of the only model that the upstream serves. Raises UpstreamError where there is not one."""
    async with line.ask(MODELS, None, streams=True) as response:
        said = await whole(response, _LIST_BYTES)
    entries = said.get("data") if isinstance(said, dict) else None
    names = [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    if len(names) != 1 or not isinstance(names[0], str):
        count = len(names) or "no"
        raise UpstreamError(f"the upstream at {upstream.host} names {count} models: say which in upstream_model")
    return names[0]

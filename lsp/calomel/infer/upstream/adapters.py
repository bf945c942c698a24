"""Adapters for wire formats that several servers share, and detection of a server's format.

vLLM, LM Studio and others: `/v1/completions` of OpenAI's API. Mercury: its published OpenAPI document, 2026-07.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Any, ClassVar, Final

from calomel.infer.completer import FinishReason
from calomel.infer.upstream.adapter import (
    DEFAULT_WINDOW,
    RIVALS,
    Adapter,
    Ask,
    Known,
    Piece,
    Token,
    drawn,
    items,
    number,
    prompt_of,
    record,
    text,
    whole,
)
from calomel.infer.upstream.exchange import READ_SECONDS, Exchange, UpstreamError
from calomel.infer.upstream.native import LlamaCpp, Ollama
from calomel.prompts.fim_tokens import LEFT_TO_RIGHT, FimFormat, format_named
from calomel.prompts.mercury import read_answer, write_mercury

# The limit of OpenAI's API.
_MOST_STOPS: Final = 4
# From its OpenAPI document: prompt and answer together.
_MERCURY_WINDOW: Final = 32_000
# The limit of OpenAI's API; and none but the token itself.
_FEWER_RIVALS: Final = (5, 1)
_MERCURY_MODEL: Final = "mercury-edit-2"
_NOT_FOUND: Final = 404
_SERVER_ERROR: Final = 500
# What regular expressions of any kind want escaped; some refuse a backslash before anything else, such as a space.
_SIGNS: Final = re.compile(r"[\\^$.|?*+()\[\]{}]")
# A field that the server rejects; `llama_cpp.server` answers 500 to log-probabilities without `logits_all`.
_REFUSED_FIELD: Final = frozenset({400, 422, 500})


class OpenAi(Adapter):
    """`/v1/completions` with our prompts: vLLM, LM Studio and others."""

    name = "openai"
    # Fields of every question that only this server has.
    _more: ClassVar[dict[str, Any]] = {}
    _stream: ClassVar[dict[str, Any]] = {"include_usage": True}

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._model = ""
        # Of how many likeliest tokens it tells log-probabilities, if one asks for them; 0 if that is refused.
        self._rivals = RIVALS

    async def names(self) -> list[str]:
        """The models that it lists."""
        return list(await self._windows())

    async def look(self) -> Known:
        """The model, its window and its tokens."""
        windows = await self._listed()
        self._model = self._one_of(list(windows))
        window = windows[self._model]
        if self._form is None:
            self._form = await self._asked()
        else:
            await self._check()
        return Known(self._model, window or DEFAULT_WINDOW, await self._tried())

    async def fill(self, ask: Ask, patience: float = READ_SECONDS) -> AsyncGenerator[Piece]:
        """As `Adapter.fill`."""
        form = self._form or LEFT_TO_RIGHT
        # A client's strings are found here, too: what does not fit is theirs. Those of a whole prompt are its format's.
        stop = (*form.ends, *ask.stop) if ask.prompt is None else (*ask.stop, *form.ends)
        body = drawn(ask.sampling, top_k="") | self._more | {
            "model": self._model, "prompt": prompt_of(ask, form), "max_tokens": ask.max_tokens, "stream": True,
            "stream_options": self._stream,
        }  # fmt: skip
        if stop:  # `transformers serve` does not take an empty list
            body["stop"] = [*dict.fromkeys(stop)][:_MOST_STOPS]
        if ask.begin:
            begun = _SIGNS.sub(r"\\\g<0>", ask.begin)
            body["structured_outputs"] = {"regex": f"{begun}(.|\\n)*"}
        if self._rivals:
            body["logprobs"] = min(ask.rivals, self._rivals)
        finish: FinishReason | None = None
        mute = True
        async with aclosing(self._exchange.events("/v1/completions", body, patience)) as events:
            async for event in events:
                data, mute = record(event), False
                choice = record(next(iter(items(data.get("choices"))), None))
                if choice.get("finish_reason"):
                    finish = "length" if choice["finish_reason"] == "length" else "stop"
                usage = record(data.get("usage"))
                cached = record(usage.get("prompt_tokens_details")).get("cached_tokens")
                yield Piece(
                    text(choice.get("text")),
                    _scored(record(choice.get("logprobs")), min(ask.rivals, self._rivals)),
                    None,
                    whole(usage.get("prompt_tokens")),
                    whole(cached),
                )
        if mute:  # `llama_cpp.server` reports errors only without streaming
            del body["stream_options"]
            await self._exchange.post("/v1/completions", body | {"stream": False, "max_tokens": 1}, patience)
        if finish is None:
            raise self._exchange.broken()
        yield Piece(finish=finish)

    async def _tried(self) -> bool:
        """As `_try`, for as many of the likeliest tokens as the server accepts."""
        try:
            return await self._try()
        except UpstreamError as error:
            if error.status == _NOT_FOUND:
                message = (
                    f"the server at {self._target.base} only chats and cannot complete code: use one with "
                    "/v1/completions (vLLM, LM Studio), llama.cpp or Ollama"
                )
                raise UpstreamError("refused", message) from None
            if error.status not in _REFUSED_FIELD or not self._rivals:
                raise
        # Some servers refuse so many, or the field; the next answer shows whether that was the reason.
        self._rivals = next((fewer for fewer in _FEWER_RIVALS if fewer < self._rivals), 0)
        return await self._tried()

    async def _listed(self) -> dict[str, int]:
        """As `_windows`; only the named model if the server has no list: `transformers serve` lists its cache."""
        try:
            windows = await self._windows()
        except UpstreamError as error:
            if not _lists_nothing(error, self._target.model):
                raise
            windows = {}
        return windows or ({} if self._target.model is None else {self._target.model: 0})

    async def _windows(self) -> dict[str, int]:
        """The window of each model; 0 if the server does not report it."""
        models = [record(each) for each in items(record(await self._exchange.get("/v1/models")).get("data"))]
        return {str(each.get("id")): whole(each.get("max_model_len")) for each in models}

    async def _asked(self) -> FimFormat:
        return format_named(self._model) or LEFT_TO_RIGHT

    async def _check(self) -> None:
        """Raise UpstreamError if the model has not the tokens of the named format, as far as the server can tell."""


def _scored(found: Mapping[str, Any], most: int) -> tuple[Token, ...]:
    """The tokens of a choice's `logprobs`, each with the `most` likeliest ones; servers list it with them anyway."""
    numbers, texts, likeliest = (items(found.get(name)) for name in ("token_logprobs", "tokens", "top_logprobs"))
    tokens = []
    for known, said, others in zip_longest(numbers, texts[: len(numbers)], likeliest[: len(numbers)]):
        rivals = [(each, number(value)) for each, value in islice(record(others).items(), most + 1)]
        likeliest_first = sorted(rivals, key=lambda rival: rival[1], reverse=True)
        tokens.append(Token(text(said), number(known), tuple(likeliest_first[:most])))
    return tuple(tokens)


class Vllm(OpenAi):
    """vLLM, which also has a route for tokenizing."""

    name = "vllm"
    # Otherwise it leaves them out of the text in which it looks for `stop`.
    _more: ClassVar[dict[str, Any]] = {"skip_special_tokens": False}
    # An answer that is over for us is not read to its end, where the count would be.
    _stream: ClassVar[dict[str, Any]] = {"include_usage": True, "continuous_usage_stats": True}
    begins = True

    async def _asked(self) -> FimFormat:
        try:
            return await self._found(self._model)
        except UpstreamError as error:
            if error.status != _NOT_FOUND:
                raise
            return await super()._asked()  # a proxy in front of it has no such route

    async def _check(self) -> None:
        if self._form is not None:
            self._check_tokens(self._model, await self._counted(self._form), self._form)

    async def count(self, ask: Ask) -> int:
        """As `Adapter.count`."""
        body = {"model": self._model, "prompt": prompt_of(ask, self._form or LEFT_TO_RIGHT)}
        return whole(record(await self._exchange.post("/tokenize", body)).get("count"))

    async def _counted(self, form: FimFormat) -> int:
        body = {"model": self._model, "prompt": "".join(form.marks), "add_special_tokens": False}
        return whole(record(await self._exchange.post("/tokenize", body)).get("count"))


class Mercury(Adapter):
    """The hosted API: `/v1/fim/completions` and `/v1/edit/completions`."""

    name = "mercury"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._model = exchange.target.model or _MERCURY_MODEL

    async def look(self) -> Known:
        """Check that it accepts the key and has the model; no completion is requested, since that costs money."""
        models = items(record(await self._exchange.get("/v1/models")).get("data"))
        names = [str(record(each).get("id")) for each in models]
        if self._target.model is not None and names:
            self._one_of(names)
        return Known(self._model, _MERCURY_WINDOW, edits=True)

    async def fill(self, ask: Ask, patience: float = READ_SECONDS) -> AsyncGenerator[Piece]:
        """As `Adapter.fill`; without the API's default penalty, which suits prose but not the repetitions of code.

        The API has no place for other files.
        """
        # The route has no seed, and its temperature is 0 by default.
        sampling = {name: value for name, value in drawn(ask.sampling, seed="").items() if value}
        body = {"presence_penalty": 0.0} | sampling | {
            "model": self._model, "prompt": ask.parts.prefix, "suffix": ask.parts.suffix, "stream": True,
            "max_tokens": ask.max_tokens, "stop": ask.stop[:_MOST_STOPS],
        }  # fmt: skip
        finish: FinishReason | None = None
        async with aclosing(self._exchange.events("/v1/fim/completions", body, patience)) as events:
            async for event in events:
                choice = record(next(iter(items(record(event).get("choices"))), None))
                if choice.get("finish_reason"):
                    finish = "length" if choice["finish_reason"] == "length" else "stop"
                usage = record(record(event).get("usage"))
                yield Piece(text(choice.get("text")), prompt_tokens=whole(usage.get("prompt_tokens")))
        if finish is None:
            raise self._exchange.broken()
        yield Piece(finish=finish)

    async def rewrite(self, ask: Ask) -> str:
        """What the region becomes; its current text if there is nothing to do."""
        message = {"role": "user", "content": write_mercury(ask.parts)}
        body = {"model": self._model, "messages": [message], "max_tokens": ask.max_tokens, "temperature": 0.0}
        choices = items(record(await self._exchange.post("/v1/edit/completions", body, READ_SECONDS)).get("choices"))
        content = record(record(next(iter(choices), None)).get("message")).get("content")
        region = "" if ask.parts.region is None else ask.parts.region.text
        if not isinstance(content, str):
            raise self._exchange.nonsense()
        answer = read_answer(content, region)
        if answer is None:
            raise self._exchange.broken()
        return answer


_ADAPTERS: Final[Mapping[str, type[LlamaCpp | Ollama | OpenAi | Mercury]]] = {
    each.name: each for each in (LlamaCpp, Ollama, Vllm, OpenAi, Mercury)
}


async def adapter_of(exchange: Exchange) -> Adapter:
    """The adapter for the configured or detected format. Raises UpstreamError."""
    target = exchange.target
    name = target.format
    if name == "auto":
        name = "mercury" if target.hosted else await _detected(exchange)
        exchange.target = replace(target, format=name)
    return _ADAPTERS[name](exchange)


async def _detected(exchange: Exchange) -> Any:
    """Detect a server's format by routes that only it has. Raises UpstreamError."""
    refused: UpstreamError | None = None
    for path, only, name in (
        ("/props", "default_generation_settings", "llama.cpp"),
        ("/api/version", "version", "ollama"),
        ("/version", "version", "vllm"),
        ("/v1/models", "data", "openai"),
    ):
        try:
            data = record(await exchange.get(path))
        except UpstreamError as error:
            if (
                error.gone
                or error.code in {"timeout", "loading", "unreachable"}
                or (error.code == "refused" and not error.status)
            ):
                raise
            # Some servers want a key for some paths only.
            refused = error if error.code == "refused" else refused
            if name == "openai" and _lists_nothing(error, exchange.target.model):
                return name
            continue
        if only in data and "error" not in data:
            return name
    message = (
        f"the server at {exchange.target.base} speaks no known API: if it is llama.cpp, Ollama, vLLM or "
        "LM Studio, check its version; otherwise set upstream_format"
    )
    raise refused or UpstreamError("refused", message)


def _lists_nothing(error: UpstreamError, model: str | None) -> bool:
    """Whether a server failed to list its models but may still serve the named one."""
    return model is not None and (error.status or 0) >= _SERVER_ERROR

"""Adapters for the native APIs of llama.cpp and Ollama.

llama.cpp: tools/server/README.md of its repository. Ollama: docs/api.md of its repository, and docs.ollama.com.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from math import nan
from typing import Any, Final
from urllib.parse import urlencode

from calomel.infer.upstream.adapter import (
    DEFAULT_WINDOW,
    RIVALS,
    Adapter,
    Ask,
    Known,
    Piece,
    Token,
    amount,
    drawn,
    items,
    number,
    prompt_of,
    record,
    text,
    whole,
)
from calomel.infer.upstream.exchange import LOADING_SECONDS, READ_SECONDS, Exchange, UpstreamError
from calomel.prompts.fim_tokens import LEFT_TO_RIGHT, FimFormat, escape, format_named

_NOT_IMPLEMENTED: Final = 501
# Of a second.
_MS: Final = 1e3
_NS: Final = 1e9


class LlamaCpp(Adapter):
    """llama.cpp's server: `/infill`, or `/completion` if it does not know the model's fill-in-the-middle tokens.

    Without any, the model continues the text before a hole.
    """

    name = "llama.cpp"
    begins = True
    keeps = True

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._named: dict[str, str] = {}

    async def names(self) -> list[str]:
        """The model; of a router, which runs a server per model, all of them."""
        props = record(await self._exchange.get("/props"))
        if props.get("role") != "router":
            return [_file_name(props)]
        models = items(record(await self._exchange.get("/v1/models")).get("data"))
        return [str(record(each).get("id")) for each in models]

    async def look(self) -> Known:
        """The model, its window and its tokens."""
        props = record(await self._exchange.get("/props"))
        if props.get("role") == "router":
            self._named = {"model": self._one_of(await self.names())}
            # It starts the server of that model for this.
            props = record(await self._exchange.get(f"/props?{urlencode(self._named)}", LOADING_SECONDS))
        model, path = _file_name(props), str(props.get("model_alias") or props.get("model_path") or "")
        if self._target.model not in {None, path, *self._named.values()}:
            self._one_of([model])
        named = format_named(model)
        if self._form is not None:
            self._check_tokens(model, await self._counted(self._form), self._form)
        elif named is not None and not named.infill:
            self._form = await self._found(model)
        try:
            log_probs = await self._try()
        except UpstreamError as error:
            if error.status != _NOT_IMPLEMENTED:
                raise
            self._form = await self._found(model)
            log_probs = await self._try()
        window = whole(record(props.get("default_generation_settings")).get("n_ctx"))
        return Known(model, window or DEFAULT_WINDOW, log_probs)

    async def fill(self, ask: Ask, patience: float = READ_SECONDS) -> AsyncGenerator[Piece]:
        """As `Adapter.fill`."""
        parts, form = ask.parts, self._form
        body = drawn(ask.sampling, repetition_penalty="repeat_penalty") | {
            "n_predict": ask.max_tokens, "n_probs": ask.rivals, "cache_prompt": True, "stream": True,
            "timings_per_token": True, **self._named,
        }  # fmt: skip
        if ask.begin:
            body["grammar"] = f"root ::= {json.dumps(ask.begin, ensure_ascii=False)} [^\\x00]*"
        if form is None and ask.prompt is None:
            extra = [{"filename": each.path, "text": each.text} for each in parts.related]
            hole = {"input_prefix": parts.prefix, "input_suffix": parts.suffix, "input_extra": extra, "prompt": ""}
            events = self._exchange.events("/infill", {**body, **hole, "stop": ask.stop}, patience)
        else:
            more = {"prompt": prompt_of(ask, form), "stop": (*ask.stop, *(form.ends if form else ()))}
            events = self._exchange.events("/completion", {**body, **more}, patience)
        async with aclosing(events):
            async for event in events:
                data = record(event)
                tokens = tuple(map(_token, items(data.get("completion_probabilities"))))
                over = data.get("stop") is True
                timings = record(data.get("timings"))
                kept, read = whole(timings.get("cache_n")), whole(timings.get("prompt_n"))
                cut = data.get("stop_type") == "limit" or data.get("stopped_limit") is True
                yield Piece(
                    text(data.get("content")),
                    tokens,
                    ("length" if cut else "stop") if over else None,
                    whole(data.get("tokens_evaluated")) or kept + read,
                    kept,
                    read,
                    amount(timings.get("prompt_ms")) / _MS,
                )
                if over:
                    return
        raise self._exchange.broken()

    async def count(self, ask: Ask) -> int:
        """As `Adapter.count`."""
        parts = ask.parts
        prompt = ask.prompt or (
            "".join((*(each.text for each in parts.related), parts.prefix, parts.suffix))
            if self._form is None
            else prompt_of(ask, self._form)
        )
        body = {"content": prompt, "parse_special": True, **self._named}
        return len(items(record(await self._exchange.post("/tokenize", body)).get("tokens")))

    async def _counted(self, form: FimFormat) -> int:
        """The number of tokens that the model has for those of a format."""
        body = {"content": "".join(form.marks), "parse_special": True, **self._named}
        return len(items(record(await self._exchange.post("/tokenize", body)).get("tokens")))


def _token(value: Any) -> Token:
    """Unscored also if a draft model proposed it: it comes with probability 1, and without the likeliest ones."""
    token = _scored(value)
    return replace(token, log_prob=nan) if token.log_prob == 0 and not token.rivals else token


def _scored(value: Any) -> Token:
    """A token with its log-probability, in the words of both servers."""
    found = record(value)
    likeliest = map(record, items(found.get("top_logprobs"))[:RIVALS])
    rivals = tuple((text(each.get("token")), number(each.get("logprob"))) for each in likeliest)
    return Token(text(found.get("token")), number(found.get("logprob")), rivals)


def _file_name(props: dict[str, Any]) -> str:
    """The model's name, by its file."""
    path = str(props.get("model_alias") or props.get("model_path") or "")
    return path.replace("\\", "/").rpartition("/")[2].removesuffix(".gguf")


class Ollama(Adapter):
    """Ollama's `/api/generate`: our prompts, raw, or its `suffix` if the model's template has a place for it."""

    name = "ollama"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._model = ""

    @property
    def form(self) -> FimFormat:
        """As `Adapter.form`; a template's tokens are unknown."""
        return self._form or LEFT_TO_RIGHT

    async def names(self) -> list[str]:
        """What `ollama list` shows."""
        tags = items(record(await self._exchange.get("/api/tags")).get("models"))
        return [str(record(each).get("name")) for each in tags]

    async def look(self) -> Known:
        """The model, its window and, from its template, its tokens."""
        self._model = self._one_of(await self.names())
        shown = record(await self._exchange.post("/api/show", {"model": self._model}))
        self.keeps = not shown.get("remote_host")  # a model in Ollama's cloud
        format_name = format_named(f"{self._model} {shown.get('template')}") if self._target.fim is None else self._form
        self._form = format_name
        if format_name is None and "insert" not in items(shown.get("capabilities")):
            self._form = LEFT_TO_RIGHT
        return Known(self._model, _num_ctx(str(shown.get("parameters") or "")), await self._try())

    async def fill(self, ask: Ask, patience: float = READ_SECONDS) -> AsyncGenerator[Piece]:
        """As `Adapter.fill`."""
        parts, form = ask.parts, self._form
        options = drawn(ask.sampling, repetition_penalty="repeat_penalty") | {"num_predict": ask.max_tokens}
        body: dict[str, Any] = {"model": self._model, "stream": True, "logprobs": True, "top_logprobs": ask.rivals}
        if form is None and ask.prompt is None:
            before, behind = (escape(text, LEFT_TO_RIGHT) for text in (parts.prefix, parts.suffix))
            body |= {"prompt": before, "suffix": behind or "\n"}
            options["stop"] = ask.stop
        else:
            body |= {"prompt": prompt_of(ask, form), "raw": True}
            options["stop"] = (*ask.stop, *(form.ends if form else ()))
        async with aclosing(self._exchange.events("/api/generate", {**body, "options": options}, patience)) as events:
            async for event in events:
                data = record(event)
                over = data.get("done") is True
                yield Piece(
                    text(data.get("response")),
                    tuple(map(_scored, items(data.get("logprobs")))),
                    ("length" if data.get("done_reason") == "length" else "stop") if over else None,
                    whole(data.get("prompt_eval_count")),
                    0,
                    whole(data.get("prompt_eval_count")),
                    amount(data.get("prompt_eval_duration")) / _NS,
                )
                if over:
                    return
        raise self._exchange.broken()


def _num_ctx(parameters: str) -> int:
    """`num_ctx` among a Modelfile's parameters, one per line."""
    lines = (line.split() for line in parameters.splitlines())
    number = next((line[1] for line in lines if len(line) > 1 and line[0] == "num_ctx"), "")
    return int(number) if number.isdecimal() and len(number) < len(str(2**31)) else DEFAULT_WINDOW

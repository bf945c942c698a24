"""A class for each wire format that an upstream server may speak, and which of them a server speaks.

llama.cpp: tools/server/README.md of its repository. Ollama: docs/api.md of its repository, and docs.ollama.com.
vLLM, LM Studio and others: `/v1/completions` of OpenAI's API. Mercury: the OpenAPI document of its makers, 2026-07.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from calomel.prompts.fim_tokens import FORMATS, FimFormat, format_named, write_fim
from calomel.prompts.mercury import read_answer, write_mercury
from calomel.prompts.parts import PromptParts
from calomel.suggest.completer import Drawing, FinishReason
from calomel.suggest.upstream.exchange import LOADING_SECONDS, READ_SECONDS, Exchange
from calomel.suggest.upstream.target import Target, UpstreamError

# What servers take by default that say nothing of it (Ollama's num_ctx).
DEFAULT_WINDOW: Final = 4096
# Of OpenAI's API.
_MOST_STOPS: Final = 4
# Of its OpenAPI document: prompt and answer.
_MERCURY_WINDOW: Final = 32_000
_MERCURY_MODEL: Final = "mercury-edit-2"
_NAMES_SHOWN: Final = 8
_NOT_FOUND: Final = 404
_BAD_REQUEST: Final = frozenset({400, 422})
_NOT_IMPLEMENTED: Final = 501
_LARGEST: Final = 1e6


@dataclass(frozen=True, slots=True)
class Known:
    """What a server said of itself.

    Attributes:
        model: by its name there.
        window: tokens of prompt and answer together.
        log_probs: it says how likely each token of an answer was.
        edits: it rewrites regions.
        scores: it says how likely a given text is.
    """

    model: str
    window: int = DEFAULT_WINDOW
    log_probs: bool = False
    edits: bool = False
    scores: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """A hole, or a region. Of other files and edits `parts.related` alone counts for a hole.

    A `prompt` is what a model sees in the place of a hole between the tokens of its family.
    """

    parts: PromptParts
    max_tokens: int = 1
    stop: tuple[str, ...] = ()
    drawing: Drawing = field(default_factory=Drawing)
    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer; the last one has a reason to end. Numbers may be missing, or none."""

    text: str = ""
    log_probs: tuple[float, ...] = ()
    finish: FinishReason | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0


class Adapter(Protocol):
    """Asks one server. Every method raises UpstreamError."""

    name: str

    async def names(self) -> list[str]:
        """The models that can be named; none where the server has one and no name for it matters."""

    async def look(self) -> Known:
        """What the server can do; before anything else is asked."""

    def fill(self, ask: Ask, patience: float = READ_SECONDS) -> AsyncGenerator[Piece]:
        """The text for a hole, as it comes; closing it frees the server's slot."""

    async def rewrite(self, ask: Ask) -> str:
        """What the region becomes; where `Known.edits`."""

    async def scores(self, parts: PromptParts, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """The log-probabilities of each text in the hole, its end included; where `Known.scores`."""


class _Adapter:
    """What most have in common: they fill, and nothing else."""

    name: str

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._target: Target = exchange.target
        self._form: FimFormat | None = None if exchange.target.fim is None else FORMATS[exchange.target.fim]

    async def names(self) -> list[str]:
        return []

    async def rewrite(self, ask: Ask) -> str:
        raise NotImplementedError

    async def scores(self, parts: PromptParts, texts: Sequence[str]) -> list[tuple[float, ...]]:
        raise NotImplementedError

    def fill(self, ask: Ask, patience: float = READ_SECONDS) -> AsyncGenerator[Piece]:
        raise NotImplementedError

    async def _try(self) -> bool:
        """Ask for one token: whether its probability came along. The server loads its model for it, if it has to."""
        trial = Ask(PromptParts(prefix="def add(a, b):\n    return ", suffix="\n"))
        async with aclosing(self.fill(trial, LOADING_SECONDS)) as pieces:
            return any([isfinite(value) async for piece in pieces for value in piece.log_probs])

    def _no_tokens(self, model: str) -> UpstreamError:
        message = (
            f"{model or 'the model'} has no fill-in-the-middle tokens that are known: serve a coder model such as "
            f"Qwen2.5-Coder, or name its format with upstream-fim ({', '.join(FORMATS)})"
        )
        return UpstreamError("refused", message)

    def _one_of(self, names: Sequence[str]) -> str:
        """The model that was named, or the only one."""
        wanted, shown = self._target.model, ", ".join(names[:_NAMES_SHOWN])
        if wanted is not None:
            found = next((name for name in names if name in {wanted, f"{wanted}:latest"}), None)
            if found is None:
                there = f"it has {shown}" if names else "it has none"
                raise UpstreamError("refused", f"the server at {self._target.base} has no {wanted}: {there}")
            return found
        if len(names) != 1:
            message = (
                f"the server at {self._target.base} has several models: name one with upstream-model ({shown})"
                if names
                else f"the server at {self._target.base} has no model: load one there"
            )
            raise UpstreamError("refused", message)
        return names[0]


class LlamaCpp(_Adapter):
    """llama.cpp's server: `/infill`, or `/completion` for tokens that it does not know as those of a hole."""

    name = "llama.cpp"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._named: dict[str, str] = {}

    async def names(self) -> list[str]:
        """Those of a router, which has a server for each model."""
        if _record(await self._exchange.get("/props")).get("role") != "router":
            return []
        models = _list(_record(await self._exchange.get("/v1/models")).get("data"))
        return [str(_record(each).get("id")) for each in models]

    async def look(self) -> Known:
        """The model, its window and its tokens."""
        props = _record(await self._exchange.get("/props"))
        if props.get("role") == "router":
            self._named = {"model": self._one_of(await self.names())}
            props = _record(await self._exchange.get(f"/props?{urlencode(self._named)}"))
        path = str(props.get("model_alias") or props.get("model_path") or "")
        model = path.replace("\\", "/").rpartition("/")[2].removesuffix(".gguf")
        if self._target.model not in {None, path, *self._named.values()}:
            self._one_of([model])
        try:
            log_probs = await self._try()
        except UpstreamError as error:
            if error.status != _NOT_IMPLEMENTED:
                raise
            self._form = await self._asked()
            if self._form is None:
                raise self._no_tokens(model) from None
            log_probs = await self._try()
        window = _whole(_record(props.get("default_generation_settings")).get("n_ctx"))
        return Known(model, window or DEFAULT_WINDOW, log_probs)

    async def fill(self, ask: Ask, patience: float = READ_SECONDS) -> AsyncGenerator[Piece]:
        """As `Adapter.fill`."""
        parts, form = ask.parts, self._form
        body = _drawn(ask.drawing, repetition_penalty="repeat_penalty") | {
            "n_predict": ask.max_tokens, "n_probs": 1, "cache_prompt": True, "stream": True, **self._named,
        }  # fmt: skip
        if form is None and ask.prompt is None:
            extra = [{"filename": each.path, "text": each.text} for each in parts.related]
            hole = {"input_prefix": parts.prefix, "input_suffix": parts.suffix, "input_extra": extra, "prompt": ""}
            events = self._exchange.events("/infill", {**body, **hole, "stop": ask.stop}, patience)
        else:
            more = {"prompt": _prompt(ask, form), "stop": (*ask.stop, *(form.ends if form else ()))}
            events = self._exchange.events("/completion", {**body, **more}, patience)
        async with aclosing(events):
            async for found in events:
                said = _record(found)
                log_probs = tuple(
                    _number(_record(each).get("logprob")) for each in _list(said.get("completion_probabilities"))
                )
                over = said.get("stop") is True
                cut = said.get("stop_type") == "limit" or said.get("stopped_limit") is True
                yield Piece(
                    _text(said.get("content")),
                    log_probs,
                    ("length" if cut else "stop") if over else None,
                    _whole(said.get("tokens_evaluated")),
                    _whole(_record(said.get("timings")).get("cache_n")),
                )
                if over:
                    return
        raise self._exchange.broken()

    async def _asked(self) -> FimFormat | None:
        """The format whose tokens are each one token of the model."""
        for form in FORMATS.values():
            body = {"content": "".join(form.marks), "parse_special": True, **self._named}
            found = _record(await self._exchange.post("/tokenize", body)).get("tokens")
            if len(_list(found)) == len(form.marks):
                return form
        return None


class Ollama(_Adapter):
    """Ollama's `/api/generate`: prompts of ours as they are, or `suffix` where the model's template has a place."""

    name = "ollama"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._model = ""

    async def names(self) -> list[str]:
        """What `ollama list` shows."""
        tags = _list(_record(await self._exchange.get("/api/tags")).get("models"))
        return [str(_record(each).get("name")) for each in tags]

    async def look(self) -> Known:
        """The model and what its template says of tokens."""
        self._model = self._one_of(await self.names())
        shown = _record(await self._exchange.post("/api/show", {"model": self._model}))
        known = format_named(f"{self._model} {shown.get('template')}") if self._target.fim is None else self._form
        self._form = known
        if known is None and "insert" not in _list(shown.get("capabilities")):
            raise self._no_tokens(self._model)
        return Known(self._model, _num_ctx(str(shown.get("parameters") or "")), await self._try())

    async def fill(self, ask: Ask, patience: float = READ_SECONDS) -> AsyncGenerator[Piece]:
        """As `Adapter.fill`."""
        parts, form = ask.parts, self._form
        options = _drawn(ask.drawing, repetition_penalty="repeat_penalty") | {"num_predict": ask.max_tokens}
        body: dict[str, Any] = {"model": self._model, "stream": True, "logprobs": True}
        if form is None and ask.prompt is None:
            body |= {"prompt": parts.prefix, "suffix": parts.suffix or "\n"}
            options["stop"] = ask.stop
        else:
            body |= {"prompt": _prompt(ask, form), "raw": True}
            options["stop"] = (*ask.stop, *(form.ends if form else ()))
        async with aclosing(self._exchange.events("/api/generate", {**body, "options": options}, patience)) as events:
            async for found in events:
                said = _record(found)
                over = said.get("done") is True
                yield Piece(
                    _text(said.get("response")),
                    tuple(_number(_record(each).get("logprob")) for each in _list(said.get("logprobs"))),
                    ("length" if said.get("done_reason") == "length" else "stop") if over else None,
                    _whole(said.get("prompt_eval_count")),
                )
                if over:
                    return
        raise self._exchange.broken()


class OpenAi(_Adapter):
    """`/v1/completions` with prompts of ours: vLLM, LM Studio and their like."""

    name = "openai"
    _judges = False

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._model = ""
        self._log_probs = True

    async def names(self) -> list[str]:
        """What it lists."""
        return list(await self._windows())

    async def look(self) -> Known:
        """The model, its window and its tokens."""
        windows = await self._windows()
        self._model = self._one_of(list(windows))
        window = windows[self._model]
        if self._form is None:
            self._form = format_named(self._model) or await self._asked()
        if self._form is None:
            raise self._no_tokens(self._model)
        try:
            log_probs = await self._try()
        except UpstreamError as error:
            if error.status == _NOT_FOUND:
                message = (
                    f"the server at {self._target.base} only chats, which cannot fill holes: take one with "
                    "/v1/completions (vLLM, LM Studio), llama.cpp or Ollama"
                )
                raise UpstreamError("refused", message) from None
            if error.status not in _BAD_REQUEST:
                raise
            # Some refuse the field; whether that was it, the next answer tells.
            self._log_probs = False
            log_probs = await self._try()
        scores = self._judges and bool(self._form.middle)
        return Known(self._model, window or DEFAULT_WINDOW, log_probs, scores=scores)

    async def fill(self, ask: Ask, patience: float = READ_SECONDS) -> AsyncGenerator[Piece]:
        """As `Adapter.fill`."""
        form = self._form or FORMATS["qwen"]
        body = _drawn(ask.drawing, top_k="") | {
            "model": self._model, "prompt": _prompt(ask, form), "max_tokens": ask.max_tokens, "stream": True,
            "stream_options": {"include_usage": True}, "stop": (*ask.stop, *form.ends)[:_MOST_STOPS],
        }  # fmt: skip
        if self._log_probs:
            body["logprobs"] = 1
        finish: FinishReason | None = None
        async with aclosing(self._exchange.events("/v1/completions", body, patience)) as events:
            async for found in events:
                said = _record(found)
                choice = _record(next(iter(_list(said.get("choices"))), None))
                known = _list(_record(choice.get("logprobs")).get("token_logprobs"))
                if choice.get("finish_reason"):
                    finish = "length" if choice["finish_reason"] == "length" else "stop"
                usage = _record(said.get("usage"))
                cached = _record(usage.get("prompt_tokens_details")).get("cached_tokens")
                yield Piece(
                    _text(choice.get("text")),
                    tuple(map(_number, known)),
                    None,
                    _whole(usage.get("prompt_tokens")),
                    _whole(cached),
                )
        if finish is None:
            raise self._exchange.broken()
        yield Piece(finish=finish)

    async def _windows(self) -> dict[str, int]:
        """The window of each model; 0 where the server does not tell."""
        models = [_record(each) for each in _list(_record(await self._exchange.get("/v1/models")).get("data"))]
        return {str(each.get("id")): _whole(each.get("max_model_len")) for each in models}

    async def _asked(self) -> FimFormat | None:
        return None


class Vllm(OpenAi):
    """vLLM besides says how likely a text is, as a prompt that it repeats, and how it tokenizes."""

    name = "vllm"
    _judges = True

    async def scores(self, parts: PromptParts, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """As `Adapter.scores`: what stands behind the last mark of the prompt."""
        form = self._form or FORMATS["qwen"]
        front, end = write_fim(parts, form), next(iter(form.ends), "")
        body = {
            "model": self._model, "prompt": [f"{front}{text}{end}" for text in texts], "max_tokens": 1,
            "temperature": 0.0, "echo": True, "logprobs": 1,
        }  # fmt: skip
        choices = _list(_record(await self._exchange.post("/v1/completions", body)).get("choices"))
        found = [_record(each) for each in sorted(choices, key=lambda each: _whole(_record(each).get("index")))]
        if len(found) != len(texts):
            raise self._exchange.nonsense()
        return [_behind(_record(each.get("logprobs")), form.middle) for each in found]

    async def _asked(self) -> FimFormat | None:
        """The format whose tokens are each one token of the model."""
        for form in FORMATS.values():
            body = {"model": self._model, "prompt": "".join(form.marks), "add_special_tokens": False}
            if _record(await self._exchange.post("/tokenize", body)).get("count") == len(form.marks):
                return form
        return None


class Mercury(_Adapter):
    """The hosted API: `/v1/fim/completions` and `/v1/edit/completions`."""

    name = "mercury"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._model = exchange.target.model or _MERCURY_MODEL

    async def look(self) -> Known:
        """Whether it takes the key, and has the model; nothing is asked of the model, which costs."""
        models = _list(_record(await self._exchange.get("/v1/models")).get("data"))
        names = [str(_record(each).get("id")) for each in models]
        if self._target.model is not None and names:
            self._one_of(names)
        return Known(self._model, _MERCURY_WINDOW, edits=True)

    async def fill(self, ask: Ask, patience: float = READ_SECONDS) -> AsyncGenerator[Piece]:
        """As `Adapter.fill`; the published penalty was chosen for prose, and repeats nothing that code repeats."""
        front = "".join(f"{each.path}\n{each.text}\n" for each in ask.parts.related)
        body = {
            "model": self._model, "prompt": front + ask.parts.prefix, "suffix": ask.parts.suffix, "stream": True,
            "max_tokens": ask.max_tokens, "stop": ask.stop[:_MOST_STOPS], "presence_penalty": 0.0,
        }  # fmt: skip
        finish: FinishReason | None = None
        async with aclosing(self._exchange.events("/v1/fim/completions", body, patience)) as events:
            async for found in events:
                choice = _record(next(iter(_list(_record(found).get("choices"))), None))
                if choice.get("finish_reason"):
                    finish = "length" if choice["finish_reason"] == "length" else "stop"
                usage = _record(_record(found).get("usage"))
                yield Piece(_text(choice.get("text")), prompt_tokens=_whole(usage.get("prompt_tokens")))
        if finish is None:
            raise self._exchange.broken()
        yield Piece(finish=finish)

    async def rewrite(self, ask: Ask) -> str:
        """What the region becomes: its own text where there is nothing to do."""
        message = {"role": "user", "content": write_mercury(ask.parts)}
        body = {"model": self._model, "messages": [message], "max_tokens": ask.max_tokens, "temperature": 0.0}
        choices = _list(_record(await self._exchange.post("/v1/edit/completions", body)).get("choices"))
        content = _record(_record(next(iter(choices), None)).get("message")).get("content")
        region = "" if ask.parts.region is None else ask.parts.region.text
        if not isinstance(content, str):
            raise self._exchange.nonsense()
        found = read_answer(content, region)
        if found is None:
            raise self._exchange.broken()
        return found


_ADAPTERS: Final[Mapping[str, type[LlamaCpp | Ollama | OpenAi | Mercury]]] = {
    each.name: each for each in (LlamaCpp, Ollama, Vllm, OpenAi, Mercury)
}


async def adapter_of(exchange: Exchange) -> Adapter:
    """The adapter of the format that was named, or that the server speaks. Raises UpstreamError."""
    target = exchange.target
    name = target.format
    if name == "auto":
        name = "mercury" if target.hosted else await _detected(exchange)
        exchange.target = replace(target, format=name)
    return _ADAPTERS[name](exchange)


async def _detected(exchange: Exchange) -> Any:
    """The format that a server speaks, by what only it has. Raises UpstreamError."""
    refused: UpstreamError | None = None
    for path, only, name in (
        ("/props", "default_generation_settings", "llama.cpp"),
        ("/api/version", "version", "ollama"),
        ("/version", "version", "vllm"),
        ("/v1/models", "data", "openai"),
    ):
        try:
            found = _record(await exchange.get(path))
        except UpstreamError as error:
            if error.gone or error.code in {"timeout", "loading"} or (error.code == "refused" and not error.status):
                raise
            # A key may be wanted for some paths alone.
            refused = error if error.code == "refused" else refused
            continue
        if only in found and "error" not in found:
            return name
    message = (
        f"the server at {exchange.target.base} speaks no known format: is it llama.cpp, Ollama, vLLM or LM Studio? "
        "Otherwise say upstream-format"
    )
    raise refused or UpstreamError("refused", message)


def _prompt(ask: Ask, form: FimFormat | None) -> str:
    return ask.prompt if ask.prompt is not None else write_fim(ask.parts, form or FORMATS["qwen"])


def _drawn(drawing: Drawing, **names: str) -> dict[str, Any]:
    """What differs from the most probable tokens, in the server's words; an empty one is left out."""
    usual, found = Drawing(), {"temperature": drawing.temperature}
    for name in ("top_p", "top_k", "frequency_penalty", "presence_penalty", "repetition_penalty", "seed"):
        value, said = getattr(drawing, name), names.get(name, name)
        if value != getattr(usual, name) and said:
            found[said] = value
    return found


def _behind(log_probs: Mapping[str, Any], middle: str) -> tuple[float, ...]:
    """Those behind the last mark of a prompt that was repeated; the answer's own token is the last one, and no part."""
    tokens, values = _list(log_probs.get("tokens")), _list(log_probs.get("token_logprobs"))
    last = max((at for at, token in enumerate(tokens) if token == middle), default=len(tokens))
    return tuple(map(_number, values[last + 1 : -1]))


def _num_ctx(parameters: str) -> int:
    """Of a Modelfile's parameters, one a line."""
    lines = (line.split() for line in parameters.splitlines())
    found = next((line[1] for line in lines if len(line) > 1 and line[0] == "num_ctx"), "")
    return int(found) if found.isdecimal() and len(found) < len(str(2**31)) else DEFAULT_WINDOW


def _record(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: Any) -> int:
    """A count; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else 0


def _number(value: Any) -> float:
    """A log-probability; NaN for anything else."""
    return float(value) if isinstance(value, int | float) and abs(value) < _LARGEST else nan

"""Tiny random models, one that follows a script, rules for answers, and references that the engine must equal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor, nn

from calomel.engine import BlockCausal, DiffusionConfig, Engine, ModelConfig, Request, Result, Transformer
from calomel.engine.cache import Lease, PrefixCache
from calomel.engine.decoder import Decoder

MASK, END, VOCAB = 95, 96, 97

CONFIG = ModelConfig(
    vocab_size=VOCAB,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=1024,
    diffusion=DiffusionConfig(mask_token_id=MASK, end_token_id=END),
    sliding_window=12,
    layer_types=("full_attention", "sliding_attention", "sliding_attention"),
)

Context = tuple[int, ...]
Start = Callable[..., Engine]
Ask = Callable[..., Result]
Naive = Callable[[Transformer, Sequence[int], Sequence[int]], Tensor]
Script = Callable[..., "Scripted"]
M = TypeVar("M", bound=nn.Module)


@pytest.fixture
def device() -> torch.device:
    return torch.device(os.environ.get("CALOMEL_DEVICE", "cpu"))


@pytest.fixture(params=[False, True], ids=["plain", "shifted"])
def config(request: pytest.FixtureRequest) -> ModelConfig:
    return replace(CONFIG, diffusion=replace(CONFIG.diffusion, logit_shift=request.param))


def random(made: M, *, seed: int = 7, scale: float = 0.3) -> M:
    """The same with random weights, but for norms and biases."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in made.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=scale, generator=generator)
    return made.requires_grad_(requires_grad=False).eval()


@pytest.fixture
def model(config: ModelConfig, device: torch.device) -> Transformer:
    return random(Transformer(config)).to(device)


@pytest.fixture
def context() -> Context:
    return tuple(torch.randint(0, 90, (61,), generator=torch.Generator().manual_seed(1)).tolist())


@pytest.fixture
def run() -> Iterator[Start]:
    """Start an engine of a decoder, which is closed, its cache checked, at the end of the test."""
    engines: list[Engine] = []

    def build(decoder: Decoder[Any, Any, Any], **options: Any) -> Engine:
        engines.append(Engine(decoder, **options))
        return engines[-1]

    yield build
    for engine in engines:
        engine.close()
        if isinstance(engine.decoder, BlockCausal):
            tables = [job.buffer for job in engine.decoder._begun]
            check(engine.decoder.cache, *(table for table in tables if table is not None))


@pytest.fixture
def start(device: torch.device, run: Start) -> Start:
    """Start an engine of a model."""

    def build(model: Transformer, **options: Any) -> Engine:
        own = {name: options.pop(name) for name in ("max_batch", "prefill_seconds") if name in options}
        common = {"cache_tokens": 1 << 16, "page_size": 16, **options}
        return run(BlockCausal(model.to(device), **common), **own)

    return build


@pytest.fixture
def ask(model: Transformer, start: Start, context: Context) -> Ask:
    """The answer to a request on `context`, if no other is given, of one engine of `model`."""
    engine = start(model)
    return lambda **fields: engine.submit(Request(**{"context": context, **fields})).result(60)


def check(cache: PrefixCache, *served: Lease) -> None:
    """Fail where a page is lost or held twice, a node is misplaced, or an idle page is not evictable."""
    held: list[int] = []
    idle = {(used, id(node)) for used, _, node in cache._idle}
    waiting = list(cache._root.children.values())
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children.values())
        held.append(node.page)
        assert 0 < len(node.tokens) <= cache.pool.size
        assert not node.children or len(node.tokens) == cache.pool.size
        assert node.parent is not None
        assert node.parent.children.get(node.tokens) is node
        assert node.pins >= 0
        assert node.pins or node.children or (node.used, id(node)) in idle, f"page {node.page} can not be evicted"
    free = cache.pool.free
    own = [page for table in served for page in table.pages[table.shared :]]
    assert sorted([*held, *own, *free]) == list(range(cache.pool.count)), f"{len(held)} held, {len(free)} free"


def explicit_mask(context: int, canvas: int, window: int | None, device: torch.device) -> Tensor:
    """[T, T] bool: causal context, canvas that sees all; with a window on everything but the canvas itself."""
    place = torch.arange(context + canvas, device=device)
    query, key = place[:, None], place[None]
    in_canvas = (query >= context) & (key >= context)
    near = query - key < window if window else torch.ones_like(in_canvas)
    return ((query >= key) & near) | in_canvas


@pytest.fixture
def naive() -> Naive:
    """Logits [T, V] of context and canvas in one forward without any cache, attention written out."""

    def logits(model: Transformer, context: Sequence[int], canvas: Sequence[int]) -> Tensor:
        device = model.embed_tokens.weight.device

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            groups = q.shape[1] // k.shape[1]
            k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
            scores = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
            mask = explicit_mask(len(context), len(canvas), model.config.window(layer), device)
            return torch.einsum("hqk,khd->qhd", scores.masked_fill(~mask, -torch.inf).softmax(-1), v)

        ids = torch.tensor([*context, *canvas], device=device)
        return model.logits(model(ids, torch.arange(len(ids), device=device), attend))

    return logits


class Placed(Transformer):
    """Knows of a row no more than its token and its position: a base of models that follow a script."""

    def forward(self, ids: Tensor, positions: Tensor, attend: object, wanted: Tensor | None = None) -> Tensor:
        del attend
        rows = torch.stack((ids.float(), positions.float()), dim=-1)
        return rows if wanted is None else rows[wanted]


class Scripted(Placed):
    """Predicts `answer` behind `context` tokens, whatever it reads, with the confidences it is told.

    Where the answer is over it predicts the end token. Causal rows follow `causal` where it is given.
    """

    def __init__(self, context: int, answer: list[int], config: ModelConfig = CONFIG) -> None:
        super().__init__(config)
        self.context = context
        self.answer = answer
        self.causal = answer
        self.confidence: Callable[[int, int], float] = lambda place, step: 0.99
        self.canvas_step = 0

    def forward(self, ids: Tensor, *more: Any, **named: Any) -> Tensor:
        self.canvas_step += bool((ids == MASK).any())
        return super().forward(ids, *more, **named)

    def logits(self, hidden: Tensor) -> Tensor:
        rows = torch.full((len(hidden), VOCAB), -30.0)
        for row, (token, position) in zip(rows, hidden.tolist(), strict=True):
            own = token == MASK and not self.config.diffusion.logit_shift
            place = int(position) - self.context + (0 if own else 1)
            script = self.answer if token == MASK else self.causal
            chosen = script[place] if place < len(script) else END
            probability = self.confidence(place, self.canvas_step)
            row[:] = torch.log(torch.tensor((1 - probability) / (VOCAB - 2)))  # the mask token has no share
            row[chosen] = torch.log(torch.tensor(probability))
        return rows.to(hidden.device)


@pytest.fixture
def scripted() -> Script:
    return Scripted


class Ticking:
    """A clock that goes on by one second with every step."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def tick(self, _: object) -> None:
        self.now += 1.0


@dataclass(frozen=True)
class Rule:
    """An automaton: `follows[state]` maps tokens to states; an answer may end in the states of `ends`."""

    follows: tuple[dict[int, int], ...]
    ends: frozenset[int]

    def begin(self) -> Way:
        return Way(self)

    def accepts(self, tokens: Sequence[int], *, whole: bool) -> bool:
        way = self.begin()
        return way.advance(tokens) == len(tokens) and (way.may_end() or not whole)


@dataclass
class Way:
    rule: Rule
    state: int = 0

    def advance(self, tokens: Sequence[int]) -> int:
        for count, token in enumerate(tokens):
            if token not in self.rule.follows[self.state]:
                return count
            self.state = self.rule.follows[self.state][token]
        return len(tokens)

    def may_end(self) -> bool:
        return self.state in self.rule.ends

    def allowed(self) -> bytes:
        mask = bytearray(VOCAB // 8 + 1)
        for token in self.rule.follows[self.state]:
            mask[token // 8] |= 1 << token % 8
        return bytes(mask)

    def forced(self) -> Sequence[int]:
        follows = self.rule.follows[self.state]
        return list(follows) if len(follows) == 1 and not self.may_end() else []


def in_turn(*allowed: Sequence[int], least: int | None = None) -> Rule:
    """One of the `allowed` tokens of each position, and an end behind `least` of them, or behind the last."""
    follows = tuple(dict.fromkeys(tokens, at) for at, tokens in enumerate(allowed, 1))
    return Rule((*follows, {}), frozenset(range(len(allowed) if least is None else least, len(allowed) + 1)))


ANYTHING = Rule(({token: 0 for token in range(VOCAB) if token not in {MASK, END}},), frozenset({0}))
# Pairs of a small and a larger token, at least three of them.
PAIRS = Rule(
    tuple(
        {token: min(state + 1, 7 - state % 2) for token in (range(20) if state % 2 == 0 else range(40, 60))}
        for state in range(8)
    ),
    frozenset({6}),
)

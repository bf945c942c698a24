"""What an iteration of the engine costs beside arithmetic: operations that it dispatches, and Python.

On a GPU these bound a step of few rows. They are counted on a processor, where the same code runs: `operations_N` are
those of one iteration with N requests (a canvas of 32 each, four narrow layers built like those of a 0.5B model;
`operations_64_mixed` with a penalty, a seeded temperature and a constraint among them); `host_us_N` is the processor
time of an iteration beside the network's, divided by N, with a network so small that its arithmetic is nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from calomel.report.result import Value

if TYPE_CHECKING:
    from calomel.engine import ModelConfig, Request

REQUESTS: Final = (1, 8, 64)
_CANVAS: Final = 32
# Which make another view of a tensor, or room, and compute nothing.
_VIEWS: Final = frozenset(
    name
    for names in (
        "view _unsafe_view reshape transpose t permute expand slice select split split_with_sizes chunk unbind",
        "unsqueeze squeeze alias detach detach_ lift_fresh empty empty_like new_empty resolve_conj resolve_neg",
    )
    for name in names.split()
)
_REFUSED: Final = 2


def measure_operations() -> dict[str, Value]:
    """`operations_1`, `_8`, `_64`, `_64_mixed`, and `host_us_1`, `_8`, `_64`."""
    flat = dict[str, Value]()
    for count in REQUESTS:
        flat[f"operations_{count}"] = median(each for each, _ in iterations(_alike(), _requests(count)))
    mixed = _requests(REQUESTS[-1], mixed=True)
    flat[f"operations_{REQUESTS[-1]}_mixed"] = median(each for each, _ in iterations(_alike(), mixed))
    for count in REQUESTS:
        seconds = median(each for _, each in iterations(_tiny(), _requests(count, steps=16), counted=False))
        flat[f"host_us_{count}"] = round(seconds / count * 1e6, 1)
    return flat


def iterations(config: ModelConfig, asked: Sequence[Request], *, counted: bool = True) -> list[tuple[int, float]]:
    """Of each iteration that denoises all of `asked`: dispatched operations, and seconds beside the network's."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from calomel.engine import BlockCausal, Engine, Transformer

    class Counting(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.counts = Counter[str]()

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.counts[func.overloadpacket.__name__] += 1
            return func(*args, **(kwargs or {}))

    found, network, before = list[tuple[int, float]](), [0.0], torch.get_num_threads()
    generator = torch.Generator().manual_seed(0)
    model = Transformer(config).requires_grad_(requires_grad=False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(std=0.02, generator=generator)
    decoder = BlockCausal(model, threads=1, prefill_chunk=4096)
    step, compute = decoder.step, decoder.forward.compute

    def timed(*args: Any) -> Any:
        began = time.thread_time()
        try:
            return compute(*args)
        finally:
            network[0] += time.thread_time() - began

    def measured(jobs: Sequence[Any]) -> None:
        if len(jobs) < len(asked) or any(job.prefilled is None for job in jobs):
            step(jobs)
            return
        network[0], began = 0.0, time.thread_time()
        if counted:
            with Counting() as mode:
                step(jobs)
            found.append((sum(n for name, n in mode.counts.items() if name not in _VIEWS), 0.0))
        else:
            step(jobs)
            found.append((0, time.thread_time() - began - network[0]))

    decoder.forward.compute = timed  # type: ignore[assignment, method-assign]
    decoder.step = measured  # type: ignore[method-assign]
    torch.set_num_threads(1)
    try:
        with Engine(decoder, max_batch=len(asked), prefill_seconds=None) as engine:
            for handle in engine.submit_all(asked):
                handle.result()
    finally:
        torch.set_num_threads(before)
    return found[2:]  # what is kept from the first ones on is there


def _requests(count: int, *, steps: int = 4, mixed: bool = False) -> list[Request]:
    from calomel.engine import Request, SamplingParams

    asked = [
        Request(
            tuple(5 + (place * 7 + number) % 900 for place in range(40)),
            _CANVAS,
            _CANVAS,
            policy=f"fixed:{_CANVAS // steps}",
            max_steps=2 * _CANVAS,
            min_new_tokens=_CANVAS,
            client=str(number),
        )
        for number in range(count)
    ]
    if mixed:
        asked[1] = replace(asked[1], sampling=SamplingParams(repetition_penalty=1.2))
        asked[2] = replace(asked[2], sampling=SamplingParams(temperature=0.8, seed=3))
        asked[3] = replace(asked[3], constraint=Anything())
    return asked


class Anything:
    """A constraint, and where an answer is in it: it allows everything but one token."""

    def begin(self) -> Anything:
        """See `Constraint`."""
        return self

    def allowed(self) -> bytes:
        """See `Walk`."""
        return bytes([0b1111_1011, *[255] * 511])

    def forced(self) -> tuple[int, ...]:
        """See `Walk`."""
        return ()

    def may_end(self) -> bool:
        """See `Walk`."""
        return False

    def advance(self, tokens: Sequence[int]) -> int:
        """See `Walk`."""
        return next((at for at, token in enumerate(tokens) if token == _REFUSED), len(tokens))


def _config(**shape: Any) -> ModelConfig:
    from calomel.engine import DiffusionConfig, ModelConfig

    diffusion = DiffusionConfig(mask_token_id=1, end_token_id=0, logit_shift=True, max_canvas=64)
    return ModelConfig(max_position_embeddings=32_768, diffusion=diffusion, **shape)


def _alike() -> ModelConfig:
    heads: Mapping[str, int] = {"num_attention_heads": 14, "num_key_value_heads": 2, "head_dim": 16}
    return _config(
        vocab_size=4096,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=4,
        qk_norm=False,
        attention_bias=True,
        **heads,
    )


def _tiny() -> ModelConfig:
    heads: Mapping[str, int] = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    return _config(vocab_size=1024, hidden_size=32, intermediate_size=32, num_hidden_layers=2, **heads)

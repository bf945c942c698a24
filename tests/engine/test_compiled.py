from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from tests.engine.conftest import Context, Start

from calomel.engine import Engine, Request, Transformer
from calomel.engine.decoder import SIZES, CompiledLayers

# PyTorch's own, while it compiles.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def answers(engine: Engine, context: Context) -> list[Any]:
    """Of canvases of two lengths, alone and side by side, and of a draft."""
    requests = [
        Request(context, 12, 9, policy="threshold:0.1"),
        Request(context[:40], 8, 8, policy="fixed:2"),
        Request(context[:9], 6, 6, policy="left_to_right"),
    ]
    alone = [engine.submit(request).result(60) for request in requests]
    return [*alone, *(handle.result(60) for handle in engine.submit_all(requests))]


def failing(graph: Any, inputs: Any) -> Any:
    raise RuntimeError("no compiler here")


@pytest.mark.parametrize(("backend", "told"), [("aot_eager", []), (failing, ["no compiler here"])])
def test_compiled_steps_answer_as_those_that_are_not_and_a_compiler_that_fails_is_named_once(
    model: Transformer, context: Context, start: Start, caplog: pytest.LogCaptureFixture, backend: Any, told: list[str]
) -> None:
    expected = answers(start(model), context)

    torch.compiler.reset()
    model.compiled = CompiledLayers(backend)
    with caplog.at_level(logging.WARNING, "calomel.engine.decoder"):
        found = answers(start(model), context)

    said = [record.getMessage() for record in caplog.records if record.name == "calomel.engine.decoder"]
    assert len(said) == len(told)
    assert all(part in message for message, part in zip(said, told, strict=True))
    assert [each.ids for each in found] == [each.ids for each in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
        assert one.forwards == other.forwards


def test_steps_of_nearly_as_many_rows_are_compiled_once_and_long_chunks_not_at_all(
    model: Transformer, start: Start
) -> None:
    compiled: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compiled.append(next(len(each) for each in inputs if isinstance(each, torch.Tensor) and each.dim() == 2))
        return graph.forward

    torch.compiler.reset()
    model.compiled = CompiledLayers(backend)
    engine = start(model, prefill_chunk=SIZES[-1] + 1)
    assert len(range(1, 90)) * 3 > SIZES[-1]
    for length in (3, 4, 7):
        engine.submit(Request((*range(1, 90),) * 3, length, length)).result(60)

    assert len(compiled) == 2  # before and behind attention


def test_on_a_cpu_nothing_is_compiled(model: Transformer, start: Start) -> None:
    if model.embed_tokens.weight.is_cuda:
        pytest.skip("of a CPU")
    start(model)

    assert model.compiled is None

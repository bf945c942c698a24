"""What the load bench compares a server with: the engine without HTTP, and bare forwards of the same shapes.

The engine in this process serves as many callers as the server has clients, and every forward's shape is noted. The
bare forwards are those shapes again, over contexts of the same length, and nothing else: no queue, no sampling, no
cache, no text. So many requests a second would a server answer that costs nothing besides.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from calomel.bench.model import checkpoint_folder
from calomel.bench.places import ANSWER_TOKENS, Place
from calomel.suggest.fill import FillRequest
from calomel.suggest.filler import DEFAULT_CANVAS, Filler

if TYPE_CHECKING:
    from calomel.engine import Engine
    from calomel.engine.buffer import KeyValueBuffer
    from calomel.engine.denoise import StepReport
    from calomel.engine.forward import Piece
    from calomel.engine.transformer import Transformer


# Forwards that are timed; they are much alike.
SAMPLE: Final = 150


@dataclass(frozen=True, slots=True)
class Engaged:
    """What the engine without HTTP did.

    Attributes:
        answers: so many requests.
        seconds: took so long.
        shapes: of all forwards, in order.
    """

    answers: int
    seconds: float
    shapes: tuple[StepReport, ...]

    @property
    def throughput(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds if self.seconds else 0.0


class BareEngine:
    """An engine in this process, and its model."""

    def __init__(self, model: Path | None, device: str, threads: int | None) -> None:
        from calomel.engine import Engine
        from calomel.families.family import usual_cache
        from calomel.prompts.tokenizer import Tokenizer

        folder = checkpoint_folder(model)
        self._shapes: list[StepReport] = []
        # As much cache as the server has: with less, callers that take turns would find nothing of their contexts.
        tokens = usual_cache(device)
        self.engine: Engine = Engine.from_checkpoint(
            folder, device=device, threads=threads, cache_tokens=tokens, observe=self._shapes.append
        )
        self.tokenizer = Tokenizer.from_file(folder / "tokenizer.json")
        self._filler = Filler(self.engine, self.tokenizer)
        self._model = _model(folder, device)
        self._keys = 0

    def close(self) -> None:
        """Stop the engine."""
        self.engine.close()

    def warm(self, places: Sequence[Place]) -> None:
        """Read every context once."""
        for place in places:
            self._filler.fill(self._request(place, 0))

    def engage(self, places: Sequence[Place], seconds: float) -> Engaged:
        """Serve a caller at each place for so long, as `crowd` does over HTTP."""
        self._shapes.clear()
        began = time.perf_counter()
        answers, forwards = asyncio.run(self._callers(places, began + seconds))
        return Engaged(answers, seconds, tuple(self._shapes[:forwards]))

    async def _callers(self, places: Sequence[Place], until: float) -> tuple[int, int]:
        """Answers and forwards until then."""
        first, found = self._keys, (0, 0)
        answers = 0

        async def work(place: Place) -> None:
            nonlocal answers, found
            keys = first
            while time.perf_counter() < until:
                keys += 1
                await self._filler.afill(self._request(place, keys))
                if time.perf_counter() < until:
                    answers += 1
                    found = answers, len(self._shapes)
            self._keys = max(self._keys, keys)

        await asyncio.gather(*(work(place) for place in places))
        return found

    @staticmethod
    def _request(place: Place, keys: int) -> FillRequest:
        body = place.request(keys)
        texts = str(body["prompt"]), str(body["suffix"])
        return FillRequest(*texts, max_tokens=ANSWER_TOKENS, min_tokens=ANSWER_TOKENS, recall=False, whole_word=False)

    def forwards(self, shapes: Sequence[StepReport], context: int, sample: int = SAMPLE) -> float:
        """Seconds that bare forwards of these shapes take, from a sample evenly spread over them.

        Every number of threads from one to PyTorch's choice that makes sense is tried; the fastest counts.
        """
        import torch

        if not shapes:
            return 0.0
        picked = (
            [shapes[len(shapes) * number // sample] for number in range(sample)] if len(shapes) > sample else shapes
        )
        buffers = self._buffers(max(shape.requests for shape in picked), context)
        before = torch.get_num_threads()
        with torch.inference_mode():
            try:
                seconds = min(self._time(picked, buffers, context, threads) for threads in sorted({1, before}))
            finally:
                torch.set_num_threads(before)
        return seconds * len(shapes) / len(picked)

    def _time(
        self, shapes: Sequence[StepReport], buffers: Sequence[KeyValueBuffer], context: int, threads: int
    ) -> float:
        import torch

        from calomel.engine.flash import flash_varlen
        from calomel.engine.forward import forward

        torch.set_num_threads(threads)
        half = self._model.embed_tokens.weight.dtype in (torch.float16, torch.bfloat16)
        flash = flash_varlen() if half else None
        work = [_pieces(shape.requests, shape.rows, buffers, context) for shape in shapes]
        forward(self._model, work[0], flash)
        began = time.perf_counter()
        for pieces in work:
            logits = forward(self._model, pieces, flash)
        float(logits[0, 0])  # waits for the device
        return time.perf_counter() - began

    def _buffers(self, count: int, context: int) -> list[KeyValueBuffer]:
        import torch

        from calomel.engine.buffer import KeyValueBuffer

        weight = self._model.embed_tokens.weight
        buffers: list[KeyValueBuffer] = []
        for _ in range(count):
            buffer = KeyValueBuffer(self._model.config, context + 256, dtype=weight.dtype, device=weight.device)
            torch.nn.init.normal_(buffer.keys)
            torch.nn.init.normal_(buffer.values)
            buffer.length = context
            buffers.append(buffer)
        return buffers


def _model(folder: Path, device: str) -> Transformer:
    from calomel.engine.checkpoint import load_checkpoint
    from calomel.engine.engine import native_dtype

    return load_checkpoint(folder, dtype=native_dtype(device), device=device).to(device).eval()


def _pieces(requests: int, rows: int, buffers: Sequence[KeyValueBuffer], context: int) -> list[Piece]:
    """A canvas of each request; rows beyond are context that a request reads on the way, shared out evenly."""
    from calomel.engine.forward import Piece

    pieces: list[Piece] = []
    beyond = max(0, rows - requests * DEFAULT_CANVAS)
    for number in range(requests):
        read = (beyond + requests - 1 - number) // requests
        canvas = min(DEFAULT_CANVAS, rows - number * DEFAULT_CANVAS)
        if read:
            pieces.append(Piece([2] * read, buffers[number], context - read, causal=True))
        if canvas > 0:
            pieces.append(Piece([1] * canvas, buffers[number], context, causal=False, read=range(canvas)))
    return pieces

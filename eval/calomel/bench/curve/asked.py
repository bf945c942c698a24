"""Asking at each moment, with a context of each size, and keeping account of where the time goes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from calomel.bench.curve.typist import Kind, Moment
from calomel.bench.heldout import HeldoutFile
from calomel.bench.holes import Hole
from calomel.bench.model import checkpoint_folder
from calomel.bench.surroundings import Surroundings
from calomel.context.builder import ContextBuilder
from calomel.context.counter import ExactCounter
from calomel.prompts.fim import FimTokens
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import Tokenizer
from calomel.suggest.fill import FillRequest
from calomel.suggest.filler import Filler, own_manner, own_renderer
from calomel.workspace.analysis import analyse
from calomel.workspace.situation import Situation

if TYPE_CHECKING:
    from calomel.engine.denoise import StepReport
    from calomel.prompts.styles.renderer import PromptRenderer

# As the language server asks at the end of a line.
MAX_TOKENS: Final = 64
STOP: Final = ("\n", "\r")


@dataclass(frozen=True, slots=True)
class Stroke:
    """One keystroke, answered; times in milliseconds.

    Attributes:
        kind: what was done.
        wall: from the file and the cursor to the text of the answer.
        cpu: of all threads of this process, in that time.
        context: choosing what the prompt is made of.
        render: its token ids.
        prefill: the engine's, until the first step.
        denoise: the engine's, from then on.
        forward: the network alone, in both.
        prompt_tokens: of the context.
        computed: of these, not found in the cache.
        rows: of all forwards, canvases included.
        forwards: how many there were.
    """

    kind: Kind
    wall: float
    cpu: float
    context: float
    render: float
    prefill: float
    denoise: float
    forward: float
    prompt_tokens: int
    computed: int
    rows: int
    forwards: int

    @property
    def host(self) -> float:
        """Everything that is neither the prompt's making nor the engine's work on it."""
        return self.wall - self.context - self.render - self.prefill - self.denoise


class TimedRenderer:
    """Renders as another one does, and adds up how long that takes."""

    def __init__(self, inner: PromptRenderer) -> None:
        self.seconds = 0.0
        self._inner = inner

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """As the other one."""
        began = time.perf_counter()
        try:
            return self._inner.render(parts, max_context)
        finally:
            self.seconds += time.perf_counter() - began

    def read(self, ids: Sequence[int], *, whole: bool = True) -> str:
        """As the other one."""
        return self._inner.read(ids, whole=whole)

    def shown(self, text: str) -> str:
        """As the other one."""
        return self._inner.shown(text)


class Typing:
    """One file, edited with contexts of several sizes at once, on one engine.

    Each size has a builder of its own, as if it were another person's editor. The engine keeps all their contexts laid
    out, as a person's own one is.
    """

    def __init__(
        self, files: Sequence[HeldoutFile], file: HeldoutFile, sizes: Sequence[int], model: Path | None, device: str
    ) -> None:
        from calomel.engine import Engine

        folder = checkpoint_folder(model)
        tokenizer = Tokenizer.from_file(folder / "tokenizer.json")
        self._steps: list[StepReport] = []
        room = sum(sizes) + len(sizes) * 2048
        self.engine = Engine.from_checkpoint(
            folder, device=device, cache_tokens=room, spare_tokens=room, observe=self._steps.append
        )
        self._renderer = TimedRenderer(own_renderer(tokenizer))
        self._filler = Filler(self.engine, tokenizer, own_manner(self._renderer))
        self._counter = ExactCounter(tokenizer)
        self._builders: dict[int, ContextBuilder] = {}
        self._file = file
        middle = len(file.text) // 2
        hole = Hole("curve", "curve", file.language, file.path, file.text[:middle], file.text[middle:], "", MAX_TOKENS)
        self._related = Surroundings(files).related(hole)
        self._blocks = analyse(file.text, file.path).starts

    def ask(self, moment: Moment, size: int) -> Stroke:
        """Ask for the rest of the line."""
        budget = min(size, self.engine.config.max_position_embeddings - MAX_TOKENS)
        builder = self._builders.setdefault(size, ContextBuilder(self._counter))
        situation = Situation(
            uri=f"bench:{size}",
            # Of another person's workspace: the prompts of two sizes have nothing in common.
            path=f"{size}/{self._file.path}",
            language_id=self._file.language,
            text=moment.text,
            offset=moment.offset,
            revision=0,
            related=self._related,
            blocks=self._blocks,
        )
        self._steps.clear()
        self._renderer.seconds = 0.0
        cpu, began = time.process_time(), time.perf_counter()
        parts = builder.build(situation, budget).parts
        built = time.perf_counter()
        fill = self._filler.fill(
            FillRequest(
                prefix="",
                parts=parts,
                max_tokens=MAX_TOKENS,
                max_context=budget,
                stop=STOP,
                recall=False,
                whole_word=False,
            )
        )
        ended, spent = time.perf_counter(), time.process_time() - cpu
        steps: Sequence[StepReport] = tuple(self._steps)
        return Stroke(
            kind=moment.kind,
            wall=(ended - began) * 1e3,
            cpu=spent * 1e3,
            context=(built - began) * 1e3,
            render=self._renderer.seconds * 1e3,
            prefill=fill.result.prefill_seconds * 1e3,
            denoise=fill.result.denoise_seconds * 1e3,
            forward=sum(step.seconds for step in steps) * 1e3,
            prompt_tokens=fill.prompt_tokens,
            computed=fill.prompt_tokens - fill.cached_tokens,
            rows=sum(step.rows for step in steps),
            forwards=len(steps),
        )

    def close(self) -> None:
        """Stop the engine."""
        self.engine.close()


Strokes = Mapping[int, Sequence[Stroke]]
"""By size of context."""

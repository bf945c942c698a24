"""`calomel bench curve`: what a keystroke costs by size of context, and where the time goes.

One file, typed in with the same moves behind contexts from 2K to 32K tokens, in turns: whatever else happens on the
machine happens to all sizes alike. The context is what the language server's builder makes of the file and of the code
of its package.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from calomel.bench.cells import size_name
from calomel.bench.curve.asked import Stroke, Typing
from calomel.bench.curve.figures import flat_figures, tables
from calomel.bench.curve.typist import Moment, long_file, moments
from calomel.bench.heldout import read_heldout
from calomel.bench.load import LoadWatch
from calomel.bench.machine import describe_run, weights_hash
from calomel.bench.model import checkpoint_folder
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Value

SIZES = (2048, 4096, 8192, 16384, 32768)
LINES, QUICK_LINES = 24, 6
JUMPS, QUICK_JUMPS = 4, 1
# A quick run reads no further context once so many seconds have passed.
QUICK_SECONDS = 75.0

NOTES = (
    (
        "A keystroke is a letter, a deletion or a new line; its time is the whole call: choosing the context"
        " (`context`), rendering and encoding the prompt (`render`), the engine's work before the first step"
        " (`prefill`) and from it on (`denoise`), and the rest (`host`). `forward` is the network's part of the"
        " engine's work; figures in these columns are medians, in milliseconds of wall time."
    ),
    (
        "`computed`: tokens of the context that were not in the prefix cache. `rows`: rows of all forwards of a"
        " keystroke, those of canvases and of the next steps included."
    ),
    (
        "`jump`: the cursor goes 300 lines up, where it was before or not, and a suggestion is asked for there; then it"
        " comes back. The window beside the cursor, 1,536 tokens at most, is then read anew."
    ),
    (
        "`growth_wall`: the median of the longest context over that of the shortest; `growth_cpu` the same in processor"
        " time; `growth_without_forward` the same without the network; `growth_forward_share`: the network's share of"
        " what the longest context costs more."
    ),
)


@dataclass(frozen=True, slots=True)
class CurveOptions:
    """What to measure and where the results go.

    Attributes:
        contexts: sizes of context, in tokens.
        lines: lines that are typed; None for the usual number.
    """

    model: Path | None = None
    device: str = "cpu"
    contexts: tuple[int, ...] = SIZES
    lines: int | None = None
    quick: bool = False
    json: Path | None = None
    results: Path | None = None
    command: str | None = None


def run_curve(options: CurveOptions) -> Report:
    """Measure, write what `options` asks for, and return the report.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError, TokenizerError: the checkpoint is none of our own.
    """
    files = read_heldout()
    file = long_file(files)
    typing = Typing(files, file, options.contexts, options.model, options.device)
    try:
        report = measure_curve(options, file.text, typing.ask, Progress())
    finally:
        typing.close()
    report.write(json_path=options.json, results=options.results)
    return report


def measure_curve(
    options: CurveOptions,
    text: str,
    ask: Callable[[Moment, int], Stroke],
    progress: Progress,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Report:
    """The bench over anything that can be asked; writes nothing."""
    provenance = describe_run(options.command)
    lines = options.lines or (QUICK_LINES if options.quick else LINES)
    first, *others = moments(text, lines, QUICK_JUMPS if options.quick else JUMPS)
    load = LoadWatch()
    began = clock()
    cold: dict[int, Stroke] = {}
    progress.phase("contexts", len(options.contexts))
    for size in sorted(options.contexts):
        if cold and options.quick and clock() - began > QUICK_SECONDS:
            break
        cold[size] = ask(first, size)
        progress.step()
    strokes: dict[int, list[Stroke]] = {size: [] for size in cold}
    samples = []
    progress.phase("keystrokes", len(others))
    for moment in others:
        for size, found in strokes.items():
            found.append(ask(moment, size))
        samples.append(load.others())
        progress.step()
    left_out = [size for size in options.contexts if size not in cold]
    state = load.summary(samples)
    flat: dict[str, Value] = {
        "quick": options.quick,
        "loaded": state.loaded,
        "load_other_cores": state.others_mean,
        "weights": weights_hash(checkpoint_folder(options.model)),
        "left_out": ", ".join(map(size_name, left_out)) or None,
        **{f"{size_name(size)}.cold_seconds": stroke.wall / 1e3 for size, stroke in cold.items()},
        **flat_figures(strokes),
    }
    name = "curve quick" if options.quick else "curve"
    notes: Sequence[str] = [*NOTES, f"Left out for lack of time: {flat['left_out']}."] if left_out else NOTES
    return Report(f"bench {name}", flat, tables(strokes), tuple(notes), provenance)

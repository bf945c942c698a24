"""`calomel bench infill --context`: the same holes with more and more related code in front of them.

The context of a hole is built by the builder that serves editors, from the package's other files. Besides, an
identifier that is defined far away must be filled where it is used.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from calomel.bench.answer import Contender, matches
from calomel.bench.cells import size_name
from calomel.bench.context_summary import Record, by_kind, copying, quality
from calomel.bench.copying import CopyCase, copy_cases
from calomel.bench.heldout import HeldoutFile, read_heldout
from calomel.bench.holes import KINDS, Hole, TokenMeasure, make_holes
from calomel.bench.journal import Journal, cache_folder
from calomel.bench.load import LoadWatch
from calomel.bench.machine import describe_run, source_hash
from calomel.bench.model import PlainMeasure, open_model
from calomel.bench.progress import Progress
from calomel.bench.replier import ModelReplier, OracleReplier, Replier
from calomel.bench.report import Report, Value
from calomel.bench.surroundings import Surroundings
from calomel.context.builder import BuiltContext, ContextBuilder
from calomel.context.counter import TokenCounter

if TYPE_CHECKING:
    from calomel.bench.infill import InfillOptions

# A context of 32K costs a processor half a minute: forty holes of each kind take hours, eight a quarter of one.
HOLES_PER_KIND: Final = 40
QUICK_HOLES_PER_KIND: Final = 4
QUICK_SECONDS: Final = 120.0
COPY_GROUPS: Final = 4

NOTES: Final = (
    (
        "Every hole is asked once for each size, greedily, with the default policy. The context is what the builder of"
        " the language server makes of the hole's file and of the files of its package, found by BM25 over their"
        " chunks; where a package is small, other packages of the language fill the rest."
    ),
    (
        "`copy_30k`: eight functions are defined in the first excerpt, about 30,000 tokens of code follow, and three"
        " characters of one name stand before the cursor; the rest of the name must be filled, and nothing else. The"
        " same at shorter distances tells whether a failure is one of length."
    ),
    "Tokens are means of the rendered prompt. Seconds include reading what the prefix cache did not have.",
    "Brackets are 95 % intervals: Wilson's for shares, a paired bootstrap for differences.",
)


def run_contexts(options: InfillOptions) -> Report:
    """Measure, write what `options` asks for, and return the report.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure.
        ValueError: an option does not go with contexts.
    """
    if options.policies:
        raise ValueError("--context compares contexts, --policies policies: one at a time")
    progress = Progress()
    with ExitStack() as stack:
        if options.oracle:
            report = measure_contexts(options, OracleReplier(), PlainMeasure(), progress, weights="oracle")
        else:
            model = stack.enter_context(open_model(options.model, device=options.device, threads=options.threads))
            report = measure_contexts(options, ModelReplier(model), model.measure, progress, weights=model.weights_hash)
    report.write(json_path=options.json, results=options.results)
    return report


def measure_contexts(
    options: InfillOptions, replier: Replier, measure: TokenMeasure, progress: Progress, *, weights: str
) -> Report:
    """The bench over any replier; writes nothing but its journal."""
    provenance = describe_run(options.command)
    sizes = tuple(sorted(set(options.contexts)))
    contender = Contender.chosen(options.policy, options.max_steps)
    files = read_heldout(options.heldout)
    per_kind = options.holes_per_kind or (QUICK_HOLES_PER_KIND if options.quick else HOLES_PER_KIND)
    holes = [hole for hole in make_holes(files, measure, per_kind=per_kind, seed=options.seed) if hole.row in KINDS]
    depends_on = {
        "weights": weights,
        "sources": source_hash(),
        "seed": options.seed,
        "device": options.device,
        "threads": options.threads,
        "contender": contender,
        "heldout": options.heldout,
    }
    load = LoadWatch()
    seconds = QUICK_SECONDS if options.seconds is None and options.quick else options.seconds
    deadline = None if seconds is None else time.monotonic() + seconds
    with Journal(options.cache or cache_folder(), "contexts", depends_on, resume=options.resume) as journal:
        asker = _Asker(replier, contender, journal, deadline)
        copies = _ask_copies(asker, files, sizes, options, progress)
        records = _ask_holes(asker, Surroundings(files), holes, sizes, progress)
        resumed = journal.resumed
    state = load.summary([float(record["others"]) for record in asker.asked])
    flat: dict[str, Value] = {
        "quick": options.quick,
        "loaded": state.loaded,
        "load_other_cores": state.others_mean,
        "resumed_records": resumed,
        "weights": weights,
        "seed": options.seed,
        "policy_is_default": contender.policy is None,
    }
    tables = (quality(flat, records, sizes), by_kind(flat, records, sizes), copying(flat, copies, sizes))
    name = "infill context quick" if options.quick else "infill context"
    return Report(f"bench {name}", flat, tables, NOTES, provenance)


class _Asker:
    """Asks one question at a time, unless the journal knows the answer."""

    def __init__(self, replier: Replier, contender: Contender, journal: Journal, deadline: float | None) -> None:
        self.replier = replier
        self.asked: list[Record] = []
        self._contender = contender
        self._journal = journal
        self._deadline = deadline
        self._load = LoadWatch()

    @property
    def is_late(self) -> bool:
        """Whether no more is to be asked."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def known(self, hole: Hole, size: int) -> bool:
        """Whether an earlier run asked this."""
        return self._journal.get(f"{hole.key}|{size}") is not None

    def ask(self, hole: Hole, size: int, built: BuiltContext, **more: float) -> Record:
        """The answer as a record."""
        key = f"{hole.key}|{size}"
        record = self._journal.get(key)
        if record is None:
            reply = self.replier.reply(built.parts, hole, self._contender, built.budget)
            correct = matches(hole, reply.text)
            record = {**asdict(reply), **more, "correct": correct, "row": hole.row, "others": self._load.others()}
            self._journal.put(key, record)
        self.asked.append(record)
        return record


def _ask_holes(
    asker: _Asker, surroundings: Surroundings, holes: Sequence[Hole], sizes: Sequence[int], progress: Progress
) -> list[dict[int, Record]]:
    """For each hole a record by size; all sizes of a hole or none."""
    found: list[dict[int, Record]] = []
    progress.phase("holes", len(holes))
    for hole in holes:
        if asker.is_late and not all(asker.known(hole, size) for size in sizes):
            continue
        situation = surroundings.situation(hole)
        builder = ContextBuilder(asker.replier.counter)
        found.append({
            size: asker.ask(hole, size, builder.build(situation, asker.replier.room(size, hole))) for size in sizes
        })  # fmt: skip
        progress.step()
    return found


def _ask_copies(
    asker: _Asker, files: Sequence[HeldoutFile], sizes: Sequence[int], options: InfillOptions, progress: Progress
) -> dict[int, list[Record]]:
    """For each size the records of its copies."""
    groups = 1 if options.quick else COPY_GROUPS
    found: dict[int, list[Record]] = {}
    for size in sizes:
        counter = asker.replier.counter
        cases = list(copy_cases(files, counter, size=size, groups=groups, seed=options.seed))
        progress.phase(f"copies in {size_name(size)}", len(cases))
        builder = ContextBuilder(counter)
        for case in cases:
            if asker.is_late and not asker.known(case.hole, size):
                continue
            built = builder.build(case.situation, asker.replier.room(size, case.hole))
            record = asker.ask(case.hole, size, built, distance=_distance(case, built, counter))
            found.setdefault(size, []).append(record)
            progress.step()
    return found


def _distance(case: CopyCase, built: BuiltContext, counter: TokenCounter) -> int:
    """Tokens between the definitions and the cursor; raises ValueError when the definitions were left out."""
    if case.definitions not in built.parts.related:
        raise ValueError(f"a context of {built.budget} tokens has no room for the definitions")
    return built.tokens - counter.excerpts((case.definitions,))

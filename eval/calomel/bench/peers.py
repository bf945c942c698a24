"""`calomel bench peers`: milliseconds per character that the author would have kept, ours beside other engines.

The same weights, prompts and holes, in one run and in turns. Rests of lines are filled, going down held-out files as
their author would: a place is a file preceded by other files of its language, the text above the cursor grows from one
moment to the next, and every moment is first asked about one keystroke earlier, untimed.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final, Protocol

from calomel.bench.holes import Measure, rests_going_down
from calomel.bench.model import LEFT_TO_RIGHT, OpenModel, in_turns, open_model
from calomel.bench.peer_engines import Offer, Peer, open_peers
from calomel.infer.completer import FillRequest, cut_at_stop
from calomel.infer.filler import own_renderer
from calomel.prompts.own import ContextRenderer
from calomel.prompts.parts import Excerpt, PromptParts, common_prefix
from calomel.report.heldout import HeldoutFile, Hole, read_heldout
from calomel.report.result import (
    Flat,
    Report,
    Table,
    Value,
    flat_cell,
    number_cell,
    percentile,
    put_interval,
    ratio_of_ratios,
    ratio_of_sums,
    wilson,
)
from calomel.report.running import LoadWatch, Progress

CONTEXT, QUICK_CONTEXT = 8192, 2048
HOLES, QUICK_HOLES = 120, 24
# Holes per place: each place is encoded once by every contender.
MOMENTS, QUICK_MOMENTS = 10, 6
# Requests per setting of a peer that is tried; the fastest setting is used.
TRIALS: Final = 3
# Characters of a place's own file: enough lines to go down, and most of the context is left for other files.
SHORTEST, LONGEST = 1200, 7000
# Lines per excerpt: small ones fill the context to within a few hundred tokens.
EXCERPT_LINES: Final = 30
# Tokens of markers and of a path, and the extra ones of a text that is split in two.
SPARE_TOKENS: Final = 64
LINE_END: Final = ("\n",)
# The model's own answers, as other engines give them.
ALONE: Final = "ours_model_alone"

NOTES: Final = (
    (
        "Line endings, from top to bottom of held-out files that follow other files of their language in the prompt:"
        " the text above grows from gap to gap. Every engine caches the whole last prompt, ours in its prefix"
        " cache, and encodes only what is new. Each first answers one keystroke earlier, untimed. The time covers"
        " rendering and tokenizing the prompt, encoding what is new, and the answer up to its end or the line's."
    ),
    (
        "`ours` is what the HTTP API answers: the model's text from the start of the word at the cursor, or text found"
        " elsewhere between the same neighbours if that is likelier to be right."
        " `ours model alone` answers the bare prompt, as the peers do."
    ),
    "Accepted characters: as many of the answer's beginning as the author wrote. A wrong first one makes it none.",
    (
        "transformers runs its own class of these weights, in a loop that is shorter than `generate`. llama.cpp"
        " runs a twin without sliding windows, which its layout does not know: beyond them it is another model."
        " `llamacpp as right as transformers` takes its time, and as many right characters as transformers had if"
        " those are more. Each runs with the number type, cache and threads that were fastest for it."
    ),
    "Brackets are 95 % intervals: Wilson's for shares, a paired bootstrap for ratios.",
)


@dataclass(frozen=True, slots=True)
class PeersOptions:
    """What to measure.

    Attributes:
        model: checkpoint folder in our own layout; None is the one that ships.
        context: prompt tokens; None: 8,192, quick 2,048.
        holes: None: 120, quick 24.
        threads: thread counts to try for the peers; empty for 1 and all cores.
    """

    model: Path | None = None
    context: int | None = None
    holes: int | None = None
    seed: int = 1
    quick: bool = False
    threads: tuple[int, ...] = ()
    heldout: Path | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A rest of a line to fill.

    Attributes:
        related: excerpts placed before the file.
        hole: the line, within its file.
    """

    related: tuple[Excerpt, ...]
    hole: Hole

    @property
    def parts(self) -> PromptParts:
        """The parts of its prompt."""
        hole = self.hole
        return PromptParts(path=hole.path, prefix=hole.prefix, suffix=hole.suffix, related=self.related)

    @property
    def earlier(self) -> Moment:
        """The moment one keystroke earlier."""
        return replace(self, hole=replace(self.hole, prefix=self.hole.prefix[:-1]))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a contender put into a hole, up to the line's end; tokens of its prompt, and how many it had to encode."""

    text: str
    prompt: int = 0
    read: int = 0


class Contender(Protocol):
    """One way to fill a hole."""

    @property
    def name(self) -> str:
        """As in the report's keys."""

    def fill(self, moment: Moment, context: int) -> Answer:
        """The rest of the line: rendering and tokenizing the prompt are part of it."""


@dataclass(frozen=True, slots=True)
class Ours:
    """Our engine through the filler that every door uses, with `policy`; None for the shipped one.

    Asked as the doors ask it, or with the bare prompt, which is what peers are given.
    """

    model: OpenModel
    name: str = "ours"
    policy: str | None = None
    as_doors: bool = True

    def fill(self, moment: Moment, context: int) -> Answer:
        """See `Contender`."""
        asked = FillRequest(
            "fill",
            moment.parts,
            max_tokens=moment.hole.max_tokens,
            max_context=context,
            stop=LINE_END,
            policy=self.policy,
            recall=self.as_doors,
            whole_word=self.as_doors,
        )
        filled = self.model.filler.fill(asked)
        return Answer(filled.text, filled.prompt_tokens, filled.prompt_tokens - filled.cached_tokens)


class Theirs:
    """A peer, given the same prompt as ours, by a renderer of its own that caches what it rendered."""

    def __init__(self, model: OpenModel, peer: Peer) -> None:
        self.name = peer.name
        self._model, self._peer = model, peer
        self._renderer: ContextRenderer = own_renderer(model.tokenizer)

    def fill(self, moment: Moment, context: int) -> Answer:
        """See `Contender`."""
        tokenizer = self._model.tokenizer
        prompt = self._renderer.render(moment.parts, context).context
        end = self._model.engine.config.diffusion.end_token_id

        def ends(ids: Sequence[int]) -> bool:
            return cut_at_stop(tokenizer.decode(ids), LINE_END)[1]

        ids = self._peer.decode(prompt, moment.hole.max_tokens, end, ends)
        return Answer(cut_at_stop(tokenizer.decode(ids), LINE_END)[0], len(prompt), self._peer.read)


@dataclass(frozen=True, slots=True)
class Measured:
    """One answer of a contender.

    Attributes:
        milliseconds: from the question to the answer.
        processor: CPU milliseconds, all cores together.
        characters: length of the answer's right beginning.
        exact: whether all of it is right.
        prompt: tokens.
        read: how many of them had to be encoded.
    """

    milliseconds: float
    processor: float
    characters: int
    exact: bool
    prompt: int
    read: int


# The answers to one moment, by contender.
Case = dict[str, Measured]


def run_peers(options: PeersOptions) -> Report:
    """Run the bench. A peer that is absent is skipped, with a note.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure.
    """
    progress = Progress()
    load = LoadWatch()
    context = options.context or (QUICK_CONTEXT if options.quick else CONTEXT)
    count = options.holes or (QUICK_HOLES if options.quick else HOLES)
    each = QUICK_MOMENTS if options.quick else MOMENTS
    with ExitStack() as stack:
        model = stack.enter_context(open_model(options.model))
        files, places = read_heldout(options.heldout), -(-count // each)
        moments = moments_going_down(
            files, model.measure, context=context, places=places, moments=each, seed=options.seed
        )[:count]

        def trial(peer: Peer) -> float:
            """Milliseconds of a warm answer."""
            cases = measure(moments[:TRIALS], [Theirs(model, peer)], context, None)
            return fmean(_values(cases, peer.name, "milliseconds"))

        threads = options.threads or tuple(sorted({1, os.cpu_count() or 1}))
        offer = Offer(model.folder, context, threads, options.quick)
        peers, missing = stack.enter_context(open_peers(offer, trial, progress.say))
        contenders: list[Contender] = [Ours(model), Ours(model, ALONE, as_doors=False)]
        if model.verifiable:
            contenders.append(Ours(model, "ours_left_to_right", LEFT_TO_RIGHT, as_doors=False))
        contenders += [Theirs(model, peer) for peer in peers]
        cases = measure(moments, contenders, context, progress)
        weights = model.weights_hash
    names = [contender.name for contender in contenders]
    flat: dict[str, Value] = {"quick": options.quick, "seed": options.seed, "context": context, "weights": weights}
    flat |= {f"settings_{peer.name}": peer.settings for peer in peers}
    flat |= {**flat_keys(cases, names), **load.keys()}
    return Report(
        "bench peers quick" if options.quick else "bench peers",
        flat,
        (table(flat, names), ratio_table(flat, names)),
        (*(f"{peer.name}: {peer.settings}." for peer in peers), *NOTES, *(f"Left out: {why}." for why in missing)),
    )


def moments_going_down(
    files: Sequence[HeldoutFile], tokens: Measure, *, context: int, places: int, moments: int, seed: int
) -> list[Moment]:
    """`moments` in each of `places`, equally for every language; a place's last prompt has nearly `context` tokens.

    A language with too few files gives fewer places; the others do not fill in for it.
    """
    languages = sorted({file.language for file in files})
    share = -(-places // max(1, len(languages)))
    columns = [
        _places([file for file in files if file.language == language], tokens, context, share, moments, seed)
        for language in languages
    ]
    return [moment for row in range(share) for column in columns if row < len(column) for moment in column[row]][
        : places * moments
    ]


def _places(
    own: list[HeldoutFile], tokens: Measure, context: int, count: int, moments: int, seed: int
) -> list[list[Moment]]:
    """The places of one language."""
    random.Random(f"{seed}:places").shuffle(own)  # noqa: S311 - seeded, not secret
    # One file of each package, then a second one of each, and so on.
    seen: Counter[str] = Counter()
    turns: list[tuple[int, int]] = []
    for number, file in enumerate(own):
        turns.append((seen[file.package], number))
        seen[file.package] += 1
    found: list[list[Moment]] = []
    for file in (own[number] for _, number in sorted(turns)):
        if len(found) == count:
            break
        fits = SHORTEST <= len(file.text) <= LONGEST
        holes = rests_going_down(file, tokens, count=moments, seed=seed) if fits else ()
        if len(holes) == moments:
            room = context - tokens(file.text) - SPARE_TOKENS
            related = _related(file, own, room, tokens)
            found.append([Moment(related, hole) for hole in holes])
    return found


def _related(file: HeldoutFile, own: Sequence[HeldoutFile], room: int, tokens: Measure) -> tuple[Excerpt, ...]:
    """Excerpts of other files that fit into `room` tokens, those of the file's own package nearest to it."""
    others = sorted((other for other in own if other is not file), key=lambda other: other.package != file.package)
    nearest_first: list[Excerpt] = []
    for other in others:
        room -= tokens(other.path) + 2
        lines = other.text.splitlines(keepends=True)
        for start in reversed(range(0, len(lines), EXCERPT_LINES)):
            text = "".join(lines[start : start + EXCERPT_LINES])
            room -= tokens(text)
            if room < 0:
                return tuple(reversed(nearest_first))
            nearest_first.append(Excerpt(other.path, start, text))
    return tuple(reversed(nearest_first))


def measure(
    moments: Sequence[Moment],
    contenders: Sequence[Contender],
    context: int,
    progress: Progress | None,
    clock: Callable[[], float] = time.perf_counter,
    processor: Callable[[], float] = time.process_time,
) -> list[Case]:
    """Ask every contender in turns: one keystroke earlier, untimed, and then at the moment itself."""
    if progress is not None:
        progress.phase("gaps", len(moments))
    cases = []
    for turn, moment in enumerate(moments):
        case, truth = Case(), moment.hole.answer
        for contender in in_turns(contenders, turn):
            contender.fill(moment.earlier, context)
            began, busy = clock(), processor()
            answer = contender.fill(moment, context)
            case[contender.name] = Measured(
                (clock() - began) * 1e3,
                (processor() - busy) * 1e3,
                common_prefix(answer.text, truth),
                answer.text.rstrip() == truth.rstrip(),
                answer.prompt,
                answer.read,
            )
        cases.append(case)
        if progress is not None:
            progress.step()
    return cases


def flat_keys(cases: Sequence[Case], names: Sequence[str]) -> dict[str, Value]:
    """Every figure: each one's time per accepted character and exact match, and the first one's over the others'.

    The model alone over the others too, with the prefix `alone_`; and ours over llama.cpp's twin, as if that had as
    many characters right as the model itself has in `transformers`.
    """
    flat: dict[str, Value] = {"n": len(cases)}
    for name in names:
        put_interval(flat, f"ms_per_character_{name}", ratio_of_sums(*_sides(cases, name)))
        put_interval(flat, f"processor_ms_per_character_{name}", ratio_of_sums(*_sides(cases, name, "processor")))
        put_interval(flat, f"exact_match_{name}", wilson(sum(case[name].exact for case in cases), len(cases)))
        for rank in (50, 95):
            flat[f"p{rank}_ms_{name}"] = percentile(_values(cases, name, "milliseconds"), rank)
        flat[f"accepted_characters_{name}"] = int(sum(_values(cases, name, "characters")))
        for figure in ("prompt", "read"):
            flat[f"{figure}_tokens_{name}"] = fmean(_values(cases, name, figure)) if cases else None
    pairs = [("", names[0], other) for other in names[1:]]
    pairs += [("alone_", ALONE, other) for other in names[2:] if ALONE in names]
    for tag, ours, other in pairs:
        for key, times in ((f"{tag}vs_{other}", "milliseconds"), (f"{tag}processor_vs_{other}", "processor")):
            put_interval(flat, key, ratio_of_ratios(*(_sides(cases, each, times) for each in (ours, other))))
        both = (_values(cases, each, "milliseconds") for each in (ours, other))
        put_interval(flat, f"{tag}time_vs_{other}", ratio_of_sums(*both))
    twin, model = "llamacpp", "transformers"
    if {twin, model} <= set(names):
        most = max(sum(_values(cases, name, "characters")) for name in (twin, model))
        for kind, times in (("", "milliseconds"), ("processor_", "processor")):
            mine, theirs = flat[f"{kind}ms_per_character_ours"], sum(_values(cases, twin, times))
            known = isinstance(mine, float) and most and theirs
            flat[f"{kind}vs_{twin}_as_right_as_{model}"] = float(str(mine)) * most / theirs if known else None
    return flat


def table(flat: Flat, names: Sequence[str]) -> Table:
    """One row per contender."""
    figures = (
        ("p50_ms", 1), ("p95_ms", 1), ("prompt_tokens", 0), ("read_tokens", 1), ("accepted_characters", 0),
        ("ms_per_character", 1), ("processor_ms_per_character", 1),
    )  # fmt: skip
    rows = [
        (
            name.replace("_", " "),
            *(number_cell(flat[f"{figure}_{name}"], digits) for figure, digits in figures),
            f"{round((flat[f'exact_match_{name}'] or 0) * flat['n'])} of {flat['n']}",
        )
        for name in names
    ]
    columns = (
        "engine", "p50 ms", "p95 ms", "prompt tokens", "read anew", "accepted characters", "ms per accepted character",
        "processor ms per character", "exact",
    )  # fmt: skip
    return Table("The same weights, the same gaps", columns, rows)


def ratio_table(flat: Flat, names: Sequence[str]) -> Table:
    """Ours over each other one: milliseconds per accepted character, and milliseconds alone."""
    kinds = ("vs", "processor_vs", "time_vs")
    rows = [(name.replace("_", " "), *(flat_cell(flat, f"{kind}_{name}") for kind in kinds)) for name in names[1:]]
    rows += [
        (f"{name.replace('_', ' ')}, only the model", *(flat_cell(flat, f"alone_{kind}_{name}") for kind in kinds))
        for name in names
        if f"alone_vs_{name}" in flat
    ]
    rows += [
        (key.removeprefix("vs_").replace("_", " "), flat_cell(flat, key), flat_cell(flat, f"processor_{key}"), "-")
        for key in flat
        if key.startswith("vs_") and "_as_right_as_" in key
    ]
    columns = ("ours over", "ms per accepted character", "processor ms", "ms per answer")
    return Table("Ours over theirs", columns, tuple(rows))


def _values(cases: Sequence[Case], name: str, figure: str) -> list[float]:
    return [float(getattr(case[name], figure)) for case in cases]


def _sides(cases: Sequence[Case], name: str, times: str = "milliseconds") -> tuple[list[float], list[float]]:
    """Milliseconds and accepted characters."""
    return _values(cases, name, times), _values(cases, name, "characters")

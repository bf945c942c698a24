"""`calomel bench fills`: recorded fill-in answers of real models, through the editor's side.

A file has places in code: the text before and after a gap, what stood in it (`golden`), and what models answered. Every
answer goes to the editor's side as from a model on a server, in a document of its own, with the cursor at the gap.
What is then offered is compared with the answer, and with what stood there.

An answer is right if it puts the same text in place as `golden` does. Line ends are all alike here, white space at the
end of a line does not count, and at the two ends of the text only where it parts two words. It is `exact` if the text
that it leads to has the same lines, indentation included, but for blank ones: models forget the indentation of the
first line, and line ends around the text. An answer that begins with all of golden's lines, and has more lines, is not
right: it is `beyond`, a part of the wrong ones, and what is offered of it may be right. An offer is `whole` if it is
the answer in the sense of right.

The file has one JSON object a line, compressed with zstandard. Fields: `language` (a language id), `prefix`, `suffix`,
`golden`, `answers` (by model, a text, or an object with `text` and `tokens`: pairs of a token's text and its
log-probability); `category` and `id`, which name the place, and `path`, whose file name the document gets, if there
are any. Others are ignored. A text without tokens is an answer of a server that reports no log-probabilities. Where
`golden` ends its last line and `suffix` does not start with a line end, that line end belongs to the document: a person
is in a line of their own there.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from calomel.bench.room import Room
from calomel.infer.cleaning import Cleaning
from calomel.infer.completer import CANVAS, Candidate, CompleteAnswer, CompleteRequest, ModelInfo, causal
from calomel.infer.upstream.adapter import Piece, Token
from calomel.infer.upstream.answer import Answer
from calomel.prompts.parts import common_prefix, edited
from calomel.replay.events import Opened, suffix_of
from calomel.replay.stories import spread
from calomel.report.heldout import BenchDataError, packed_rows
from calomel.report.result import Interval, Report, Resampling, Table, Value, percent_cell, put_interval
from calomel.report.running import Progress, in_processes
from calomel.storage import processors
from calomel.suggest.silence import Silence, SilenceReason
from calomel.workspace.settings import Aggressiveness, SuggestSettings

_CONTEXT: Final = 8192
_NAMED: Final = 2
# Fewer places are played sooner than another process starts.
_FEW: Final = 32


@dataclass(frozen=True, slots=True)
class FillsOptions:
    """What to run.

    Attributes:
        file: the recorded answers.
        models: whose answers; empty for all.
        limit: places at most, spread over languages and categories; None for all.
        jobs: processes; None for one per processor.
        log_prob: of an answer without tokens, as if it were one token; None for none.
        aggressiveness: of the editor's settings.
    """

    file: Path
    models: tuple[str, ...] = ()
    limit: int | None = None
    jobs: int | None = None
    log_prob: float | None = None
    aggressiveness: Aggressiveness = "balanced"


def run_fills(options: FillsOptions) -> Report:
    """Run the bench.

    Raises:
        BenchDataError: the file is absent or not what it should be.
        ValueError: it has no answer of the models, or the log-probability is not finite.
    """
    if options.log_prob is not None and not math.isfinite(options.log_prob):
        raise ValueError(f"--log-prob {options.log_prob}: it is not finite")
    places = _chosen(read_places(options.file), options)
    rows: list[FillRow] = []
    with Progress() as progress:
        progress.phase("places", len(places))
        for played in _played(places, options):
            rows += played
            progress.step()
    order = {place.name: number for number, place in enumerate(places)}
    rows.sort(key=lambda row: (order[row.name], row.model))
    return _report(rows, options)


# Reading.


class Recorded(msgspec.Struct, frozen=True):
    """An answer, token by token; a log-probability may be unknown. Tokens may go on beyond the text.

    Attributes:
        text: of the answer.
        tokens: texts and log-probabilities.
        continues: the model knows no gaps: it only continued the text before this one.
        cut: it was stopped at a limit of tokens.
    """

    text: str
    tokens: tuple[tuple[str, float | None], ...] = ()
    continues: bool = False
    cut: bool = False


class Place(msgspec.Struct, frozen=True):
    """A gap, what stood in it, and what models answered; `name` is its own in the file."""

    language: str
    prefix: str
    suffix: str
    golden: str
    answers: dict[str, str | Recorded]
    category: str = ""
    id: str = ""
    path: str | None = None
    name: str = ""


def read_places(path: Path) -> tuple[Place, ...]:
    """The places of a file. Raises BenchDataError, naming the line and the field."""
    found: dict[str, Place] = {}
    for number, row in enumerate(packed_rows(path), 1):
        try:
            place = msgspec.convert(row, Place)
            _check(place)
        except (msgspec.ValidationError, ValueError) as error:
            raise BenchDataError(f"{path}, line {number}: {error}") from error
        name = "/".join(filter(None, (place.language, place.category, place.id or str(number))))
        name = f"{name}#{number}" if name in found else name
        found[name] = _in_lines(msgspec.structs.replace(place, name=name))
    return tuple(found.values())


def _check(place: Place) -> None:
    texts = {"prefix": place.prefix, "suffix": place.suffix, "golden": place.golden}
    for model, answer in place.answers.items():
        texts[f"answers.{model}"] = answer if isinstance(answer, str) else answer.text
        if isinstance(answer, Recorded) and answer.tokens:
            whole = "".join(text for text, _ in answer.tokens)
            if not whole.startswith(answer.text):
                raise ValueError(f"answers.{model}.tokens: they do not spell the answer's text")
    for field, text in texts.items():
        if re.search("[\ud800-\udfff]", text):
            raise ValueError(f"{field}: it has half of a surrogate pair")


def _in_lines(place: Place) -> Place:
    """The same place, with the line end of golden's last line in the document."""
    if not place.golden.endswith("\n") or place.suffix.startswith(("\n", "\r")):
        return place
    end = "\r\n" if place.golden.endswith("\r\n") else "\n"
    return msgspec.structs.replace(place, golden=place.golden.removesuffix(end), suffix=end + place.suffix)


def _chosen(places: Sequence[Place], options: FillsOptions) -> tuple[Place, ...]:
    models = {model for place in places for model in place.answers}
    for name in options.models:
        if name not in models:
            raise ValueError(f"--models {name}: {options.file} has answers of {', '.join(sorted(models)) or 'none'}")
    cells: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
    for place in places:
        answers = {name: said for name, said in place.answers.items() if not options.models or name in options.models}
        if answers:
            cells[place.language, place.category].append(msgspec.structs.replace(place, answers=answers))
    found = spread(cells.values(), options.limit)
    if not found:
        raise ValueError(f"{options.file} has no answers")
    return found


# Asking.


class _Model:
    """A model on a server that gives one answer, with log-probabilities where it has some."""

    address: str | None = None

    def __init__(self, name: str, said: Recorded) -> None:
        self._name = name
        self._said = said
        self.is_unsure = False

    async def info(self) -> ModelInfo:
        return ModelInfo(self._name[:256], "0" * 16, ("fill",), _CONTEXT, _CONTEXT // 4, None, "0", source="fim")

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        cleaning, answer = Cleaning(request, self._said.continues), Answer()
        pieces = [*_pieces(self._said)]
        for piece in pieces[: request.max_tokens]:
            answer.take(piece, request.floor)
            if answer.finish is None and cleaning.cut(answer.text)[1]:
                answer.finish = "stop"
            if answer.finish is not None:
                break
        limited = self._said.cut or len(pieces) >= request.max_tokens
        finish = answer.finish or ("length" if limited else "stop")
        text = cleaning.cut(answer.text)[0]
        self.is_unsure = finish == "unlikely" and not text.strip()
        own = causal(Candidate(text, answer.log_probs(len(text)), finish_reason=finish))
        drafts = (Candidate(draft.text, maker=draft.maker) for draft in request.drafts)
        return CompleteAnswer((own, *drafts), model=self._name[:256], judged=False)

    async def aclose(self) -> None:
        """There is nothing to close."""


def _pieces(said: Recorded) -> Iterator[Piece]:
    """The tokens that an answer has before its text ends; all of it at once if they are unknown."""
    if not said.tokens:
        yield Piece(said.text)
        return
    left = len(said.text)
    for text, log_prob in said.tokens:
        if left <= 0:
            return
        yield Piece(text[:left], (Token(text[:left], math.nan if log_prob is None else log_prob),))
        left -= len(text)


@dataclass(frozen=True, slots=True)
class FillRow:
    """One answer.

    Attributes:
        name: of the place.
        language: of the place.
        model: that answered.
        right, exact: the answer is.
        beyond: it begins with all that is right, and has more lines.
        offer: `whole`, `changed` or `hidden`.
        right_offer, exact_offer: what is offered is.
        characters: of the offer, without white space at its end.
        agrees: how many of them, from its start, are what the author's text goes on with.
        first_word: they have its first word.
        why: the reason for silence, or how the offer differs; empty for a whole one.
    """

    name: str
    language: str
    model: str
    right: bool
    exact: bool
    beyond: bool
    offer: str
    right_offer: bool = False
    exact_offer: bool = False
    characters: int = 0
    agrees: int = 0
    first_word: bool = False
    why: str = ""


def _played(places: Sequence[Place], options: FillsOptions) -> Iterator[list[FillRow]]:
    """The rows of each place, as they arrive."""
    work = partial(_rows, options=options)
    jobs = min(options.jobs or processors(), 1 + len(places) // _FEW)
    return map(work, places) if jobs == 1 else in_processes(work, places, jobs)


def _rows(place: Place, options: FillsOptions) -> list[FillRow]:
    settings = SuggestSettings(debounce_seconds=0.0, aggressiveness=options.aggressiveness)

    async def ask() -> list[FillRow]:
        return [await _row(place, model, _recorded(said, options), settings) for model, said in place.answers.items()]

    return asyncio.run(ask())


def _recorded(said: str | Recorded, options: FillsOptions) -> Recorded:
    """An answer, with the log-probability that the options give one without tokens."""
    recorded = Recorded(said) if isinstance(said, str) else said
    if recorded.tokens or options.log_prob is None:
        return recorded
    return Recorded(recorded.text, ((recorded.text, options.log_prob),))


async def _row(place: Place, model: str, said: Recorded, settings: SuggestSettings) -> FillRow:
    name = PurePosixPath(place.path or "").name or f"gap{suffix_of(place.language.lower())}"
    document, cursor = place.prefix + place.suffix, len(place.prefix)
    played = _Model(model, said)
    room = Room(played, settings)
    room.play([Opened(0, 0.0, name, place.language.lower(), document)])
    found, _ = await room.ask(f"{place.name}, {model}", name, cursor, kind="fill")
    await room.suggester.aclose()
    same = partial(_same, place)
    beyond = _plain(said.text).startswith(f"{_plain(place.golden)}\n")
    right = same(said.text, place.golden)
    common = (place.name, place.language, model, right, right and _exact(place, said.text), beyond)
    if isinstance(found, Silence):
        return FillRow(*common, "hidden", why=_reason(room, played, said, found))
    after = edited(document, found.edits)
    shown = after[cursor : len(after) - len(place.suffix)]
    apart = after != place.prefix + shown + place.suffix
    whole = not apart and same(shown, said.text)
    how = "" if whole else "elsewhere" if apart else _change(said.text, shown, found.maker)
    right = not apart and same(shown, place.golden)
    exact = right and _exact(place, shown)
    text = shown.rstrip()
    agrees = common_prefix(text, place.golden + place.suffix)
    first = _FIRST_WORD.match(text)
    return FillRow(
        *common,
        "whole" if whole else "changed",
        right_offer=right,
        exact_offer=exact,
        characters=len(text),
        agrees=agrees,
        first_word=first is not None and agrees >= first.end(),
        why=how,
    )


def _reason(room: Room, model: _Model, said: Recorded, found: Silence) -> str:
    """Why the answer is hidden; the silence may have the reason of a rule's text that was likelier."""
    if model.is_unsure:
        return str(SilenceReason.LOW_CONFIDENCE)
    own = (each.reason for each in room.decisions.all if each.maker == CANVAS and each.reason is not None)
    return str(next(own, found.reason) if said.text else SilenceReason.EMPTY)


def _plain(text: str) -> str:
    """Without what does not count: kinds of line ends, and white space at the ends of lines and of the text."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip().split("\n")
    return "\n".join(line.rstrip() for line in lines)


def _same(place: Place, one: str, other: str) -> bool:
    """Whether two texts are the same in the gap."""
    seams = [(_joins(place.prefix, text), _joins(text, place.suffix)) for text in (one, other)]
    return _plain(one) == _plain(other) and seams[0] == seams[1]


def _exact(place: Place, text: str) -> bool:
    """Whether a text leads to the lines that the author had."""
    one, other = (
        [line.rstrip() for line in f"{place.prefix}{each}{place.suffix}".splitlines() if line.strip()]
        for each in (text, place.golden)
    )
    return one == other


def _joins(left: str, right: str) -> bool:
    """Whether the end of one text and the start of the next make one word."""
    return re.fullmatch(r"\w\w", left[-1:] + right[:1]) is not None


def _change(said: str, shown: str, maker: str) -> str:
    """How an offer differs from the answer."""
    if maker != CANVAS:
        return "another"
    answer, offer = _plain(said), _plain(shown)
    if answer.startswith(offer):
        return "end_cut"
    if answer.endswith(offer):
        return "start_cut"
    answer, offer = ("\n".join(line.strip() for line in text.split("\n")) for text in (answer, offer))
    return "indentation" if answer == offer else "altered"


# Figures.

_FIRST_WORD: Final = re.compile(r"\s*(?:\w+|[^\w\s]+)")
_COUNTS: Final[dict[str, Callable[[FillRow], bool]]] = {
    "answers": lambda _: True,
    "right": lambda row: row.right,
    "right_exact": lambda row: row.exact,
    "right_whole": lambda row: row.right and row.offer == "whole",
    "right_hidden": lambda row: row.right and row.offer == "hidden",
    "right_changed": lambda row: row.right and row.offer == "changed",
    "wrong": lambda row: not row.right,
    "wrong_whole": lambda row: not row.right and row.offer == "whole",
    "wrong_hidden": lambda row: not row.right and row.offer == "hidden",
    "wrong_changed": lambda row: not row.right and row.offer == "changed",
    "wrong_mended": lambda row: not row.right and row.right_offer,
    "right_offers": lambda row: row.right_offer,
    "exact_offers": lambda row: row.exact_offer,
    "beyond": lambda row: row.beyond,
    "beyond_hidden": lambda row: row.beyond and row.offer == "hidden",
    "beyond_mended": lambda row: row.beyond and row.right_offer,
}
# Of offers that save something.
_SHOWN: Final[dict[str, Callable[[FillRow], float]]] = {
    "shown": lambda _: 1,
    "wholly_right": lambda row: row.agrees == row.characters,
    "wrong_first_word": lambda row: not row.first_word,
    "right_characters": lambda row: row.agrees,
    "wrong_characters": lambda row: row.characters - row.agrees,
}
_SAVES: Final = 3
_EXPLAINED: Final = ("right_hidden", "right_changed", "wrong_hidden", "wrong_changed")
_NOTES: Final = (
    (
        "An answer is right if it puts the same text in place as the author did, but for white space at its ends and at"
        " the ends of lines; exact if that makes the author's lines, indentation included. Beyond: it begins with all"
        " of the author's lines, and more lines follow; these count as wrong. Mended: the answer is wrong, but what is"
        " offered of it is right."
    ),
    (
        "What is shown: offers of at least three characters, compared with the author's text. Wholly right:"
        " all of the offer is; right and wrong characters are those up to the first difference and from there on."
    ),
    (
        "Right if shown: of the answers of which something is offered, the share whose offer is right; brackets are"
        " 95 % intervals from resampling places."
    ),
    (
        "Offers that are neither whole nor hidden: `end_cut`, `start_cut` and `indentation` are the answer without its"
        " end, without its start, and with other indentation; `another` is a rule's text; `elsewhere` also changes the"
        " text around the gap."
    ),
)


def _figures(rows: Sequence[FillRow]) -> dict[str, Value]:
    flat: dict[str, Value] = {key: sum(map(holds, rows)) for key, holds in _COUNTS.items()}
    shown = [row for row in rows if row.offer != "hidden" and row.characters >= _SAVES]
    flat |= {key: int(sum(map(measure, shown))) for key, measure in _SHOWN.items()}
    put_interval(flat, "shown_right_share", _shown_right(rows))
    for key in _EXPLAINED:
        whys = Counter(row.why for row in rows if _COUNTS[key](row))
        flat |= {f"{key}_{why}": count for why, count in whys.most_common()}
    return flat


def _shown_right(rows: Sequence[FillRow]) -> Interval | None:
    shown = [float(row.offer != "hidden") for row in rows]
    return Resampling([row.name for row in rows], 0).share([float(row.right_offer) for row in rows], shown)


def _groups(rows: Sequence[FillRow]) -> dict[str, list[FillRow]]:
    """All rows, those of each model and those of each language, by the beginning of their keys."""
    found = {"": [*rows]}
    for kind in ("model", "language"):

        def value(row: FillRow, kind: str = kind) -> str:
            return str(getattr(row, kind))

        found |= {f"{kind}.{name}.": [*part] for name, part in groupby(sorted(rows, key=value), value)}
    return found


def _report(rows: Sequence[FillRow], options: FillsOptions) -> Report:
    flat: dict[str, Value] = {
        "places": len({row.name for row in rows}),
        "aggressiveness": options.aggressiveness,
        "log_prob": options.log_prob,
    }
    cells, seen = [], []
    for prefix, part in _groups(rows).items():
        figures = _figures(part)
        flat |= {prefix + key: value for key, value in figures.items()}
        name = prefix.partition(".")[2].removesuffix(".") or "all"
        counts = (str(figures[key]) for key in _COUNTS)
        cells.append((name, *counts, percent_cell(_shown_right(part))))
        seen.append((name, *(str(figures[key]) for key in _SHOWN)))
    columns = ("", *(key.replace("_", " ") for key in _COUNTS), "right if shown")
    return Report(
        bench="bench fills",
        flat=flat,
        tables=(
            Table("Recorded fill-in answers", columns, cells),
            Table("What is shown of them", ("", *(key.replace("_", " ") for key in _SHOWN)), seen),
            _why_table(rows),
        ),
        notes=_NOTES,
        # Names only: the texts are other people's.
        details={"rows": [asdict(row) for row in rows]},
    )


def _why_table(rows: Sequence[FillRow]) -> Table:
    """The reasons, with some places of each."""
    found: list[tuple[str, ...]] = []
    for key in _EXPLAINED:
        some: defaultdict[str, list[str]] = defaultdict(list)
        for row in filter(_COUNTS[key], rows):
            some[row.why].append(f"{row.name} ({row.model})")
        for why, names in sorted(some.items(), key=lambda item: -len(item[1])):
            found.append((key.replace("_", " "), why, str(len(names)), ", ".join(names[:_NAMED])))
    return Table("Why answers are hidden or changed", ("", "why", "answers", "such as"), found)

"""Requests to a model and its answers, wherever that model runs.

The same values go over the wire of `POST /calomel/v1/complete` (`calomel.infer.wire`, which checks input against the
limits defined here), to an engine in the same process (`calomel.infer.in_process`), and come from a script in tests.
Below them: how answers are generated, and when an answer is complete.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol, TypeVar

from msgspec import Meta

from calomel.code.names import is_word
from calomel.engine import CanvasState, Constraint, Result, SamplingParams
from calomel.prompts.grammar import AnswerForm
from calomel.prompts.parts import FileText, PromptParts, RegionBounds, line_feeds
from calomel.prompts.tokenizer import TextTokenizer
from calomel.selectivity.record import SourceClass

if TYPE_CHECKING:
    from calomel.infer.listener import Listener
    from calomel.prompts.renderer import PromptRenderer

Kind = Literal["fill", "edit"]
FinishReason = Literal["stop", "length", "deadline", "unlikely"]

# Incremented whenever older clients or servers would misread newer ones.
PROTOCOL_VERSION = 1

# The maker of the model's own candidates; drafts bring their own names.
CANVAS = "canvas"

# The embedded model was trained on contexts of 512 tokens; a cold context of 8K takes seconds on a CPU (`bench speed`).
DEFAULT_CONTEXT: Final = 2048

# The longest answer of the published API.
MAX_TOKENS: Final = 8192
# More positions than any supported model has; the model's own limit is applied later.
MAX_CONTEXT: Final = 1 << 20
# The same as in the published API's route: matching this many costs nothing.
MAX_STOPS: Final = 16
MAX_STOP_CHARACTERS: Final = 256
# The model reads each before it answers; more than a handful cost more than they are worth.
MAX_DRAFTS: Final = 16
# More than the largest region.
MAX_DRAFT_CHARACTERS: Final = 8192
# Nobody waits ten minutes for a suggestion.
MAX_DEADLINE: Final = 600.0
_MAX_CANDIDATES: Final = 64

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Tokens = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]
_Context = Annotated[int, Meta(ge=1, le=MAX_CONTEXT)]
_ShortText = Annotated[str, Meta(max_length=256)]
_Numbers = Annotated[tuple[float, ...], Meta(max_length=MAX_TOKENS)]


@dataclass(frozen=True, slots=True)
class Draft:
    """A text proposed by the editor's side, for the model to judge.

    Attributes:
        text: what the region could become, or what could stand at the hole.
        maker: the rule that proposed it, such as `rename`.
    """

    text: Annotated[str, Meta(max_length=MAX_DRAFT_CHARACTERS)]
    maker: Annotated[str, Meta(min_length=1, max_length=256)]


@dataclass(frozen=True, slots=True)
class CompleteRequest:
    """One question.

    Attributes:
        kind: `fill` puts text between prefix and suffix, `edit` rewrites the region.
        parts: what the model sees.
        max_tokens: limit of the answer.
        min_tokens: least length of the answer; 1 when the user asked, 0 when an empty answer is allowed.
        stop: the answer ends before the first of these strings.
        max_context: limit of prompt tokens; what does not fit is left out, least valuable part first.
        deadline: seconds from now after which partial results are returned; None for none.
        drafts: texts that compete with the model's own, likeliest first.
        own: an `edit` also wants the model's own text; without it, the drafts are only judged, in a third of the time.
        floor: nats; the model's own text ends, with reason `unlikely`, before the token with which the joint
            log-probability of all of its tokens falls below this; None accepts any text. A canvas has no such place,
            since its tokens are revealed in any order: one of our own is abandoned as a whole, another one is kept.
        ahead: prefetch: only encode the prompt, while the engine is idle, so that the next question is faster. The
    answer is empty. Only for models with `ModelInfo.reads_ahead`.
        file: the whole file that the window is cut from, if that is known; it never leaves this process.
    """

    kind: Kind
    parts: PromptParts
    max_tokens: Annotated[int, Meta(ge=1, le=MAX_TOKENS)] = 64
    min_tokens: _Tokens = 0
    stop: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=MAX_STOP_CHARACTERS)], ...], Meta(max_length=MAX_STOPS)
    ] = ()
    max_context: _Context = DEFAULT_CONTEXT
    deadline: Annotated[float, Meta(ge=0, le=MAX_DEADLINE)] | None = None
    drafts: Annotated[tuple[Draft, ...], Meta(max_length=MAX_DRAFTS)] = ()
    own: bool = True
    floor: float | None = None
    ahead: bool = False
    file: FileText | None = None


@dataclass(frozen=True, slots=True)
class FillRequest(CompleteRequest):
    """A hole and how the engine fills it; none of the following goes over the wire.

    Attributes:
        sampling: None for the most probable tokens.
        policy: a reveal policy of the engine; None for the default.
        max_steps: denoising steps per canvas; None for the default.
        canvas_length: tokens of a canvas; None for the default.
        constraint: grammar of the answer, see `Filler.grammars`; by default it gets as many steps as it needs.
        whole_word: token healing: the answer is generated from the start of the word at the cursor, and must begin with
            what is there of it. Only for our own checkpoints and for those without fill-in-the-middle tokens, and not
            with a constraint.
        recall: text found elsewhere between the same neighbours may be the answer, if it is likelier right than the
            model's own; not with a temperature, penalties, a `policy` or a constraint.
        fitted: what does not fit the hole is cut off the answer, see `calomel.infer.cleaning`; not with a constraint,
            and not with `min_tokens` above 1.
    """

    sampling: SamplingParams | None = None
    policy: str | None = None
    max_steps: int | None = None
    canvas_length: int | None = None
    constraint: Constraint | None = None
    whole_word: bool = True
    recall: bool = True
    fitted: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate answer, with the engine's raw signals.

    Attributes:
        text: what to put into the hole, or what the region becomes.
        log_probs: of each token when it was revealed.
        entropies: in nats, of each token's distribution when it was revealed.
        end_log_prob: of the end token; None when the answer was cut.
        finish_reason: `stop` for the end token or a stop string; `unlikely` where `CompleteRequest.floor` cut it.
        steps: denoising steps.
        maker: `canvas`, or the maker of the draft.
        log_prob: exact causal log-probability of the text and the end token after it (for a draft that was cut, of the
            rest); None if unknown.
        keep_log_prob: the same of leaving everything unchanged.
    """

    text: str
    log_probs: _Numbers = ()
    entropies: _Numbers = ()
    end_log_prob: float | None = None
    finish_reason: FinishReason = "stop"
    steps: _Count = 0
    maker: _ShortText = CANVAS
    log_prob: float | None = None
    keep_log_prob: float | None = None

    @classmethod
    def of(cls, result: Result, text: str, kept: int | None = None) -> Candidate:
        """The model's own `text`; if the answer was cut, only its first `kept` tokens count."""
        cut = kept is not None and kept < len(result.ids)
        return cls(
            text,
            result.log_probs[:kept],
            result.entropies[:kept],
            None if cut else result.end_log_prob,
            result.finish_reason,
            result.steps,
        )

    @property
    def log_ratio(self) -> float | None:
        """How much likelier, in nats, this text is than leaving everything unchanged; None if unknown."""
        if self.log_prob is None or self.keep_log_prob is None:
            return None
        return self.log_prob - self.keep_log_prob

    @property
    def mean_log_prob(self) -> float:
        """Mean reveal log-probability, end token included; minus infinity without any token."""
        scores = [*self.log_probs, *([] if self.end_log_prob is None else [self.end_log_prob])]
        return sum(scores) / len(scores) if scores else float("-inf")


def causal(candidate: Candidate) -> Candidate:
    """A candidate whose tokens were chosen one after the other: its log-probability is the sum of theirs, if known."""
    return replace(candidate, log_prob=sum(candidate.log_probs)) if candidate.log_probs else candidate


@dataclass(frozen=True, slots=True)
class EngineTimings:
    """How long the parts of an answer took, in seconds, measured by the side that computed it."""

    queued: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class CompleteAnswer:
    """Candidates, best first; without any, `reason` says why.

    Attributes:
        candidates: best first.
        reason: why there are none; None if there are some.
        context_tokens: length of the prompt.
        cached_tokens: of them, those served from the prefix cache.
        model: id of the model that answered.
        judged: the model can score a given text; if not, drafts come last and without a likelihood.
    """

    candidates: Annotated[tuple[Candidate, ...], Meta(max_length=_MAX_CANDIDATES)]
    reason: _ShortText | None = None
    context_tokens: _Count = 0
    cached_tokens: _Count = 0
    model: _ShortText = ""
    timings: EngineTimings = field(default_factory=EngineTimings)
    judged: bool = True


@dataclass(frozen=True, slots=True)
class Fill:
    """A filled hole.

    Attributes:
        text: to insert; prefix + text + suffix is byte-exact.
        finish_reason: `stop` for the end token or a stop string, `length` for `max_tokens`, `deadline`.
        confidence: geometric mean of the probabilities of the text's tokens when they were revealed, including the end
            token if it ended the answer; 0 to 1. For a recalled text, the probability that it is right.
        seconds: from the request to the answer.
        result: the engine's own account.
        trimmed: the prompt exceeded the limit, and what is far from the hole was left out.
        estimated: nobody counted the prompt's tokens: their number is an estimate.
    """

    text: str
    finish_reason: FinishReason
    confidence: float
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    steps: int
    forwards: int
    seconds: float
    result: Result = field(repr=False)
    trimmed: bool = False
    estimated: bool = False


# The id of the model that Calomel comes with.
SHIPPED_ID: Final = "calomel-nano"


@cache
def version() -> str:
    """The version of this Calomel."""
    from importlib.metadata import PackageNotFoundError  # takes ten milliseconds, not needed at import
    from importlib.metadata import version as installed

    try:
        return installed("calomel")
    except PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the loaded model can do.

    Attributes:
        id: in requests and records.
        weights: short hash of the weights file.
        kinds: what it was trained for.
        max_context: its number of positions.
        default_context: the prompt budget that its benchmarks support on this device.
        tokenizer: path of its `tokenizer.json` if that is on this machine; else None.
        version: of the Calomel that runs it.
        region: how much it may rewrite at once.
        reads_ahead: the encoded prompt of one question can be reused by the next.
        source: its class, which says how much doubts about its suggestions weigh; empty where only its name can tell.
        through: the server that it is behind, for people; empty for one that this Calomel runs.
    """

    id: _ShortText
    weights: _ShortText
    kinds: tuple[Kind, ...]
    max_context: _Context
    default_context: _Context
    tokenizer: Annotated[str, Meta(max_length=4096)] | None
    version: _ShortText
    region: RegionBounds = field(default_factory=RegionBounds)
    reads_ahead: bool = False
    source: SourceClass | Literal[""] = ""
    through: Annotated[str, Meta(max_length=4096)] = ""

    @property
    def title(self) -> str:
        """Its name for people, as they choose it."""
        return "nano" if self.id == SHIPPED_ID else self.id


class CompleterError(Exception):
    """The model could not answer. `code` is for counting, the message for people; neither quotes the user's text.

    Codes: `unreachable`, `loading`, `overloaded`, `timeout`, `refused`, `failed`.
    """

    def __init__(self, code: str, message: str, listener: Listener | None = None) -> None:
        """`listener` is another user's program that the user may confirm."""
        super().__init__(message)
        self.code = code
        self.listener = listener


# A server of Calomel says so at the proof and at each request.
REFUSED: Final = "the server does not accept the token: check backend.token or backend.token_file"


class Completer(Protocol):
    """A model, wherever it runs. Cancelling an awaiting task cancels the work behind it."""

    @property
    def address(self) -> str | None:
        """Where its server listens; None for a model in this process."""

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Raises CompleterError."""

    async def info(self) -> ModelInfo:
        """What the model can do; waits until it is loaded. Raises CompleterError."""

    async def aclose(self) -> None:
        """Close the connections and processes that this object owns."""


Complete = Callable[[CompleteRequest], Awaitable[CompleteAnswer]]
# A completer that streams calls this with the beginning of its answer as that grows, first with an empty one.
GROWING: Final[ContextVar[Callable[[str], None]]] = ContextVar("GROWING", default=lambda _: None)
# It calls this once with the first line of a longer text, as an answer, while it writes the rest.
FIRST_LINE: Final[ContextVar[Callable[[CompleteAnswer], None]]] = ContextVar("FIRST_LINE", default=lambda _: None)


class UnsupportedError(Exception):
    """This model cannot do what was asked; the message says so to people."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """An engine at one moment; None for what it does not have.

    Attributes:
        running: requests in its batch.
        waiting: requests that wait for a place in it.
        cache_tokens: tokens that its prefix cache holds, by whole pages.
        cache_capacity: tokens that it could hold.
    """

    running: int | None = None
    waiting: int | None = None
    cache_tokens: int | None = None
    cache_capacity: int | None = None


class Answerer(Protocol):
    """The model of a server: an engine in its process, or another server.

    Cancelling an awaiting task, or closing a generator, cancels the work behind it. All of them raise EngineError, or
    CompleterError from another server.
    """

    @property
    def reads_ahead(self) -> bool:
        """Whether it keeps encoded contexts, so that reading ahead pays."""

    @property
    def note(self) -> str | None:
        """A sentence about it for people, if there is anything to say."""

    def occupancy(self) -> Occupancy:
        """How busy it is."""

    def for_client(self, client: str) -> Answerer:
        """The same model, with its requests in the client's name."""

    def constraint(self, form: AnswerForm) -> Constraint:
        """What keeps an answer to `form`; compiling may take seconds. Raises UnsupportedError, GrammarError."""

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question of an editor."""

    async def afill(self, request: FillRequest) -> Fill:
        """Fill a hole."""

    def stream(self, request: FillRequest) -> AsyncGenerator[str | Fill]:
        """Fill a hole; yields the text as it grows, and then the whole."""

    def canvases(self, request: FillRequest) -> AsyncGenerator[CanvasText | Fill]:
        """Fill a hole; yields the answer after each denoising step, and then the whole."""

    def close(self) -> None:
        """End it, and what runs behind it."""


def cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """`text` up to the first of `stops`, and whether one was found. An empty stop string never matches."""
    places = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def sure_end(text: str, behind: str) -> int:
    """Where `text` ends if what came `behind` it is dropped: at its end, but not within a word."""
    if not (is_word(text[-1:]) and is_word(behind[:1])):
        return len(text)
    at = len(text)
    while is_word(text[at - 1 : at]):
        at -= 1
    return at


def settled(text: str, stops: Sequence[str]) -> str:
    """The part of a growing `text` that no stop string can still cut."""
    longest = 0
    for stop in stops:
        for size in range(min(len(stop) - 1, len(text)), longest, -1):
            if text.endswith(stop[:size]):
                longest = size
                break
    return text[: len(text) - longest]


def settled_ids(state: CanvasState, most: int | None = None, end: int | None = None) -> Sequence[int]:
    """The start of an answer that is revealed without gaps: at most `most` tokens, up to the token `end`."""
    count = next((at for at, is_known in enumerate(state.revealed) if not is_known), len(state.ids))
    ids = state.ids[:count][:most]
    return ids[: ids.index(end)] if end in ids else ids


@dataclass(frozen=True, slots=True)
class Ending:
    """Tells whether an answer is complete: at the first stop string, or when its format says so.

    Attributes:
        stop: stop strings.
        ended: whether the format says so; None if only the end token does.
        read: tokens to text.
    """

    stop: tuple[str, ...]
    ended: Callable[[Sequence[int]], bool] | None = field(compare=False)
    read: Callable[[Sequence[int]], str] = field(compare=False)

    def __call__(self, ids: Sequence[int]) -> bool:
        """Whether an answer of these tokens is complete."""
        if self.ended is not None and self.ended(ids):
            return True
        return bool(self.stop) and cut_at_stop(self.read(ids), self.stop)[1]


def ending(generation: GenerationConfig, stop: Sequence[str]) -> Ending | None:
    """For an answer that is generated this way; None if only the end token ends it."""
    if not stop and generation.ended is None:
        return None
    return Ending(tuple(stop), generation.ended, generation.renderer.read)


def plain_ending(tokenizer: TextTokenizer, stop: Sequence[str]) -> Ending | None:
    """For an answer that is used as is; None without stop strings."""
    return Ending(tuple(stop), None, tokenizer.decode) if stop else None


_Request = TypeVar("_Request", bound=CompleteRequest)


def with_line_feeds(request: _Request) -> _Request:
    r"""The request with \n for \r\n, whose answer has \n alone, too."""
    return replace(
        request,
        parts=request.parts.with_line_feeds(),
        stop=tuple(map(line_feeds, request.stop)),
        drafts=tuple(replace(draft, text=line_feeds(draft.text)) for draft in request.drafts),
    )


def with_ends_of(request: CompleteRequest, text: str) -> str:
    """What is answered to a request, with the line ends of its text."""
    windows = "\r\n" in request.parts.prefix or "\r\n" in request.parts.suffix
    return text.replace("\n", "\r\n") if windows else text


def with_ends(request: CompleteRequest, fill: Fill) -> Fill:
    """The same for a filled hole."""
    return replace(fill, text=with_ends_of(request, fill.text))


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """How answers are generated, for holes or for regions.

    Attributes:
        renderer: writes the prompts and reads the answers.
        policy: a reveal policy of the engine.
        max_steps: denoising steps per canvas.
        canvas: tokens of a canvas.
        sampling: None for the most probable tokens.
        ended: whether an answer is complete without an end token; None if nothing else ends one.
        blind: for regions: the model does not see their current text.
        continues: for holes: the model only continues the text before them. An answer is generated from the start of
            the word at the cursor, and what follows the hole decides where it ends.
    """

    renderer: PromptRenderer
    policy: str
    max_steps: int
    canvas: int
    sampling: SamplingParams | None = None
    ended: Callable[[Sequence[int]], bool] | None = None
    blind: bool = False
    continues: bool = False

    @property
    def causal(self) -> bool:
        """Whether each token is chosen after those before it, so that their log-probabilities add up."""
        return self.policy.startswith("left_to_right")

    def length(self, longest: int, max_tokens: int) -> int:
        """The canvas length for an answer of `max_tokens` and its end, at most `longest`."""
        return min(self.canvas, longest, max_tokens + 1)


# Placeholder for a token that is not revealed yet: a character that is rare in code.
UNKNOWN: Final = "\u2591"


@dataclass(frozen=True, slots=True)
class CanvasText:
    """The whole answer after one step; replaces the previous one.

    Attributes:
        step: forward passes of this answer so far, without prefill.
        text: with one `UNKNOWN` for every token that is not revealed yet.
        pieces: the same, token by token; a character split across tokens is shown as U+FFFD.
        revealed: per token, whether it is final.
    """

    step: int
    text: str
    pieces: tuple[str, ...] = ()
    revealed: tuple[bool, ...] = ()


def canvas_text(state: CanvasState, tokenizer: TextTokenizer, max_tokens: int) -> CanvasText:
    """The state as text, without what comes after a revealed end token or beyond the answer's limit.

    Args:
        state: as the engine recorded it.
        tokenizer: of the model.
        max_tokens: limit of the answer; a canvas may be longer.
    """
    ends = (at for at, token in enumerate(state.ids) if token == tokenizer.end and state.revealed[at])
    length = min(next(ends, len(state.ids)), max_tokens)
    ids, revealed = state.ids[:length], state.revealed[:length]
    visible = tuple(token != tokenizer.mask for token in ids)
    return CanvasText(
        state.step,
        "".join(_runs(ids, visible, tokenizer)),
        tuple(tokenizer.decode([token]) if is_known else UNKNOWN for token, is_known in zip(ids, visible, strict=True)),
        tuple(shown and is_known for shown, is_known in zip(revealed, visible, strict=True)),
    )


def _runs(ids: Sequence[int], visible: Sequence[bool], tokenizer: TextTokenizer) -> Iterable[str]:
    """Decode adjacent known tokens together, so that their characters are whole."""
    run: list[int] = []
    for token, is_known in zip(ids, visible, strict=True):
        if is_known:
            run.append(token)
            continue
        yield tokenizer.decode(run)
        yield UNKNOWN
        run = []
    yield tokenizer.decode(run)

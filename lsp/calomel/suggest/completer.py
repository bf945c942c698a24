"""What the editor's side asks of a model, and what it gets back, wherever that model runs.

The same values cross the wire of `POST /calomel/v1/complete` (`calomel.suggest.wire`, which holds what comes in to the
bounds that stand here), reach an engine in the same process (`calomel.suggest.in_process`), and come from a script in
tests. Below them: how a model is asked, and when an answer is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol

from msgspec import Meta

from calomel.prompts.parts import PromptParts, RegionBounds
from calomel.prompts.tokenizer import TextTokenizer
from calomel.suggest.fitting import HoleText, hole_text

if TYPE_CHECKING:
    from calomel.engine import CanvasState, Constraint, Result, SamplingParams
    from calomel.prompts.renderer import PromptRenderer

Kind = Literal["fill", "edit"]
FinishReason = Literal["stop", "length", "deadline", "unlikely"]

# Changes whenever an older client or server would misread the other.
PROTOCOL_VERSION = 1

# The maker of candidates on the model's side; drafts bring their own names.
CANVAS = "canvas"

# The embedded model was trained on contexts of 512 tokens; a cold context of 8K takes seconds on a CPU (`bench speed`).
DEFAULT_CONTEXT: Final = 2048

# The longest answer of the published API.
MAX_TOKENS: Final = 8192
# More positions than any model that these prompts are made for; a model's own bound is applied behind it.
MAX_CONTEXT: Final = 1 << 20
# The same as in the published API's route: what matching costs nothing for.
MAX_STOPS: Final = 16
MAX_STOP_CHARACTERS: Final = 256
# Each is read by the model before anything is answered; more than a handful would cost more than they are worth.
MAX_DRAFTS: Final = 16
# More than the largest region has.
MAX_DRAFT_CHARACTERS: Final = 8192
# Nobody waits ten minutes for a suggestion.
MAX_DEADLINE: Final = 600.0
_MAX_CANDIDATES: Final = 64

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Tokens = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]
_Context = Annotated[int, Meta(ge=1, le=MAX_CONTEXT)]
_Name = Annotated[str, Meta(max_length=256)]
_Numbers = Annotated[tuple[float, ...], Meta(max_length=MAX_TOKENS)]


@dataclass(frozen=True, slots=True)
class Draft:
    """A text that the editor's side thinks of, for the model to judge.

    Attributes:
        text: what the region could become, or what could stand at the hole.
        maker: who thought of it, as in `rename`.
    """

    text: Annotated[str, Meta(max_length=MAX_DRAFT_CHARACTERS)]
    maker: Annotated[str, Meta(min_length=1, max_length=256)]


@dataclass(frozen=True, slots=True)
class CompleteRequest:
    """One question.

    Attributes:
        kind: `fill` puts text between prefix and suffix, `edit` rewrites the region.
        parts: what the model sees.
        max_tokens: bound on the answer.
        min_tokens: the model may not end before so many; 1 when the user asked, 0 when silence is an answer.
        stop: the answer ends before the first of these strings.
        max_context: tokens of prompt at most; what does not fit is left out, least valuable part first.
        deadline: seconds from now after which what is known is returned; None for no bound.
        drafts: texts that compete with the model's own, likeliest first.
        own: an `edit` also wants texts of the model's own; without, it only judges the drafts, which takes a third of
            the time.
        floor: nats; the model's own text is given up, with reason `unlikely`, once the log-probabilities of its tokens
            sum to less; None where any text is wanted.
        ahead: nothing is answered: the prompt is encoded while nobody waits for anything else, so that the next
            question behind it waits for less. Of a model that `ModelInfo.reads_ahead` alone.
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


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a client wants tokens to be drawn; the names and the defaults are those of the engine's `SamplingParams`."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None

    def params(self) -> SamplingParams:
        """For the engine, which imports torch."""
        from calomel.engine import SamplingParams

        return SamplingParams(**asdict(self))


@dataclass(frozen=True, slots=True)
class FillRequest(CompleteRequest):
    """A hole, and how the engine is to fill it; none of this crosses the wire.

    Attributes:
        sampling: None for the most probable tokens.
        policy: a reveal policy of the engine; None for the default.
        max_steps: denoising steps per canvas; None for the default.
        canvas_lengths: candidate canvas lengths; None for the default.
        constraint: what the answer may be, see `Filler.grammars`; it takes as many steps as it needs then.
        whole_word: the model is asked from the beginning of the word that the cursor stands in, and its answer goes on
            with what is there of it. A checkpoint of our own alone, and not with a constraint.
        recall: what stands elsewhere between the same text may be the answer, where it is likelier right than the
            model's own; not with a temperature, penalties, a `policy` or a constraint.
        fitted: what does not fit the hole is cut off the answer, see `calomel.suggest.fitting`; not with a constraint,
            and not where more than one token is asked for.
    """

    sampling: SamplingParams | Drawing | None = None
    policy: str | None = None
    max_steps: int | None = None
    canvas_lengths: tuple[int, ...] | None = None
    constraint: Constraint | None = None
    whole_word: bool = True
    recall: bool = True
    fitted: bool = False

    @property
    def hole(self) -> HoleText | None:
        """The text around the hole, where the answer has to fit it."""
        if not self.fitted or self.constraint is not None or self.min_tokens > 1:
            return None
        return hole_text(self.parts.prefix, self.parts.suffix, self.parts.path)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer of the model, with the engine's raw signals.

    Attributes:
        text: what to put into the hole, or what the region becomes.
        log_probs: of each token when it was revealed.
        entropies: in nats, of each token's distribution when it was revealed.
        end_log_prob: of the end token; None when the answer was cut.
        finish_reason: `stop` for the end token or a stop string; `unlikely` where `CompleteRequest.floor` cut it.
        steps: denoising steps.
        length_scores: canvas length to its score, when lengths were probed.
        maker: `canvas`, or the maker of the draft.
        log_prob: exact causal log-probability of the text and the end behind it (of a draft that was cut, of what is
            left of it); None where it is not known.
        keep_log_prob: the same of leaving everything as it is.
    """

    text: str
    log_probs: _Numbers = ()
    entropies: _Numbers = ()
    end_log_prob: float | None = None
    finish_reason: FinishReason = "stop"
    steps: _Count = 0
    length_scores: tuple[tuple[_Tokens, float], ...] = ()
    maker: _Name = CANVAS
    log_prob: float | None = None
    keep_log_prob: float | None = None

    @classmethod
    def of(cls, result: Result, text: str, kept: int | None = None) -> Candidate:
        """The model's own `text`; of an answer that was cut, only the first `kept` tokens count."""
        cut = kept is not None and kept < len(result.ids)
        return cls(
            text,
            result.log_probs[:kept],
            result.entropies[:kept],
            None if cut else result.end_log_prob,
            result.finish_reason,
            result.steps,
            result.length_scores,
        )

    @property
    def log_ratio(self) -> float | None:
        """How much likelier, in nats, this text is than leaving everything as it is; None where that is not known."""
        if self.log_prob is None or self.keep_log_prob is None:
            return None
        return self.log_prob - self.keep_log_prob

    @property
    def mean_log_prob(self) -> float:
        """Mean reveal log-probability, end token included; minus infinity without any token."""
        scores = [*self.log_probs, *([] if self.end_log_prob is None else [self.end_log_prob])]
        return sum(scores) / len(scores) if scores else float("-inf")


@dataclass(frozen=True, slots=True)
class Timings:
    """Where the time of an answer went, in seconds, as the side that computed it saw it."""

    queued: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class CompleteAnswer:
    """Candidates, best first. None of them: `reason` says why.

    Attributes:
        candidates: best first.
        reason: why there is none; None when there is one.
        context_tokens: of the prompt.
        cached_tokens: of them, those served from the prefix cache.
        model: id of the model that answered.
        judged: the model can tell how likely a given text is; where not, drafts come with no likelihood, last.
    """

    candidates: Annotated[tuple[Candidate, ...], Meta(max_length=_MAX_CANDIDATES)]
    reason: _Name | None = None
    context_tokens: _Count = 0
    cached_tokens: _Count = 0
    model: _Name = ""
    timings: Timings = field(default_factory=Timings)
    judged: bool = True


@dataclass(frozen=True, slots=True)
class Fill:
    """A filled hole.

    Attributes:
        text: what to insert; prefix + text + suffix is byte-exact.
        finish_reason: `stop` for the end token or a stop string, `length` for `max_tokens`, `deadline`.
        confidence: geometric mean of the probabilities of the text's tokens when they were revealed, the end token's
            too if it ended the answer; 0 to 1. Of a recalled text the probability that it is right.
        seconds: from the request to the answer.
        result: the engine's own account.
        trimmed: the prompt was longer than the model was let read; what is far from the hole was left out.
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


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the loaded model can do.

    Attributes:
        id: as shown to people.
        weights: short hash of the weights file.
        kinds: what it was trained for.
        max_context: its positions.
        default_context: the budget that its benches support on this device.
        tokenizer: path of its `tokenizer.json` when it lies on this machine; None elsewhere.
        version: of the Calomel that runs it.
        region: how much it may rewrite at once.
        reads_ahead: what was encoded for one question serves the next one.
    """

    id: _Name
    weights: _Name
    kinds: tuple[Kind, ...]
    max_context: _Context
    default_context: _Context
    tokenizer: Annotated[str, Meta(max_length=4096)] | None
    version: _Name
    region: RegionBounds = field(default_factory=RegionBounds)
    reads_ahead: bool = False


class CompleterError(Exception):
    """The model could not answer. `code` is for counting, the message for people; neither quotes the user's text.

    Codes: `unreachable`, `loading`, `overloaded`, `timeout`, `refused`, `failed`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Completer(Protocol):
    """A model, wherever it runs. Cancelling an awaiting task cancels the work behind it."""

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Raises CompleterError."""

    async def info(self) -> ModelInfo:
        """What the model can do; waits until it is loaded. Raises CompleterError."""

    async def aclose(self) -> None:
        """Let go of connections and processes that this object owns."""


def cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """`text` up to the first of `stops`, and whether one was found. An empty stop string never matches."""
    found = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return (text[: min(found)], True) if found else (text, False)


def settled(text: str, stops: Sequence[str]) -> str:
    """The part of a growing `text` that no stop string can still take back."""
    longest = 0
    for stop in stops:
        for size in range(min(len(stop) - 1, len(text)), longest, -1):
            if text.endswith(stop[:size]):
                longest = size
                break
    return text[: len(text) - longest]


def settled_ids(state: CanvasState, most: int | None = None, end: int | None = None) -> Sequence[int]:
    """The beginning of an answer that is revealed without a gap: at most `most` tokens, up to the token `end`."""
    count = next((at for at, known in enumerate(state.revealed) if not known), len(state.ids))
    ids = state.ids[:count][:most]
    return ids[: ids.index(end)] if end in ids else ids


@dataclass(frozen=True, slots=True)
class Ending:
    """An answer is over with the first stop string, or when its own form says so.

    Attributes:
        stop: stop strings.
        ended: whether the form says so; None where nothing but the end token does.
        read: tokens to text.
    """

    stop: tuple[str, ...]
    ended: Callable[[Sequence[int]], bool] | None = field(compare=False)
    read: Callable[[Sequence[int]], str] = field(compare=False)

    def __call__(self, ids: Sequence[int]) -> bool:
        """Whether an answer of these tokens is over."""
        if self.ended is not None and self.ended(ids):
            return True
        return bool(self.stop) and cut_at_stop(self.read(ids), self.stop)[1]


def ending(generation: GenerationConfig, stop: Sequence[str]) -> Ending | None:
    """For an answer that is made so; None where the end token alone ends it."""
    if not stop and generation.ended is None:
        return None
    return Ending(tuple(stop), generation.ended, generation.renderer.read)


def plain_ending(tokenizer: TextTokenizer, stop: Sequence[str]) -> Ending | None:
    """For an answer that is read as it is; None without stop strings."""
    return Ending(tuple(stop), None, tokenizer.decode) if stop else None


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """For holes, or for regions.

    Attributes:
        renderer: writes the prompts and reads the answers.
        policy: a reveal policy of the engine.
        max_steps: denoising steps per canvas.
        canvases: canvas lengths; with more than one, the length probe chooses.
        sampling: None for the most probable tokens.
        ended: whether an answer is over although no end token has come; None where nothing else ends one.
        blind: of regions: the model does not see what stands there.
    """

    renderer: PromptRenderer
    policy: str
    max_steps: int
    canvases: tuple[int, ...]
    sampling: SamplingParams | None = None
    ended: Callable[[Sequence[int]], bool] | None = None
    blind: bool = False

    def lengths(self, longest: int, max_tokens: int) -> tuple[int, ...]:
        """The canvas lengths for an answer of `max_tokens` and its end, none longer than `longest`; each once."""
        return tuple(dict.fromkeys(min(length, longest, max_tokens + 1) for length in self.canvases))


# Stands for a token that is not known yet: one that hardly stands in code.
UNKNOWN: Final = "\u2591"


@dataclass(frozen=True, slots=True)
class CanvasText:
    """The whole answer behind one step; it takes the place of the one before.

    Attributes:
        step: forwards of this answer so far, prefill not counted.
        text: with one `UNKNOWN` for every token that is not known yet.
        pieces: the same, token by token; a character that goes over tokens is shown as U+FFFD.
        revealed: of each token, whether it is there to stay.
    """

    step: int
    text: str
    pieces: tuple[str, ...] = ()
    revealed: tuple[bool, ...] = ()


def canvas_text(state: CanvasState, tokenizer: TextTokenizer, max_tokens: int) -> CanvasText:
    """The state as text; what stands behind a revealed end token, or beyond the answer's bound, is no part of it.

    Args:
        state: as the engine recorded it.
        tokenizer: of the model.
        max_tokens: of the answer: a canvas may be longer.
    """
    ends = (at for at, token in enumerate(state.ids) if token == tokenizer.end and state.revealed[at])
    length = min(next(ends, len(state.ids)), max_tokens)
    ids, revealed = state.ids[:length], state.revealed[:length]
    known = tuple(token != tokenizer.mask for token in ids)
    return CanvasText(
        state.step,
        "".join(_runs(ids, known, tokenizer)),
        tuple(tokenizer.decode([token]) if is_known else UNKNOWN for token, is_known in zip(ids, known, strict=True)),
        tuple(shown and is_known for shown, is_known in zip(revealed, known, strict=True)),
    )


def _runs(ids: Sequence[int], known: Sequence[bool], tokenizer: TextTokenizer) -> Iterable[str]:
    """Known tokens side by side are decoded together, so that their characters are whole."""
    run: list[int] = []
    for token, is_known in zip(ids, known, strict=True):
        if is_known:
            run.append(token)
            continue
        yield tokenizer.decode(run)
        yield UNKNOWN
        run = []
    yield tokenizer.decode(run)

"""What the editor's side asks of a model, and what it gets back, wherever that model runs.

The same values cross the wire of `POST /calomel/v1/complete` (`calomel.suggest.wire`), reach an engine in the same
process (`calomel.suggest.in_process`), and come from a script in tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from calomel.prompts.parts import PromptParts, RegionBounds

Kind = Literal["fill", "edit"]
FinishReason = Literal["stop", "length", "deadline"]

# Changes whenever an older client or server would misread the other.
PROTOCOL_VERSION = 1

# Makers of candidates on the model's side; drafts bring their own names.
CANVAS = "canvas"
SEEDED = "seeded"
VERIFIED = "verified"
OWN_MAKERS = frozenset({CANVAS, SEEDED, VERIFIED})


@dataclass(frozen=True, slots=True)
class Draft:
    """A text that the editor's side thinks of, for the model to judge.

    Attributes:
        text: what the region could become, or what could stand at the hole.
        maker: who thought of it, as in `rename`.
    """

    text: str
    maker: str


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
        background: warms a cache or looks ahead; waits for every interactive request.
        drafts: texts that compete with the model's own, likeliest first.
        own: an `edit` also wants texts of the model's own; without, it only judges the drafts, which takes a third of
            the time.
    """

    kind: Kind
    parts: PromptParts
    max_tokens: int = 64
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    max_context: int = 2048
    deadline: float | None = None
    background: bool = False
    drafts: tuple[Draft, ...] = ()
    own: bool = True


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer of the model, with the engine's raw signals.

    Attributes:
        text: what to put into the hole, or what the region becomes.
        log_probs: of each token when it was revealed.
        entropies: in nats, of each token's distribution when it was revealed.
        end_log_prob: of the end token; None when the answer was cut.
        finish_reason: `stop` for the end token or a stop string.
        steps: denoising steps.
        length_scores: canvas length to its score, when lengths were probed.
        maker: `canvas`, `seeded` (a canvas that began as the current text), `verified` (the current text, read again
            from left to right and put right where the causal mode differs), or the maker of the draft.
        log_prob: exact causal log-probability of the text and the end behind it (of a draft that was cut, of what is
            left of it); None where it is not known.
        keep_log_prob: the same of leaving everything as it is.
    """

    text: str
    log_probs: tuple[float, ...] = ()
    entropies: tuple[float, ...] = ()
    end_log_prob: float | None = None
    finish_reason: FinishReason = "stop"
    steps: int = 0
    length_scores: tuple[tuple[int, float], ...] = ()
    maker: str = CANVAS
    log_prob: float | None = None
    keep_log_prob: float | None = None

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

    candidates: tuple[Candidate, ...]
    reason: str | None = None
    context_tokens: int = 0
    cached_tokens: int = 0
    model: str = ""
    timings: Timings = field(default_factory=Timings)
    judged: bool = True


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
    """

    id: str
    weights: str
    kinds: tuple[Kind, ...]
    max_context: int
    default_context: int
    tokenizer: str | None
    version: str
    region: RegionBounds = field(default_factory=RegionBounds)


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

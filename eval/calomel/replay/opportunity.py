"""What a replay records: each chance to suggest something, what was suggested, and what the person would have done.

The journal of a run and the reports hold them as JSON made by `calomel.report.result.CONVERTER`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from calomel.infer.completer import Kind
from calomel.prompts.parts import Edit
from calomel.replay.events import Checks, LogKind, Problem
from calomel.selectivity.sample import Reaction, Sample
from calomel.server.upstream import Upstream
from calomel.workspace.settings import Aggressiveness

Latency = Literal["measured"] | float


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What all logs of a run have in common.

    Attributes:
        model: checkpoint folder; None for the shipped one.
        device: cpu, cuda, cuda:N or mps.
        threads: of each engine.
        upstream: another server, whose model answers; None for an engine of our own.
        latency: seconds per answer, or those that answers really take.
        seed: of all random draws.
        aggressiveness: of the gate.
        kinds: which kinds to ask for; None for those the model was trained for.
        limit_minutes: of each log's time; None for all of it.
        samples: show nothing, and keep every candidate with what the person would have done about it.
        open_files: play within the log's package, whose other files are on the disk, so many of them open; None for
            the log alone.
        debounce_seconds: after a keystroke; None for the suggester's own, learned from the rhythm of typing.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    upstream: Upstream | None = None
    latency: Latency = "measured"
    seed: int = 0
    aggressiveness: Aggressiveness = "balanced"
    kinds: tuple[Kind, ...] | None = None
    limit_minutes: float | None = None
    open_files: int | None = None
    debounce_seconds: float | None = None
    samples: bool = False

    @property
    def fixed_latency(self) -> float | None:
        """Seconds; None when latency is measured."""
        return None if self.latency == "measured" else float(self.latency)


SuggestionKind: TypeAlias = Literal["fill", "edit"]


Ending: TypeAlias = Literal["typed_on", "taken", "left", "end_of_log"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the simulated user would have done with a suggestion.

    Attributes:
        outcome: in a word.
        before: the lines that it changes, as they were.
        after: the same lines with the suggestion.
        expected: the same lines as the person left them, at the horizon of `person.py`; None when unknown, since the
            log ends or the document was closed before.
        accepted_characters: of the whole suggestion, or of the accepted part.
        saved_characters: those of them that the person would have had to type, less the key that accepts; white space
            that editors insert at the beginning of a line does not count.
        kept: whether the accepted text was still there after a minute; None when nothing was accepted or unknown.
        visible_seconds: until the person typed on, moved away, or accepted it; `ending` says which.
        until: position in the events after the change that completed the accepted text in the person's own text; the
            moment's own when nothing was accepted.
        given: seconds of the log's clock at that change; nothing else would have been seen in the document before.
            None when nothing was accepted.
    """

    outcome: Reaction
    before: str
    after: str
    expected: str | None
    accepted_characters: int = 0
    saved_characters: int = 0
    kept: bool | None = None
    visible_seconds: float = 0.0
    ending: Ending = "end_of_log"
    until: int = 0
    given: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Verdict):
    """A suggestion, ours or the recorded assistant's, and what became of it.

    Attributes:
        edits: in code points of the document's text at that moment.
        source: `calomel` or the recorded assistant's name.
        confidence: 0 to 1, how likely an edit is right, or `exp` of the mean log-probability of the revealed tokens;
            None for an assistant that reports none.
        signals: numbers about it by name, from before the decision.
        alternatives: what a scenario calls right in place of `before`; None among them: silence.
        maker: who proposed it, among the candidates that the model judged; empty if unknown.
    """

    edits: tuple[Edit, ...]
    source: str
    confidence: float | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    alternatives: tuple[str | None, ...] = ()
    maker: str = ""


@dataclass(frozen=True, slots=True)
class Opportunity:
    """A moment at which an assistant may speak.

    Attributes:
        log: its name.
        entry: of the log that led to it.
        time: seconds of the log's clock.
        path: of the document.
        language_id: of the document.
        kind: a text for the cursor, or a next edit.
        silence: why nothing was shown; None when something was.
        candidate: what was, or would have been, suggested; also set when only the gate held it back.
        shown: whether the person saw it.
        latency_ms: from the question to the answer, debounce included: what a person waits for.
        computed_tokens: prompt tokens that the model had to encode.
        cached_tokens: prompt tokens that were cached.
        model_ms: the part of `latency_ms` that the model took; 0 when it was not asked.
        steps: forwards of the engine that were not context alone; 0 where not counted.
        rows: of all its forwards.
        real_outcome: what the recorded person really did with a recorded offer: `accepted`, `partly`, or nothing.
        name: of a scenario's question.
        makers: of all proposals, each once, sorted by name.
    """

    log: str
    entry: int
    time: float
    path: str
    language_id: str
    kind: SuggestionKind
    silence: str | None
    candidate: Shown | None
    shown: bool
    latency_ms: float = 0.0
    computed_tokens: int = 0
    cached_tokens: int = 0
    model_ms: float = 0.0
    steps: int = 0
    rows: int = 0
    real_outcome: str = ""
    name: str = ""
    makers: tuple[str, ...] = ()


@dataclass(slots=True)
class LogResult:
    """The result of replaying one log.

    Attributes:
        log: its name.
        kind: of its format.
        seconds: from its first event to its last.
        typed_characters: that the person typed by hand: inserted by changes of cause `typed`.
        opportunities: in their order.
        recorded: offers of the recorded assistant, judged by the same simulated user.
        real_accepts: distinct offers of the recorded assistant that the person really accepted whole.
        real_offers: distinct offers of the recorded assistant.
        problems: of the log.
        checks: of the log's own hashes.
        active_minutes: minutes in which the person typed at all; rates per minute refer to them.
        typed_on: questions that ended when the person typed on during the debounce; not opportunities.
        taken: questions that were not asked, since the person had accepted a suggestion and was writing its text.
        repeated: held-back suggestions that the person was typing along with; each counts only at its first appearance.
        samples: every candidate that was judged, if they were asked for.
        text_right: the documents end with the texts that the log ends with, in the replay's own workspace.
        error: why the replay stopped before the end; empty when it did not.
    """

    log: str
    kind: LogKind
    seconds: float = 0.0
    typed_characters: int = 0
    opportunities: list[Opportunity] = field(default_factory=list)
    recorded: list[Opportunity] = field(default_factory=list)
    real_accepts: int = 0
    real_offers: int = 0
    problems: list[Problem] = field(default_factory=list)
    checks: Checks = field(default_factory=Checks)
    active_minutes: float = 0.0
    typed_on: int = 0
    taken: int = 0
    repeated: int = 0
    samples: list[Sample] = field(default_factory=list)
    text_right: bool = True
    error: str = ""

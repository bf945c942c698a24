"""Next edits for clients that send their last few edits with every request: these are joined to a growing stream.

A stream that lost its start with every request would never hit the prefix cache.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from calomel.code.languages import grammar_of
from calomel.context.builder import ContextBuilder
from calomel.context.window import EstimateCounter
from calomel.engine import DeadlineExceededError
from calomel.infer.completer import Complete, CompleteAnswer, CompleteRequest, CompleterError, ModelInfo
from calomel.infer.fitting import splits_word
from calomel.infer.in_process import answer
from calomel.prompts.edit_prompt import EditPrompt, same_file
from calomel.prompts.parts import Hunk
from calomel.suggest.candidates import CandidateSource, context_tokens
from calomel.suggest.judging import Answered, Judged, SuggestionFilter, better, shows
from calomel.suggest.recent import past_of
from calomel.suggest.search import next_edits
from calomel.suggest.silence import SilenceReason
from calomel.suggest.snapshot import Snapshot, Trigger
from calomel.workspace.documents import Document
from calomel.workspace.edits import TextEdit, apply, edits_of
from calomel.workspace.privacy import secret_pattern
from calomel.workspace.secrets import SecretFinder
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.workspace import Situation


def named(prompt: EditPrompt) -> EditPrompt:
    """The prompt with its own edits under the file's path: clients use both the bare name and the whole path."""
    path = prompt.path
    if path is None:
        return prompt
    return replace(
        prompt, edits=tuple(replace(each, path=path) if same_file(each.path, path) else each for each in prompt.edits)
    )


def readable(prompt: EditPrompt) -> EditPrompt:
    """The prompt without files that hold secrets by their names: no `.env`, no key."""
    return replace(
        prompt,
        edits=tuple(each for each in prompt.edits if each.path == prompt.path or names_no_secret(each.path)),
        # A client's first snippet is its best one; our best one comes last, next to the file.
        related=tuple(each for each in reversed(prompt.related) if names_no_secret(each.path)),
    )


def names_no_secret(path: str) -> bool:
    """Whether a file that a client shows beside its own may be shown, by its name."""
    return secret_pattern(Path(path)) is None


# Characters considered on either side of a region: all that a model reads, and more than most files have.
_NEAR: Final = 131_072
# Seconds between two pieces of a long text that is searched for secrets: a turn for event loop and engine.
_PAUSE: Final = 0.001
# Clients ask when something was just typed; none says how long ago.
_SINCE_EDIT: Final = 0.5


@dataclass(frozen=True, slots=True)
class ModelWork:
    """The model's work for one request, over all of its questions: tokens, denoising steps, seconds."""

    context_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    steps: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, answers: Sequence[CompleteAnswer]) -> ModelWork:
        """The sum over answers; tokens and steps are those of the first candidates."""
        first = [each.candidates[0] for each in answers if each.candidates]
        return cls(
            sum(each.context_tokens for each in answers),
            sum(each.cached_tokens for each in answers),
            sum(len(each.log_probs) for each in first),
            sum(each.steps for each in first),
            sum(each.timings.total for each in answers),
        )


@dataclass(frozen=True, slots=True)
class RegionAnswer:
    """What a region becomes.

    Attributes:
        text: of the region; unchanged if there is nothing to offer.
        decisions: what is offered, best first; empty for a silence.
        edits: of the file that the client sent, sorted and not adjacent.
        reason: why there is nothing; None if there is something.
        work: what it took.
    """

    text: str
    decisions: tuple[Judged, ...] = ()
    edits: tuple[TextEdit, ...] = ()
    reason: SilenceReason | None = None
    work: ModelWork = field(default_factory=ModelWork)


class EditService:
    """Answers requests for next edits with one model. Used from one event loop.

    Args:
        filter: decides which proposals are offered; shared by all requests.
        context: limit of prompt tokens; None for what the model is quick with.
    """

    def __init__(
        self,
        filter: SuggestionFilter,  # noqa: A002 (what it is)
        *,
        context: int | None = None,
    ) -> None:
        self.filter = filter
        self._context = context
        self._builder = ContextBuilder(EstimateCounter())
        self._streams = Streams()
        self._finder = SecretFinder(partial(time.sleep, _PAUSE))

    async def rewrite(
        self, complete: Complete, info: ModelInfo, prompt: EditPrompt, *, client: str = "", max_tokens: int = 64
    ) -> RegionAnswer:
        """What the region of `prompt` becomes; cancelling the task cancels the work.

        Args:
            complete: asks the model.
            info: what it can do.
            prompt: what the client sent.
            client: name; one client's text is never put into another's prompt.
            max_tokens: limit of text for the cursor.

        Raises:
            EngineError: the engine refused or failed.
        """
        self.filter.know(info)
        shown = readable(named(_near(prompt)))
        done: list[CompleteAnswer] = []

        async def ask(request: CompleteRequest) -> CompleteAnswer:
            done.append(await answer(complete, info, request))
            return done[-1]

        source = CandidateSource(self._builder, ask, self.filter, shared=True)
        snapshot = await self._snapshot(shown, info, client, max_tokens)
        try:
            answered = await _look(source, snapshot, fills=shown.cursor is not None)
        except DeadlineExceededError:
            # An edit that comes too late is not an error: the user types on.
            answered = [SilenceReason.TIMEOUT]
        except CompleterError as error:
            if error.code != "timeout":
                raise
            answered = [SilenceReason.TIMEOUT]
        decisions = tuple(each for each in answered if isinstance(each, Judged) and each.reason is None)
        if not decisions:
            silent = answered[0]
            reason = silent.reason if isinstance(silent, Judged) else silent
            return RegionAnswer(shown.region, reason=reason, work=ModelWork.of(done))
        edits = tuple(sorted(edit for each in decisions for edit in edits_of(each.edits)))
        start = len(shown.prefix)
        moved = [TextEdit(a - start, b - start, new) for a, b, new in edits]
        return RegionAnswer(apply(shown.region, moved), decisions, edits, work=ModelWork.of(done))

    async def _snapshot(self, shown: EditPrompt, info: ModelInfo, client: str, max_tokens: int) -> Snapshot:
        path, key = shown.path, f"{client}\0{shown.path or ''}"
        text = shown.prefix + shown.region + shown.suffix
        offset = len(shown.prefix) + (shown.cursor or 0)
        stream = self._streams.follow(key, shown.edits)
        past = await asyncio.to_thread(past_of, text, shown.edits, path)
        document = Document(key, "", None, text, path)
        syntax = SyntaxTrees()
        syntax.opened(document)
        # Yield before and after the parse: nobody else changes this document.
        await asyncio.sleep(0)
        await syntax.parse(document)
        await asyncio.sleep(0)
        own = tuple(hunk for hunk in shown.edits if hunk.path == path)
        region = len(shown.prefix), len(shown.prefix) + len(shown.region)
        return Snapshot(
            situation=Situation(
                uri=key,
                path=path,
                language_id=language_of(path),
                text=text,
                offset=offset,
                hunks=stream.hunks,
                hops=stream.hops,
                related=shown.related,
            ),
            trigger=Trigger.EDIT,
            info=info,
            path=path,
            recent=past.edited,
            past=past,
            own=own,
            hunks=shown.edits,
            since_edit=_SINCE_EDIT if shown.edits else None,
            decisions=(0, 0),
            max_tokens=max_tokens,
            context_tokens=context_tokens(info, self._context, max_tokens),
            region=info.region,
            place=syntax.in_comment_or_string(document, offset) or "code",
            code=syntax.snapshot(document),
            within=region,
            # Searching megabytes takes seconds, for which others must not wait.
            secrets=await asyncio.to_thread(self._finder.values, text),
        )


async def _look(source: CandidateSource, snapshot: Snapshot, *, fills: bool) -> list[Answered]:
    """Everything worth offering, best first; else the best reason why there is nothing. `fills`: text at the cursor."""
    answers: list[Answered] = [SilenceReason.NOT_TRAINED_FOR_EDITS]
    if "edit" in snapshot.info.kinds:
        answers = await next_edits(source, snapshot)
    text, cursor, within = snapshot.text, snapshot.situation.offset, snapshot.within
    if shows(answers[0]) or not fills or splits_word(text[:cursor][-1:], text[cursor : cursor + 1]) or within is None:
        return answers
    filled = await source.fill(snapshot)
    start, end = within
    if isinstance(filled, Judged) and not all(start <= edit.start and edit.end <= end for edit in filled.edits):
        filled = SilenceReason.WRONG_REGION
    return [better(filled, answers[0])]


def _near(prompt: EditPrompt) -> EditPrompt:
    """The prompt without what is far from its region, in whole lines where there are any."""
    prefix, suffix = prompt.prefix, prompt.suffix
    if len(prefix) > _NEAR:
        first = len(prefix) - _NEAR
        prefix = prefix[max(first, prefix.find("\n", first) + 1) :]
    if len(suffix) > _NEAR:
        last = suffix.rfind("\n", 0, _NEAR) + 1
        suffix = suffix[: last or _NEAR]
    return replace(prompt, prefix=prefix, suffix=suffix)


def language_of(path: str | None) -> str:
    """The language id that editors give a file of this name; empty if its grammar is unknown."""
    grammar = None if path is None else grammar_of(None, path)
    return "" if grammar is None else grammar.ids[0]


_KEPT: Final = 256
_LONGEST: Final = 64


@dataclass(frozen=True, slots=True)
class Stream:
    """Edits, oldest first. While `hops` is the same, edits are only appended."""

    hunks: tuple[Hunk, ...] = ()
    hops: int = 0


class Streams:
    """The streams of the last clients and files, by key."""

    def __init__(self) -> None:
        self._streams: OrderedDict[str, Stream] = OrderedDict()

    def follow(self, key: str, hunks: tuple[Hunk, ...]) -> Stream:
        """The stream of `key` extended to end with `hunks`, the edits of the current request."""
        before = self._streams.get(key, Stream())
        stream = _joined(before, hunks)
        self._streams[key] = stream
        self._streams.move_to_end(key)
        while len(self._streams) > _KEPT:
            self._streams.popitem(last=False)
        return stream


def _joined(stream: Stream, hunks: tuple[Hunk, ...]) -> Stream:
    for first in range(len(stream.hunks)):
        rest = stream.hunks[first:]
        if len(rest) <= len(hunks) and hunks[: len(rest)] == rest:
            grown = (*stream.hunks[:first], *hunks)
            if len(grown) <= _LONGEST:
                return Stream(grown, stream.hops)
            break
    return Stream(hunks, stream.hops + 1)

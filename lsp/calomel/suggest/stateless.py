"""The edits of clients that send the last few with every request, put together to a stream that only grows.

A stream that loses its beginning with every request would never be found in the cache.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from calomel.context.budget import EstimateCounter
from calomel.context.builder import ContextBuilder
from calomel.prompts.edit_prompt import EditPrompt, same_file
from calomel.prompts.parts import Excerpt, Hunk, PromptParts, region_around
from calomel.suggest.asker import CandidateSource, context_tokens
from calomel.suggest.completer import CompleteAnswer, CompleteRequest, ModelInfo
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.edit import Planned, TextEdit, apply, edits_of
from calomel.suggest.fitting import splits_word
from calomel.suggest.in_process import Fills, answer
from calomel.suggest.judging import Answered, Found, Held, SuggestionFilter, better
from calomel.suggest.locations import continuations
from calomel.suggest.question import Question, Trigger
from calomel.suggest.recent import Past, past_of
from calomel.suggest.silence import SilenceReason
from calomel.workspace.documents import Document
from calomel.workspace.languages import grammar_of
from calomel.workspace.secrets import SecretFinder
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.workspace import Situation


@dataclass(frozen=True, slots=True)
class Frame:
    """One request, secrets masked but for `original`.

    Attributes:
        path: of the file, as prompts name it; None when nobody tells.
        original: the file as the client shows it.
        text: the same with every character of a secret replaced; the same length.
        start: where the region begins in it.
        end: where the region ends.
        cursor: offset in the text; None when the client shows none.
        hunks: the last edits, oldest first, under the file's own path where they are its own.
        related: excerpts of other files, the most useful one last.
        past: what the edits of this file did.
    """

    path: str | None
    original: str
    text: str
    start: int
    end: int
    cursor: int | None
    hunks: tuple[Hunk, ...]
    related: tuple[Excerpt, ...]
    past: Past

    @property
    def region(self) -> str:
        """The region as the client sent it."""
        return self.original[self.start : self.end]


def frame(prompt: EditPrompt, mask: Callable[[str], str]) -> Frame:
    """The frame of a prompt; `mask` hides secrets and keeps lengths."""
    original = prompt.prefix + prompt.region + prompt.suffix
    start = len(prompt.prefix)
    hunks = tuple(_named(hunk, prompt.path) for hunk in prompt.edits)
    return Frame(
        path=prompt.path,
        original=original,
        text=mask(original),
        start=start,
        end=start + len(prompt.region),
        cursor=None if prompt.cursor is None else start + prompt.cursor,
        hunks=tuple(replace(hunk, before=mask(hunk.before), after=mask(hunk.after)) for hunk in hunks),
        # A client's first snippet is its best one; ours stands last, next to the file.
        related=tuple(replace(excerpt, text=mask(excerpt.text)) for excerpt in reversed(prompt.related)),
        past=past_of(original, hunks, prompt.path),
    )


def _named(hunk: Hunk, path: str | None) -> Hunk:
    """The hunk under the file's own name: clients call it by its bare name here and by its whole path there."""
    if path is None or hunk.path == path:
        return hunk
    return replace(hunk, path=path) if same_file(hunk.path, path) else hunk


# Places elsewhere in the region that one request looks at; an editor's question looks at as many.
_PLACES: Final = 2
# Characters on either side of a region that are looked at: all that a model reads, and more than most files have.
_NEAR: Final = 131_072
# Of the engine, and of an asker that waited long enough.
_LATE: Final = frozenset({"deadline_exceeded", "timeout"})
# Seconds between two pieces of a long text in which secrets are looked for: event loop and engine have their turn.
_PAUSE: Final = 0.001
# Clients ask when something has just been typed; none says how long ago.
_SINCE_EDIT: Final = 0.5


@dataclass(frozen=True, slots=True)
class Work:
    """What the model did for one request, over all of its questions: tokens, denoising steps, seconds."""

    context_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    steps: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RegionAnswer:
    """What a region becomes.

    Attributes:
        text: of the region; as it was when there is nothing to offer.
        found: what is offered, best first; none of them when silent.
        edits: of the file that the client shows, sorted and apart.
        reason: why there is nothing; None when there is something.
        work: what it took.
    """

    text: str
    found: tuple[Found, ...] = ()
    edits: tuple[TextEdit, ...] = ()
    reason: SilenceReason | None = None
    work: Work = field(default_factory=Work)


class EditRoom:
    """Answers requests for next edits with one model. Used from one event loop.

    Args:
        judging: decides about what is proposed; shared by all requests.
        context: tokens of a prompt at most; None for what the model is quick with.
    """

    def __init__(self, judging: SuggestionFilter, *, context: int | None = None) -> None:
        self.judging = judging
        self.secrets = SecretFinder(partial(time.sleep, _PAUSE))
        self._context = context
        self._builder = ContextBuilder(EstimateCounter())
        self._streams = Streams()

    async def rewrite(
        self, filler: Fills, info: ModelInfo, prompt: EditPrompt, *, client: str = "", max_tokens: int = 64
    ) -> RegionAnswer:
        """What the region of `prompt` becomes; cancelling the task cancels the work.

        Args:
            filler: the model.
            info: what it can do.
            prompt: what the client shows.
            client: who asks; what one client showed is never put into a prompt of another.
            max_tokens: of text for the cursor.

        Raises:
            EngineError: the engine refused or failed.
        """
        self.judging.know(info)
        # Looking for secrets in megabytes takes seconds, which others do not wait for.
        shown = await asyncio.to_thread(frame, _near(prompt), self.secrets.mask)
        model = _Counted(filler, info)
        asker = CandidateSource(self._builder, model, self.judging, asyncio.sleep, alone=True)
        question = await self._question(shown, info, client, max_tokens)
        try:
            answered = await self._look(asker, question, shown, info)
        except Exception as error:
            # An edit that comes too late is none; whoever asked goes on typing.
            if getattr(error, "code", "") not in _LATE:
                raise
            return RegionAnswer(shown.region, reason=SilenceReason.TIMEOUT, work=model.work)
        found = tuple(each for each in answered if isinstance(each, Found))
        if not found:
            silent = next(each for each in answered if not isinstance(each, Found))
            reason = silent.reason if isinstance(silent, Held) else silent
            return RegionAnswer(shown.region, reason=reason, work=model.work)
        edits = tuple(sorted(edit for each in found for edit in edits_of(each.edits)))
        moved = [TextEdit(a - shown.start, b - shown.start, new) for a, b, new in edits]
        return RegionAnswer(apply(shown.region, moved), found, edits, work=model.work)

    def around(self, situation: Situation, budget: int) -> PromptParts:
        """What a model sees around a hole, cut as an editor's context is: at most about `budget` tokens."""
        return self._builder.build(situation, budget).parts

    async def _look(self, asker: CandidateSource, question: Question, shown: Frame, info: ModelInfo) -> list[Answered]:
        """Everything worth offering, best first; if there is nothing, the best reason why."""
        if "edit" not in info.kinds:
            best: Answered = SilenceReason.NOT_TRAINED_FOR_EDITS
        else:
            found, best = await self._edits(asker, question, shown)
            if found:
                return [*found]
        if shown.cursor is None or splits_word(*_around(shown.original, shown.cursor)):
            return [best]
        filled = await asker.fill(question)
        if isinstance(filled, Found) and not _within(filled.edits, shown):
            filled = SilenceReason.WRONG_REGION
        return [better(filled, best)]

    async def _edits(self, asker: CandidateSource, question: Question, shown: Frame) -> tuple[list[Found], Answered]:
        offset = question.situation.offset
        related = [excerpt.text for excerpt in shown.related]
        proposed = await asyncio.to_thread(drafts, shown.text, shown.hunks, offset, shown.path, related)
        found: list[Found] = []
        best: Answered | None = None
        asked: list[tuple[int, int]] = []
        places = await asyncio.to_thread(lambda: [*_places(question, shown, proposed)])
        for place in places:
            if any(start <= place < end for start, end in asked):
                continue
            start, end = region_around(shown.text, place, question.region)
            within = max(start, shown.start), min(end, shown.end)
            asked.append(within)
            situation = replace(question.situation, offset=place)
            answered = await asker.rewrite(question, situation, extended=False, drafts=proposed, within=within)
            best = better(best, answered)
            if isinstance(answered, Found) and _apart(answered.edits, found):
                found.append(answered)
            if len(asked) > _PLACES:
                break
        return found, best or SilenceReason.NO_CHANGE

    async def _question(self, shown: Frame, info: ModelInfo, client: str, max_tokens: int) -> Question:
        key = f"{client}\0{shown.path or ''}"
        stream = self._streams.follow(key, shown.hunks)
        offset = shown.start if shown.cursor is None else shown.cursor
        document = Document(key, "", None, shown.text, shown.path)
        syntax = SyntaxTrees()
        syntax.opened(document)
        # Others have their turn before and behind the parse: nobody else changes this document.
        await asyncio.sleep(0)
        await syntax.parse(document)
        await asyncio.sleep(0)

        def errors(start: int, end: int, text: str) -> tuple[int, int] | None:
            return syntax.errors_after(document, start, end, text)

        return Question(
            text=shown.original,
            situation=Situation(
                uri=key,
                path=shown.path,
                language_id=language_of(shown.path),
                text=shown.text,
                offset=offset,
                revision=0,
                hunks=stream.hunks,
                hops=stream.hops,
                related=shown.related,
            ),
            trigger=Trigger.EDIT,
            recent=shown.past.edited,
            past=shown.past,
            since_edit=_SINCE_EDIT if shown.hunks else None,
            decisions=(0, 0),
            max_tokens=max_tokens,
            context_tokens=context_tokens(info, self._context, max_tokens),
            mask=self.secrets.mask,
            region=info.region,
            place=syntax.in_comment_or_string(document, offset) or "code",
            errors=errors,
        )


class _Counted:
    """The model of one request, which counts what it does. Engine errors come out as they are."""

    def __init__(self, filler: Fills, info: ModelInfo) -> None:
        self.work = Work()
        self._filler = filler
        self._info = info

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question."""
        found = await answer(self._filler, self._info, request)
        first = found.candidates[0] if found.candidates else None
        done = self.work
        self.work = Work(
            done.context_tokens + found.context_tokens,
            done.cached_tokens + found.cached_tokens,
            done.answer_tokens + (0 if first is None else len(first.log_probs)),
            done.steps + (0 if first is None else first.steps),
            done.seconds + found.timings.total,
        )
        return found

    async def info(self) -> ModelInfo:
        """What the model can do."""
        return self._info

    async def aclose(self) -> None:
        """Nothing: the model is the server's."""


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
    """The language id that editors give a file of this name; empty where its grammar is not known."""
    grammar = None if path is None else grammar_of(None, path)
    return "" if grammar is None else grammar.ids[0]


def _places(question: Question, shown: Frame, proposed: Sequence[EditDraft]) -> Iterator[int]:
    """Where to look, likeliest first, inside the region."""

    def inside(place: int) -> bool:
        return shown.start <= place <= shown.end

    if inside(question.situation.offset):
        yield question.situation.offset
    yield from (draft.start for draft in proposed if inside(draft.start) and inside(draft.end))
    own = [hunk for hunk in shown.hunks if hunk.path == shown.path]
    places = continuations(shown.text, own, question.situation.offset)
    yield from (place.start for place in places if inside(place.start))


def _apart(edits: Sequence[Planned], found: Sequence[Found]) -> bool:
    """Whether `edits` touch none of those that are offered already."""
    others = [edit for each in found for edit in each.edits]
    return all(edit.end < other.start or other.end < edit.start for edit in edits for other in others)


def _within(edits: Sequence[Planned], shown: Frame) -> bool:
    return all(shown.start <= edit.start and edit.end <= shown.end for edit in edits)


def _around(text: str, offset: int) -> tuple[str, str]:
    return text[max(0, offset - 1) : offset], text[offset : offset + 1]


_KEPT: Final = 256
_LONGEST: Final = 64


@dataclass(frozen=True, slots=True)
class Stream:
    """Edits, oldest first. While `hops` stays the same, edits are only added at the end."""

    hunks: tuple[Hunk, ...] = ()
    hops: int = 0


class Streams:
    """The streams of the last clients and files, by key."""

    def __init__(self) -> None:
        self._streams: OrderedDict[str, Stream] = OrderedDict()

    def follow(self, key: str, hunks: tuple[Hunk, ...]) -> Stream:
        """The stream of `key` that ends with `hunks`, which are what the client shows now."""
        known = self._streams.get(key, Stream())
        stream = _joined(known, hunks)
        self._streams[key] = stream
        self._streams.move_to_end(key)
        while len(self._streams) > _KEPT:
            self._streams.popitem(last=False)
        return stream


def _joined(known: Stream, hunks: tuple[Hunk, ...]) -> Stream:
    for first in range(len(known.hunks)):
        rest = known.hunks[first:]
        if len(rest) <= len(hunks) and hunks[: len(rest)] == rest:
            grown = (*known.hunks[:first], *hunks)
            if len(grown) <= _LONGEST:
                return Stream(grown, known.hops)
            break
    return Stream(hunks, known.hops + 1)

"""What of a model's text fills a hole: up to where the answer is over, and as much of it as fits.

`clean` is the only way from what a model says to what is inserted, for editors and for clients that use an answer as it
is. A clean answer repeats nothing that stands around its hole, adds no syntax error, leaves no word, string or bracket
open that the text after the hole does not close, and closes nothing that is closed there. Of several lines, the
complete ones are kept; of a single one, what comes before the first thing left open.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from threading import Lock
from typing import Final

import regex

from calomel.code.languages import grammar_of, language_by_look
from calomel.code.lines import LINE_END
from calomel.code.names import is_word
from calomel.code.scan import knows, scan
from calomel.infer.completer import CompleteRequest, FillRequest, cut_at_stop, settled
from calomel.infer.continuation import continuation
from calomel.infer.fitting import CLOSERS, is_blank, places, without_overlap
from calomel.infer.indents import needs_second_line
from calomel.infer.seams import apart, begun, parted
from calomel.selectivity.filters import fired
from calomel.selectivity.proposal import Proposal
from calomel.selectivity.syntax import closing
from calomel.workspace.documents import Document
from calomel.workspace.syntax import CodeSnapshot, SyntaxTrees

# Returns what is wrong with a text, or None.
Refuses = Callable[[str], str | None]
# Returns the syntax errors without a text and with it; None if unknown.
Counts = Callable[[str], tuple[int, int] | None]

_SYNTAX: Final = frozenset({"unbalanced", "unparsable"})
# The filters for answers to clients that have none of their own, cheapest first.
_HELD_TO: Final = (
    "prompt_marker",
    "path_line",
    "duplicate_of_suffix",
    "repeats_above",
    "repeats_below",
    "repeats_itself",
    "empty_comment",
    "unbalanced",
    "unparsable",
)
# Characters considered around a hole.
_BEFORE: Final = 24_000
_BEHIND: Final = 8_000
# Limits of the lines, and the places within one, at which cutting a text is tried.
_LINES: Final = 512
_PLACES: Final = 12
# Stands for any expression.
_NAME: Final = "x"
_LAST_WORD: Final = regex.compile(r"\w+\Z")
_ENDS_TOKEN: Final = frozenset(")]};:,\"'`")
# What a blank stands before.
_STANDS_APART: Final = re.compile(r"[^\s)\]};,:.]")


@dataclass(frozen=True, slots=True)
class Hole:
    """The text around a hole.

    Attributes:
        prefix: the text before it.
        suffix: the text after it.
        language_id: of both; empty if unknown.
        refuses: what is wrong with a text in the hole.
        breaks: which syntax error a text makes there; as `refuses` if that asks for syntax.
        counts: syntax errors: an answer that repairs the text is right; one that leaves errors may be cut further.
        judged: what is left of an answer is judged elsewhere: one of which nothing fits, or that is half a line, stays.
    """

    prefix: str
    suffix: str
    language_id: str
    refuses: Refuses = lambda _: None
    breaks: Refuses = lambda _: None
    counts: Counts = lambda _: None
    judged: bool = False


def clean(text: str, hole: Hole, *, ended: bool = True, lines: bool = False) -> str:
    """As much of an answer as fits its hole, joined to what stands around it; empty if not even its start does.

    Args:
        text: of the answer.
        hole: to fill.
        ended: the model ended the answer; otherwise its last line, or word, is incomplete.
        lines: it may go on: only the whole lines of which nothing can change any more.
    """
    whole, text = text, begun(text, hole.prefix, hole.suffix, hole.language_id)
    if is_blank(text):
        return "" if lines or not is_blank(whole) or (not hole.judged and hole.refuses(text)) else text
    ends = [match.start() for match in LINE_END.finditer(text) if not is_blank(text[: match.start()])][:_LINES]
    if lines:
        sure = len(ends) >= _SURE or not needs_second_line(whole, hole.prefix)
        # Between two words, the rest of the answer tells whether the line end stays.
        tries = [end for end in reversed(ends) if not _joins_words(text, end, hole)]
        return _fitting(text, ends, tries, hole, lines=True) if sure else ""
    half = not ended and (hole.judged or knows(hole.language_id))
    if half and ends:
        text, half = text[: ends.pop()], False  # half a line is worse than none
    overlapping = without_overlap(text, hole.suffix)
    if half and hole.judged:
        return _joined(text, len(text), hole)
    sure = not half or _ends_whole(text, hole.prefix + hole.suffix)
    tries = [len(text), len(overlapping), *reversed(ends)] if sure else []
    kept = _fitting(text, ends, tries, hole)
    return kept or (_joined(text, len(text if is_blank(overlapping) else overlapping), hole) if hole.judged else "")


# So many lines tell the indentation of the first of them.
_SURE: Final = 2


def _fitting(text: str, ends: list[int], tries: list[int], hole: Hole, *, lines: bool = False) -> str:
    """The longest start of an answer that fits, of those that end at `tries` and at places within its first line."""

    def cut(end: int) -> str:
        return _joined(text, end, hole, whole=not lines)

    why_not, why, kept = _refusal(hole), None, ""
    for end in tries:
        why = why_not(cut(end))
        if why is None:
            kept = cut(end)
            break
    if lines or (kept and (ends or not _leaves_error(hole.counts(kept)))) or why not in _SYNTAX | {None}:
        return kept
    line = text[: ends[0]] if ends else text
    # Half an answer gets no blank that the whole one did not have.
    found = [end for end in places(line, hole.language_id) if end < len(kept or line) and line.startswith(cut(end))]
    for end in found[:_PLACES]:
        if why_not(cut(end)) is None and not (kept and _leaves_error(hole.counts(cut(end)))):
            return cut(end)
    return kept


def _joined(text: str, end: int, hole: Hole, *, whole: bool = True) -> str:
    """The start of an answer as it stands before the text after the hole; `whole`: nothing more of it comes."""
    line_end = LINE_END.match(text, end) if _joins_words(text, end, hole) else None
    start = text[: end if line_end is None else line_end.end()]
    made = apart(text, start, hole.prefix, hole.suffix, hole.language_id)
    if hole.judged and not _STANDS_APART.match(hole.suffix):
        made = made.rstrip() or made
    return parted(made, hole.prefix, hole.suffix, hole.language_id, hole.breaks) if whole else made


def _joins_words(text: str, end: int, hole: Hole) -> bool:
    """Whether an answer that ends there would put a word next to the first one after the hole."""
    return is_word(hole.suffix[:1]) and is_word(text[end - 1 : end])


def _refusal(hole: Hole) -> Refuses:
    """The check of a text in the hole: what is wrong with it, or None."""
    counts, language_id = hole.counts, hole.language_id
    # Where a mere name would be valid, a text that leaves an error is wrong, not unfinished.
    name_would_do = _mends(counts(_NAME))

    def closes_twice(text: str, shorter: str) -> bool:
        return CLOSERS.issuperset(text[len(shorter) :]) and _mends(counts(shorter))

    def why_not(text: str) -> str | None:
        if is_blank(text):
            return "whitespace_only"
        if knows(language_id) and _ends_in_half_comment(text, language_id):
            return "unbalanced"
        shorter = without_overlap(text, hole.suffix)
        if shorter != text and not (_mends(counts(text)) and not closes_twice(text, shorter)):
            return "duplicate_of_suffix"
        if name_would_do and _leaves_error(counts(text)):
            return "unparsable"
        return hole.refuses(text)

    return why_not


def _ends_in_half_comment(text: str, language_id: str) -> bool:
    """Whether a text ends in a comment of its own with unclosed brackets."""
    line = LINE_END.split(text)[-1]
    last = next((each for each in reversed(list(scan(line, language_id))) if each.kind == "skipped"), None)
    if last is None or last.end < len(line) or not line.startswith(("#", "//"), last.start):
        return False
    comment = line[last.start :]
    return any(comment.count(opening) > comment.count(closer) for opening, closer in ("()", "[]", "{}"))


def _mends(counted: tuple[int, int] | None) -> bool:
    return counted is not None and counted[0] > counted[1] == 0


def _leaves_error(counted: tuple[int, int] | None) -> bool:
    return counted is not None and counted[1] > 0


def _repeated_from(text: str, suffix: str) -> int:
    """Where the end of a growing text starts that may become a repetition of `suffix`; its length if none may."""
    at = text.find(suffix[:1], max(0, len(text) - len(suffix))) if suffix else -1
    while at != -1 and not suffix.startswith(text[at:]):
        at = text.find(suffix[:1], at + 1)
    return len(text) if at == -1 else at


def _ends_whole(text: str, around: str) -> bool:
    """Whether the last word of a truncated text is complete: the text around has it, too."""
    word = _LAST_WORD.search(text)
    if word is None:
        return text[-1:].isspace() or text[-1:] in _ENDS_TOKEN
    return re.search(rf"\b{re.escape(word[0])}\b", around) is not None


def _filtered(prefix: str, suffix: str, language_id: str, *, window: bool) -> tuple[Refuses, Counts]:
    """The filters for clients that have none of their own, and the syntax errors of the text around a hole."""
    document, lock = Document("hole", language_id, None, prefix + suffix), Lock()
    at = len(prefix)
    # A window of a longer file may close what was opened above.
    held_to = tuple(name for name in _HELD_TO if not (window and name == "unparsable"))

    @cache  # parsing takes long, so it waits until it is needed
    def code() -> CodeSnapshot:
        return SyntaxTrees(parse_seconds=1.0).snapshot(document)

    def proposal(text: str) -> Proposal:
        def errors(behind: str) -> tuple[int, int] | None:
            with lock:
                return code().errors(at, at, text + behind)

        edits = ((at, at, text),)
        return Proposal("fill", document.text, edits, cursor=at, language_id=language_id, errors=errors)

    def refuses(text: str) -> str | None:
        return next(fired(proposal(text), held_to), None)

    def counts(text: str) -> tuple[int, int] | None:
        made = proposal(text)
        return made.errors(closing(made) or "")

    return refuses, counts


@lru_cache(maxsize=8)
def hole_of(prefix: str, suffix: str, path: str | None) -> Hole:
    """The hole of a client's request; cached, since an answer needs it at every step. Safe to share between threads.

    Args:
        prefix: the text before the hole.
        suffix: the text after it.
        path: of the file; None if unknown: then the language is detected from the text, if possible.
    """
    before, behind = prefix[-_BEFORE:], suffix[:_BEHIND]
    if len(before) < len(prefix):
        before = before[before.find("\n") + 1 :]
    if len(behind) < len(suffix):
        behind = behind[: behind.rfind("\n") + 1]
    grammar = language_by_look(before + behind) if path is None else grammar_of(None, path)
    language_id = "" if grammar is None else grammar.ids[0]
    window = before.lstrip("\r\n")[:1].isspace() and not (grammar is not None and grammar.indented)
    refuses, counts = _filtered(before, behind, language_id, window=window)
    return Hole(before, behind, language_id, refuses, refuses, counts)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Of the answers to one request.

    Attributes:
        request: that is answered.
        continues: the model only continues the text before the hole.
    """

    request: CompleteRequest
    continues: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether only what follows the hole tells where the answer ends."""
        request = self.request
        constrained = isinstance(request, FillRequest) and request.constraint is not None
        return self.continues and request.kind == "fill" and not constrained and request.min_tokens <= 1

    @property
    def hole(self) -> Hole | None:
        """The text around the hole, if the answer has to fit it."""
        request = self.request
        if not isinstance(request, FillRequest) or not request.fitted:
            return None
        if request.constraint is not None or request.min_tokens > 1:
            return None
        return hole_of(request.parts.prefix, request.parts.suffix, request.parts.path)

    def cut(self, text: str) -> tuple[str, bool]:
        """The text up to where the answer is over, and whether it is."""
        text, stopped = cut_at_stop(text, self.request.stop)
        end = continuation(self.request.parts).end(text) if self.goes_on else None
        return (text, stopped) if end is None else (text[:end], True)

    async def growing(self, text: str) -> str:
        """The start of a growing answer that nothing can still change; whole lines only if it has to fit its hole."""
        text, over = self.cut(text)
        if not over:
            # Where the answer of a model ends that continues a text, the next line tells.
            text = settled(text[: text.rfind("\n") + 1].rstrip() if self.continues else text, self.request.stop)
        hole = self.hole
        if hole is None:
            return text
        ended = text.rfind("\n", 0, _repeated_from(text, hole.suffix) + 1) + 1
        return await asyncio.to_thread(clean, text[:ended], hole, lines=True)

    def whole(self, text: str, *, ended: bool = True) -> tuple[str, bool]:
        """What is left of a whole answer, and whether it was over before its end; `ended`: the model ended it.

        Too slow for an event loop if it has to fit its hole.
        """
        text, over = self.cut(text)
        if self.goes_on:
            text, over = text.rstrip(), over or text[-1:].isspace()
        hole = self.hole
        return (text if hole is None else clean(text, hole, ended=over or ended)), over

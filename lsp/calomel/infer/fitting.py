"""How much of an answer fits its hole: the rest is cut off where a person would stop.

A fitting answer adds no syntax error, leaves no word, string or bracket open that the text after the hole does not
close, closes nothing that is closed there, and repeats neither the word before the hole nor the line after it. It has
the file's indentation, and a blank before a word that follows (`calomel.infer.seams`). Of several lines, the complete
ones are kept; of a single one, what comes before the first thing left open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from threading import Lock
from typing import Final

import regex

from calomel.code.languages import grammar_of, language_by_look
from calomel.code.lines import LINE_END
from calomel.code.names import is_word
from calomel.code.scan import CLOSING, has_to_go_on, knows, loose, scan
from calomel.infer.seams import indented, spaced
from calomel.selectivity.filters import fired
from calomel.selectivity.proposal import Proposal
from calomel.selectivity.syntax import closing
from calomel.workspace.documents import Document
from calomel.workspace.syntax import CodeSnapshot, SyntaxTrees


def is_blank(text: str) -> bool:
    """Whether a text is empty or white space only."""
    return not text.strip()


def changes_only_space(removed: str, text: str) -> bool:
    """Whether an edit changes nothing but white space."""
    return "".join(removed.split()) == "".join(text.split())


# Closing brackets and quotes, then at most one of : { ; , - what editors close automatically, or what ends a statement.
# The same heuristic is used by Copilot and cursortab.
_INERT: Final = re.compile(r"""\s*+[)>}\]"'`]*+\s*+[:{;,]?+\s*+""")


def line_rest(suffix: str) -> str:
    """The part of `suffix` up to the end of the cursor's line."""
    match = LINE_END.search(suffix)
    return suffix[: match.start()] if match else suffix


def is_inert(rest: str) -> bool:
    """Whether the rest of a line is only such closers, so that an answer before it may have several lines."""
    return _INERT.fullmatch(rest) is not None


def splits_word(prefix: str, suffix: str) -> bool:
    """Whether the cursor is inside a word: word characters on both sides."""
    return is_word(prefix[-1:]) and is_word(suffix[:1])


_HALF: Final = regex.compile(r"[^\W\d]\w*\Z")


def is_half_word(prefix: str, suffix: str) -> bool:
    """Whether the word before the cursor occurs nowhere else, so it is probably incomplete."""
    match = None if is_word(suffix[:1]) else _HALF.search(prefix)
    if match is None:
        return False
    other = re.compile(rf"\b{re.escape(match[0])}\b")
    return other.search(prefix, 0, match.start()) is None and other.search(suffix) is None


def within_line(text: str, rest: str) -> str:
    """`text`, cut to its first line if more than closers follow the cursor on its line."""
    if is_inert(rest):
        return text
    match = LINE_END.search(text)
    return text[: match.start()] if match else text


_CLOSING: Final = frozenset(CLOSING.values())
_QUOTES: Final = frozenset("\"'`")
# End an item or a statement, once.
_ENDS: Final = frozenset(";,")
# Fewer letters than this may be intended: "a" before "a" is not a repetition.
_MIN_LETTERS: Final = 3
_LINE_ENDS: Final = frozenset("\r\n")
_LAST_WORD_BEFORE: Final = regex.compile(r"(?<!\w)([^\W\d]\w*)(?P<space>[ \t]*)\Z")
_OWN: Final = re.compile(r"(?<!\w)((?:self|this|cls)\.)\Z")
# Words that may be doubled: `not not x`, `long long x`.
_TWICE: Final = frozenset({"not", "long"})


def without_echo(prefix: str, text: str) -> str:
    """`text` without a start that repeats the last word of `prefix`: `return` after `return` or `return `."""
    near = prefix[-200:]
    own = _OWN.search(near)
    if own is not None:
        return text.removeprefix(own[1])
    last = _LAST_WORD_BEFORE.search(near)
    if last is None or last[1] in _TWICE or (not last["space"] and len(last[1]) < _MIN_LETTERS):
        return text
    again = re.match(rf"(?:{last[1]}(?:[ \t]+|\Z))+" if last["space"] else rf"{last[1]}(?!\w)", text)
    return text if again is None else text[again.end() :]


def without_overlap(text: str, suffix: str) -> str:
    """`text` without an end that is also the start of `suffix`.

    Words are cut off if three or more letters repeat, or whole lines, or all that is left of the line. Brackets and
    quotes are cut off only if the answer closes something that it did not open, since `g()` in `f(|)` is right.
    """
    for size in range(min(len(text), len(suffix)), 0, -1):
        if text.endswith(suffix[:size]) and _repeats(text, suffix, size):
            return text[:-size]
    return _without_closers(text, suffix)


def _repeats(text: str, suffix: str, size: int) -> bool:
    shared = suffix[:size]
    behind, ahead = suffix[size : size + 1], text[len(text) - size - 1 : len(text) - size]
    if (is_word(shared[-1:]) and is_word(behind)) or (is_word(ahead) and is_word(shared[:1])):
        return False  # within a word: "print" before "printer" repeats nothing
    letters = sum(map(str.isalnum, shared))
    if letters >= _MIN_LETTERS:
        return True
    whole_lines = shared[0] in _LINE_ENDS and (not behind or behind in _LINE_ENDS or shared[-1] in _LINE_ENDS)
    if whole_lines:
        return letters > 0
    rest = line_rest(suffix)
    return any(map(str.isalnum, rest)) and shared.startswith(rest) and size < len(text)


def _without_closers(text: str, suffix: str) -> str:
    """`text` without what closes at its end what it did not open, and what follows the cursor anyway."""
    rest = line_rest(suffix).strip()
    unopened = _unopened(text)
    size = 0
    while size < min(len(rest), len(text)) and rest[size] in (_CLOSING | _QUOTES | _ENDS):
        size += 1
    for count in range(size, 0, -1):
        end = text[len(text) - count :]
        left = text[:-count]
        if end == rest[:count] and all(len(left) + at in unopened for at in range(count)):
            return text if is_blank(left) and end[0] in _ENDS else left
    return text


def _unopened(text: str) -> frozenset[int]:
    """Offsets of closing brackets and quotes that `text` did not open, and of `;` and `,` outside of any."""
    open_brackets: list[str] = []
    quote = ""
    quote_at = 0
    places: list[int] = []
    for at, character in enumerate(text):
        if quote:
            if character == quote:
                quote = ""
        elif character in _QUOTES:
            quote, quote_at = character, at
        elif character in CLOSING:
            open_brackets.append(CLOSING[character])
        elif character in _CLOSING:
            if open_brackets and open_brackets[-1] == character:
                open_brackets.pop()
            else:
                places.append(at)
        elif character in _ENDS and not open_brackets:
            places.append(at)
    if quote:
        # An unmatched quote closes the one before the cursor; brackets after it were not inside a string.
        places = [*places, quote_at, *(quote_at + 1 + at for at in _unopened(text[quote_at + 1 :]))]
    return frozenset(places)


# Returns the filter that refuses a text, or None.
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
_PIECE: Final = regex.compile(r"\w+|[^\w\s]")
_LAST_WORD: Final = regex.compile(r"\w+\Z")
_ENDS_TOKEN: Final = frozenset(")]};:,\"'`")


def fitted(
    text: str,
    prefix: str,
    suffix: str,
    language_id: str,
    refuses: Refuses,
    *,
    counts: Counts = lambda _: None,
    truncated: bool = False,
    lines: bool = False,
) -> str:
    """As much of `text` as fits between `prefix` and `suffix`; empty if not even its start does.

    Args:
        text: an answer.
        prefix: the text before the hole.
        suffix: the text after it.
        language_id: of both; empty if unknown.
        refuses: returns what is wrong with a text, or None.
        counts: of syntax errors: an answer that repairs the text is right; one that leaves errors may be cut further.
        truncated: the answer was cut at its limit, and its last word may be incomplete.
        lines: keep whole lines only.
    """
    text = indented(without_echo(prefix, text), prefix, suffix, language_id)
    if is_blank(text):
        return "" if lines or refuses(text) is not None else text

    def cut(end: int) -> str:
        return text[:end] if lines else spaced(text, text[:end], prefix, suffix, language_id)

    truncated = truncated and knows(language_id)
    ends = [match.start() for match in LINE_END.finditer(text) if not is_blank(text[: match.start()])][:_LINES]
    tries = [*reversed(ends)]
    if not lines and (not truncated or (not ends and _ends_whole(text, prefix + suffix))):
        tries = [len(text), len(without_overlap(text, suffix)), *tries]
    why_not = _refusal(suffix, language_id, refuses, counts)
    why = None
    for end in tries:
        why = why_not(cut(end))
        if why is None:
            kept = cut(end)
            break
    else:
        kept = ""
    if kept and (ends or lines or not _leaves_error(counts(kept))):
        return kept
    if lines or why not in _SYNTAX | {None}:
        return ""
    line = text[: ends[0]] if ends else text
    # Half an answer gets no blank that the whole one did not have.
    places = [end for end in _places(line, language_id) if end < len(kept or line) and line.startswith(cut(end))]
    for end in places[:_PLACES]:
        if why_not(cut(end)) is None and not (kept and _leaves_error(counts(cut(end)))):
            return cut(end)
    return kept


def _refusal(suffix: str, language_id: str, refuses: Refuses, counts: Counts) -> Refuses:
    """The check of a text before `suffix`: what is wrong with it, or None."""
    # Where a mere name would be valid, a text that leaves an error is wrong, not unfinished.
    name_would_do = _mends(counts(_NAME))

    def closes_twice(text: str, shorter: str) -> bool:
        return _CLOSING.union(_QUOTES, _ENDS).issuperset(text[len(shorter) :]) and _mends(counts(shorter))

    def why_not(text: str) -> str | None:
        if is_blank(text):
            return "whitespace_only"
        if knows(language_id) and _ends_in_half_comment(text, language_id):
            return "unbalanced"
        shorter = without_overlap(text, suffix)
        if shorter != text and not (_mends(counts(text)) and not closes_twice(text, shorter)):
            return "duplicate_of_suffix"
        if name_would_do and _leaves_error(counts(text)):
            return "unparsable"
        return refuses(text)

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


def _places(line: str, language_id: str) -> list[int]:
    """Where a line may be cut, last place first: after a word, a bracket or a string, with nothing left open.

    Empty for a line with mismatched brackets, which is wrong, not unfinished.
    """
    if not knows(language_id):
        return []
    if loose(line, language_id).brackets:
        return []
    return [end for end in reversed(list(_ends(line, language_id))) if not has_to_go_on(line[:end])]


def _ends(line: str, language_id: str) -> Iterator[int]:
    at = depth = 0
    for kind, start, end in scan(line, language_id):
        if depth == 0:
            yield from (match.end() for match in _PIECE.finditer(line, at, start))
        if kind == "bracket":
            depth = depth + 1 if line[start] in "([{" else max(0, depth - 1)
        elif kind != "skipped":
            return
        if depth == 0:
            yield end
        at = end
    if depth == 0:
        yield from (match.end() for match in _PIECE.finditer(line, at))


class HoleText:
    """The text around a hole, to fit answers into it. Safe to share between threads.

    Args:
        prefix: the text before the hole.
        suffix: the text after it.
        path: of the file; None if unknown: then the language is detected from the text, if possible.
    """

    def __init__(self, prefix: str, suffix: str, path: str | None) -> None:
        before = prefix[-_BEFORE:]
        if len(before) < len(prefix):
            before = before[before.find("\n") + 1 :]
        behind = suffix[:_BEHIND]
        if len(behind) < len(suffix):
            behind = behind[: behind.rfind("\n") + 1]
        grammar = language_by_look(before + behind) if path is None else grammar_of(None, path)
        self._prefix, self._suffix = before, behind
        self._language_id = "" if grammar is None else grammar.ids[0]
        self._document = Document("hole", self._language_id, None, before + behind)
        self._syntax = SyntaxTrees(parse_seconds=1.0)
        # Made when first needed: parsing takes long.
        self._code: CodeSnapshot | None = None
        # A text that starts indented is a window of a longer file: it may close what was opened above.
        window = before.lstrip("\r\n")[:1].isspace() and not (grammar is not None and grammar.indented)
        self._held_to = tuple(name for name in _HELD_TO if not (window and name == "unparsable"))
        self._lock = Lock()

    def fitted(self, text: str, *, truncated: bool) -> str:
        """As much of an answer as fits, see the function `fitted`."""
        with self._lock:
            return fitted(
                text,
                self._prefix,
                self._suffix,
                self._language_id,
                self._refuses,
                counts=self._counts,
                truncated=truncated,
            )

    def settled(self, text: str) -> str:
        """The whole lines at the start of a growing answer that `fitted` will keep."""
        ended = text.rfind("\n", 0, _repeated_from(text, self._suffix) + 1) + 1
        with self._lock:
            return fitted(text[:ended], self._prefix, self._suffix, self._language_id, self._refuses, lines=True)

    def _refuses(self, text: str) -> str | None:
        return next(fired(self._proposal(text), self._held_to), None)

    def _counts(self, text: str) -> tuple[int, int] | None:
        proposal = self._proposal(text)
        return proposal.errors(closing(proposal) or "")

    def _proposal(self, text: str) -> Proposal:
        at = len(self._prefix)

        def errors(behind: str) -> tuple[int, int] | None:
            code = self._code = self._code or self._syntax.snapshot(self._document)
            return code.errors(at, at, text + behind)

        return Proposal(
            kind="fill",
            text=self._document.text,
            edits=((at, at, text),),
            cursor=at,
            language_id=self._language_id,
            errors=errors,
        )


@lru_cache(maxsize=8)
def hole_text(prefix: str, suffix: str, path: str | None) -> HoleText:
    """A cached `HoleText`, since an answer needs it at every step."""
    return HoleText(prefix, suffix, path)

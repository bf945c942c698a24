"""Filters of form, which nobody's text may fail, and of doubt, which weighs as much as its source's record says.

Form is wrong whoever wrote it: a prompt's marker, a text that repeats its neighbours or was cut off. Doubt is
evidence against a suggestion: an unknown name, a syntax error, a recent edit turned back. For a model of a few million
weights it is as good as proof, for one that was trained on edits it hardly counts (`calomel.selectivity.record`).

Each filter is a pure function of a proposal, or of one of its edits. Their cases: `tests/golden/filters.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import regex
from rapidfuzz.distance import Levenshtein

from calomel.code.lines import LINE_END, above, below, columns, filled, head_of, rest_of
from calomel.code.names import is_word
from calomel.code.tokens import is_comment
from calomel.prompts.parts import Edit
from calomel.selectivity.analogy import names_neighbour
from calomel.selectivity.intent import deletes_typed, reinserts_deleted, resumes_undone, reverts_edit, unknown_name
from calomel.selectivity.proposal import Proposal
from calomel.selectivity.syntax import TRUSTED, unbalanced, unparsable


def no_change(proposal: Proposal, edit: Edit) -> bool:
    """Whether an edit writes what is there already."""
    return proposal.text[edit.start : edit.end] == edit.text


def cut_off(proposal: Proposal) -> bool:
    """Whether its end is missing.

    Half a region would delete the other half. A text at the cursor may end early once it has a whole line.
    """
    if not proposal.cut_off or proposal.kind == "edit":
        return proposal.cut_off
    return not any(new[: ending.start()].strip() for _, _, new in proposal.edits for ending in LINE_END.finditer(new))


def whitespace_only(proposal: Proposal, edit: Edit) -> bool:
    """Whether an edit changes only whitespace."""
    return "".join(proposal.text[edit.start : edit.end].split()) == "".join(edit.text.split())


# Zed's "wrong editable region" starts with this many deleted lines; and this many may be lost anywhere.
_LOST_LINES: Final = 3


def wrong_region(proposal: Proposal) -> bool:
    """Whether an edit is outside of the region, or the answer is the region shifted down by some lines.

    Such an answer deletes the region's first lines and adds others after its last ones.
    """
    if proposal.region is None or not proposal.edits:
        return False
    first, last = proposal.region
    if any(start < first or end > last for start, end, _ in proposal.edits):
        return True
    start, end, new = proposal.edits[0]
    if start > first or new.strip() or len(proposal.edits) == 1:
        return False
    at, _, added = proposal.edits[-1]
    behind = not proposal.text[at:last].strip() and added.strip() != ""
    return behind and _filled(proposal.text[start:end]) >= _LOST_LINES


def deletes_too_much(proposal: Proposal) -> bool:
    """Whether more than three filled lines are lost without replacement.

    Lines condensed into fewer ones count as lost only at the end of the region: there, the rest of an answer may be
    missing.
    """
    text = proposal.text
    lost = shortened = 0
    for start, end, new in proposal.edits:
        head, rest = head_of(text, start), rest_of(text, end)
        fewer = _filled(head + text[start:end] + rest) - _filled(head + new + rest)
        in_region = proposal.region is None or text[end : proposal.region[1]].strip() != ""
        if fewer > 0 and new.strip() and in_region:
            shortened += fewer
        else:
            lost += fewer
    return lost > _LOST_LINES or lost + shortened > 3 * _LOST_LINES


def _filled(text: str) -> int:
    return len(filled(LINE_END.split(text)))


# Editors show about a dozen lines of a suggestion (cursortab's max_visible_lines); a screen holds three times as many.
_LINES, _CHARACTERS = 36, 4000


def too_large(proposal: Proposal) -> bool:
    """Whether it writes more filled lines, or more characters, than fit on a screen."""
    written = [new for _, _, new in proposal.edits]
    return sum(map(len, written)) > _CHARACTERS or sum(map(_filled, written)) > _LINES


_MARKERS: Final = (
    # Our own and those of Qwen, StarCoder, CodeLlama, DeepSeek, Codestral, Gemma, Mercury, Zeta and chats.
    r"<\|/?[a-zA-Z][\w .-]{0,40}\|>",
    r"<｜[\w▁ ]{2,30}｜>",  # noqa: RUF001 (DeepSeek's own bars)
    r"</?fim[_-](?:prefix|suffix|middle|pad|begin|end|hole)>",
    r"▁?<(?:PRE|SUF|MID|EOT)>",
    r"\[(?:PREFIX|SUFFIX|MIDDLE|/?INST|MASK)\]",
    r"</?(?:start_of_turn|end_of_turn|file_sep|filename|reponame|repo_name|gh_stars|jupyter_code|endoftext|eos|bos)>",
    r"</?(?:EDIT|INSERT|NO_CHANGE|NO_EDIT|think|thinking|tool_call|tool_response)>",
    r"(?m:^(?:<{7} (?:CURRENT|ORIGINAL|HEAD)|>{7} (?:UPDATED|MODIFIED)))",
)
_MARKER: Final = re.compile("|".join(_MARKERS))
# A model trained on chats answers with a fenced block.
_FENCE: Final = re.compile(r"\s*(?:```|~~~)[\w+-]*[ \t]*(?:[\r\n]|\Z)")
_PROSE: Final = frozenset(
    {"", "markdown", "mdx", "quarto", "restructuredtext", "asciidoc", "plaintext", "tex", "latex"}
)
_FENCE_MARK: Final = re.compile(r"```|~~~")


def prompt_marker(proposal: Proposal, edit: Edit) -> bool:
    """Whether it contains a marker that the document does not have; a file about prompts may well have some."""
    if any(found[0] not in proposal.text for found in _MARKER.finditer(edit.text)):
        return True
    fenced = proposal.language_id not in _PROSE and _FENCE.match(edit.text) is not None
    return fenced and _FENCE_MARK.search(proposal.text) is None


# A mark that opens or closes a comment of several lines is meaningful, even alone.
_WORDLESS: Final = re.compile(r"\s*(?:#+|//+!?|--+|;+|%+|/\*+\s*\*+/|<!--\s*-->)\s*")


def empty_comment(proposal: Proposal) -> bool:
    """Whether a text at the cursor makes comments without words, if no comment is above."""
    if proposal.kind != "fill" or len(proposal.edits) != 1:
        return False
    start, end, new = proposal.edits[0]
    head = head_of(proposal.text, start)
    if not new.strip() or rest_of(proposal.text, end).strip():
        return False
    lines = [line for line in LINE_END.split(head + new) if line.strip()]
    if not all(_WORDLESS.fullmatch(line) for line in lines):
        return False
    if head.strip() and _WORDLESS.fullmatch(head):  # the user began it: the model only continues a ruler
        return False
    return not is_comment("".join(above(proposal.text, start)[-1:]))


_PATH_LINE: Final = re.compile(
    r"\s*(?:(?:#|//|--|;|%|/\*|<!--|\"{3})\s*(?:(?:[Ff]ile ?)?[Pp]ath|[Ff]ile(?: ?[Nn]ame)?)|current_file_path)\s*:"
    r"\s*[`'\"]?(?:[\w.-]*[/\\])*[\w-]+\.\w{1,8}[`'\"]?\s*(?:\*/|-->)?\s*(?:[\r\n]|\Z)"
)


def path_line(_: Proposal, edit: Edit) -> bool:
    """Whether its text begins with a line such as `# Path: src/app.py`, which no file has at its cursor."""
    return _PATH_LINE.match(edit.text) is not None


# Values that fill tables and default arguments.
_LITERAL: Final = re.compile(r"\b(?:0[xX][\da-fA-F_]+|\d[\w.]*|None|[Tt]rue|[Ff]alse|null|nil|undefined|NaN|nan|inf)\b")
# What the user wrote of a line is intended; only the rest of it is the suggestion's. Fewer letters may well be
# repeated: `a, a`.
_LEAST_WRITTEN: Final = 3
# Lines that may be repeated: a bracket, `pass`, `else:`.
_LEAST_IN_LINES: Final = 5
_PAIRS: Final = ("()", "[]", "{}")
_QUOTES: Final = "\"'`"
_CLOSERS: Final = frozenset(")]}" + _QUOTES)
_COMPARED_LINES: Final = 3
# Share of the shorter text; from Tabby's dropDuplicated.
_ALLOWED_DISTANCE: Final = 0.05
# A long name with one letter more or less is the same name; a short one, or one with another digit, is not.
_LONG_WORD: Final = 5
_WORD: Final = regex.compile(r"\w+")
# From Tabby's removeLineEndsWithRepetition: a piece of three characters six times, one of ten characters four times.
_SHORT_PIECE, _SHORT_TIMES = 3, 6
_LONG_PIECE, _LONG_TIMES = 10, 4
_SEPARATOR: Final = 2
# Characters of a line's end that are checked, and lines of a text.
_LOOKED_AT, _LOOKED_AT_LINES = 400, 80
# The same line this often, or the same block of lines twice, in direct succession; and letters that each has.
_LINE_TIMES, _LARGEST_BLOCK = 3, 12
_LEAST_LINE_LETTERS, _LEAST_BLOCK_LETTERS = 3, 12


def duplicate_of_suffix(proposal: Proposal, edit: Edit) -> bool:
    """Whether everything it inserts already follows: on its line, or in whole lines."""
    start, end, new = edit
    if start < end or not new.strip():
        return False
    if LINE_END.search(new.strip(" \t")) is None:
        return _follows_on_line(proposal.text, start, new.strip())
    # A line of its own is rarely repeated on purpose, whatever it says.
    return _follows_in_lines(proposal.text, start, new, 1 if proposal.kind == "fill" else _LEAST_WRITTEN)


def repeats_below(proposal: Proposal, edit: Edit) -> bool:
    """Whether its first three filled lines equal those below, within a twentieth, or its last one the next."""
    text, (start, end, new) = proposal.text, edit
    if text[start:end].strip() or _letters(new) < _LEAST_WRITTEN:
        return False
    head, rest = head_of(text, start), rest_of(text, end)
    lines = LINE_END.split(head + new)
    following = below(text, end)
    lines = lines[1:] if new[:1] in {"\r", "\n"} else lines
    if rest.strip() and lines[-1].strip():
        return False  # the last line continues with what follows it
    if rest.strip():
        following = [rest, *following]
    elif _leads_to_itself(lines, following):
        return True
    own = filled(lines, _COMPARED_LINES)
    others = filled(following, len(own))
    if not own or len(others) < len(own):
        return False
    first, second = "\n".join(own), "\n".join(others)
    alike = first == second or (proposal.kind == "fill" and _alike(first, second))
    return alike and _letters(first) >= _LEAST_IN_LINES


def repeats_above(proposal: Proposal, edit: Edit) -> bool:
    """Whether its lines exactly repeat those directly above, or the brackets that the last of them ends with.

    Also whether it begins with a definition that the same block has, a few lines above.
    """
    text, (start, end, new) = proposal.text, edit
    if text[start:end].strip() or _letters(new) < _LEAST_WRITTEN:
        return False
    if proposal.kind == "fill" and _is_defined_above(text, start, new, proposal.language_id):
        return True
    if new[-1:] not in {"\r", "\n"} and rest_of(text, end).strip():
        return False
    head = head_of(text, start)
    own = filled(LINE_END.split(head + new))
    others = above(text, start)
    # If the cursor's line is complete already, it is the first of those above.
    if head.strip() and new[:1] in {"\r", "\n"}:
        own, others = own[1:], [*others, head]
    if len(own) == 1 and own[0][0] in "([{" and others and others[-1].rstrip().endswith(own[0]):
        return True
    if len(own) >= _COMPARED_LINES and filled(others)[-len(own) :] == own and _letters("".join(own)) >= _LEAST_IN_LINES:
        return True
    # A blank line in between separates a line or two on purpose.
    others = [line.strip() for line in others[-len(own) :]]
    return bool(own) and own == others and _letters("".join(own)) >= _LEAST_IN_LINES


# Lines above a definition in which another one of it is looked for.
_DEFINED_WITHIN: Final = 40
_DEFINITION: Final = re.compile(
    r"\s*(?:(?:export|default|async|public|private|protected|static|pub)\s+)*"
    r"(?:def|class|function|fn|func|interface|struct|enum|const|let|var)\s+(?P<name>\w+)|\s*/\*\*\s*\w.{12}"
)
_OF_PYTHON: Final = re.compile(r"\s*(?:async\s+)?def\s+\w+\(")


def _is_defined_above(text: str, start: int, new: str, language_id: str) -> bool:
    """Whether a text makes a line on which the same block defines the same; in Python, also with other parameters."""
    head, lines = head_of(text, start), above(text, start)
    if new[:1] in {"\r", "\n"}:
        lines, head = [*lines, head], ""
    first = next((line for line in LINE_END.split(head + new) if line.strip()), "")
    if _DEFINITION.match(first) is None or (lines and lines[-1].lstrip().startswith("@")):
        return False
    signature = _OF_PYTHON.match(first) if language_id == "python" else None
    for line in reversed(lines[-_DEFINED_WITHIN:]):
        if line.strip() and columns(line) < columns(first):
            return False
        if line.rstrip() == first.rstrip() or (signature and line.startswith(signature[0])):
            return True
    return False


def repeats_itself(_: Proposal, edit: Edit) -> bool:
    """Whether its last line ends in a loop, or the same lines follow each other directly.

    Numbers and other literals may repeat: tables do.
    """
    return _ends_in_loop(edit.text) or _repeats_lines(edit.text)


def _letters(text: str) -> int:
    """How much a text says: letters of names and words; numbers, `None`, `true` and the like do not count."""
    return sum(map(str.isalpha, _LITERAL.sub("", text)))


def _follows_on_line(text: str, at: int, said: str) -> bool:
    rest = rest_of(text, at).strip()
    if not rest.startswith(said):
        return False
    if said == rest and _letters(said) > 0:
        return True
    if set(said) <= _CLOSERS:
        head = head_of(text, at)
        quote = said[0]
        of_three = quote in _QUOTES and (head.endswith(quote) or rest.startswith(quote * 2))
        line = head + rest  # nothing in it needs another line: counted, not parsed
        pairs = all(line.count(opening) == line.count(closing) for opening, closing in _PAIRS)
        return not of_three and pairs and all(line.count(each) % 2 == 0 for each in _QUOTES)
    # A continued word: `print` before `printer` repeats nothing.
    goes_on = is_word(said[-1:]) and is_word(rest[len(said) :][:1])
    return _letters(said) >= _LEAST_WRITTEN and not goes_on


def _follows_in_lines(text: str, at: int, new: str, least: int) -> bool:
    """Whether the next lines are these; they may begin with the rest of this line, or after it."""
    if LINE_END.match(new.lstrip(" \t")) is None and head_of(text, at).strip() and not rest_of(text, at).strip():
        return False
    said, following = new.strip(), text[at : at + len(new) + 256].strip()
    behind = following[len(said) :]
    return following.startswith(said) and _letters(said) >= least and (not behind or LINE_END.match(behind) is not None)


def _leads_to_itself(lines: list[str], following: list[str]) -> bool:
    """Whether the last of several lines is the one after them."""
    own = [line.rstrip() for line in lines if line.strip()]
    next_line = next((line.rstrip() for line in following if line.strip()), "")
    return len(own) > 1 and own[-1] == next_line and _letters(next_line) >= _LEAST_IN_LINES


def _alike(one: str, other: str) -> bool:
    allowed = int(_ALLOWED_DISTANCE * min(len(one), len(other)))
    if Levenshtein.distance(one, other, score_cutoff=allowed + 1) > max(1, allowed):
        return False
    words, others = _WORD.findall(one), _WORD.findall(other)
    return len(words) == len(others) and all(map(_same, words, others))


def _same(one: str, other: str) -> bool:
    """Whether two words are the same: `value` and `values` are, `x1` and `x2` or `width` and `height` are not."""
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) >= _LONG_WORD and long.startswith(short) and long[len(short) :].isalpha())


def _ends_in_loop(new: str) -> bool:
    line = new.rstrip()[-_LOOKED_AT:]
    line = line[max(line.rfind("\n"), line.rfind("\r")) + 1 :]
    for size in range(_SHORT_PIECE, (len(line) + _SEPARATOR) // _LONG_TIMES + 1):
        # The line's end equals the text one piece before it; the last piece may lack its separator.
        same = size * ((_SHORT_TIMES if size < _LONG_PIECE else _LONG_TIMES) - 1) - _SEPARATOR
        if same + size <= len(line) and line[-same:] == line[-same - size : -size] and _letters(line[-size:]) > 0:
            return True
    return False


def _repeats_lines(new: str) -> bool:
    lines = [line for each in LINE_END.split(new)[:_LOOKED_AT_LINES] if (line := each.rstrip())]
    if len(lines) < _LINE_TIMES:
        return False
    for size in range(1, min(len(lines) // 2, _LARGEST_BLOCK) + 1):
        least, times = (_LEAST_LINE_LETTERS, _LINE_TIMES) if size == 1 else (_LEAST_BLOCK_LETTERS, 2)
        row = 0
        for at in range(len(lines) - size):
            row = row + 1 if lines[at] == lines[at + size] else 0
            if row >= size * (times - 1) and _letters("".join(lines[at - size + 1 : at + 1])) >= least:
                return True
    return False


Filter = Callable[[Proposal], bool]
_OfEdit = Callable[[Proposal, Edit], bool]


def _of(which: Callable[[Iterable[bool]], bool], check: _OfEdit) -> Filter:
    """A filter that drops a proposal for any, or for all, of its edits."""
    return lambda proposal: which(check(proposal, Edit(*each)) for each in proposal.edits)


# By the reason given for a silence; the cheapest first.
FILTERS: Final[dict[str, Filter]] = {
    "no_change": _of(all, no_change),
    "cut_off": cut_off,
    "whitespace_only": _of(all, whitespace_only),
    "wrong_region": wrong_region,
    "deletes_too_much": deletes_too_much,
    "too_large": too_large,
    "prompt_marker": _of(any, prompt_marker),
    "reverts_edit": reverts_edit,
    "resumes_undone": resumes_undone,
    "reinserts_deleted": reinserts_deleted,
    "deletes_typed": deletes_typed,
    "duplicate_of_suffix": _of(any, duplicate_of_suffix),
    "repeats_below": _of(any, repeats_below),
    "repeats_above": _of(any, repeats_above),
    "repeats_itself": _of(any, repeats_itself),
    "empty_comment": empty_comment,
    "path_line": _of(any, path_line),
    "names_neighbour": names_neighbour,
    "unbalanced": unbalanced,
    "unknown_name": unknown_name,
    "unparsable": unparsable,
}

# Evidence against a suggestion; all others are form.
DOUBT: Final = (
    "deletes_too_much", "too_large", "reverts_edit", "resumes_undone", "reinserts_deleted", "deletes_typed",
    "names_neighbour", "unbalanced", "unknown_name", "unparsable",
)  # fmt: skip
FORM: Final = tuple(name for name in FILTERS if name not in DOUBT)
# Those that compare with the last edits, which may have changed when an answer is reused.
OF_PAST: Final = ("reverts_edit", "resumes_undone")
# Those that parse; all others look at a few lines.
THOROUGH: Final = ("unparsable",)
QUICK: Final = tuple(name for name in FILTERS if name not in THOROUGH)


def doubts(proposal: Proposal) -> tuple[str, ...]:
    """The filters of doubt that a proposal fails. Among errors that were there before, new ones say nothing."""
    found = tuple(fired(proposal, DOUBT))
    counted = proposal.errors("") if "unparsable" in found else None
    guessed = proposal.kind == "edit" and counted is not None and counted[0] > TRUSTED
    return tuple(name for name in found if not (guessed and name == "unparsable"))


def fired(proposal: Proposal, names: Iterable[str] = tuple(FILTERS)) -> Iterator[str]:
    """The names of the filters that drop a proposal, lazily: a caller that needs one pays for no more."""
    return (name for name in names if FILTERS[name](proposal))

"""A rename goes on: the other places of the old name, and names that are made with it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, Literal

from calomel.suggest.drafts.evidence import EditDraft, Evidence, LineEdit
from calomel.suggest.drafts.text import (
    TYPE,
    TYPES,
    Rows,
    function_rows,
    is_own_word,
    is_prose,
    is_typed_head,
    is_word,
    parameter_head,
    tokens,
)

MAKER: Final = "rename"
_SHORTEST: Final = 3
_PLACES: Final = 48
# Of the words of two lines, for one to be the other with names changed.
_SAME: Final = 0.6
_WORD: Final = re.compile(r"\w+|\W")
_DECLARED: Final = (
    r"(?:\b(?:let|const|var|mut|for)\s+(?:mut\s+)?[({{\[]?|^\s*\(?)(?:\w+\s*,\s*)*{0}(?:\s*,\s*\w+)*[)}}\]]?"
    r"\s*(?::[^=]*)?(?::?=(?!=)|\bin\b|\bof\b)"
)
_FIELD: Final = r"\s+(?:pub(?:\([^)]*\))?\s+|public\s+|private\s+|readonly\s+)*{0}\s*[?:\s]\s*\S"
# Before the name of a parameter; before its type stands something else.
_NAMED: Final = re.compile(r"(?:^|[(,*.{])\s*(?:(?:mut|public|private|protected|readonly|const|final)\s+)*$")
# The same, and a variable, where types stand in front of names.
_TYPED_NAMED: Final = re.compile(rf"[(,]\s*(?:{TYPE})+$|^\s*(?:{TYPE})+$")
_TYPED_DECLARED: Final = rf"(?:^\s*|\bfor\s*\(\s*)(?:{TYPE})+(?:\w+\s*,\s*)*{{0}}\s*(?:=(?!=)|[;\[,:])"
# A placeholder that is open, in a string that has code in it.
_COMPUTED: Final = re.compile(r"[{][^{}]*\Z")
_Use = Literal["attribute", "keyword", "quoted", "plain"]


@dataclass(frozen=True, slots=True)
class Renaming:
    """`old` became `new`.

    Attributes:
        old, new: names.
        support: lines in which it did.
        use: as what it was used in the newest of them.
        row: of that line.
        local: the lines in which the name means the same; None for everywhere.
        partly: the old name still stands in that line.
    """

    old: str
    new: str
    support: int
    use: _Use
    row: int | None
    local: range | None
    partly: bool


def rename(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for the renames among the last edits, in Python, TypeScript, Go, Rust and whatever has names."""
    for each in renamings(rows, seen):
        yield from _places(rows, each)


@lru_cache(maxsize=512)
def renamed_words(old: str, new: str) -> tuple[tuple[str, str], ...]:
    """Names of a text that were replaced by other names, whole: `old_name` by `new_name`, not `old` by `new`."""
    one, other = _WORD.findall(old), _WORD.findall(new)
    pairs: dict[str, str] = {}
    for tag, low, high, first, last in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag != "replace" or high - low != last - first:
            continue
        if _beside(one, low, high) != _beside(other, first, last):
            continue
        together = list(zip(one[low:high], other[first:last], strict=True))
        if any(before != after and not (is_word(before) and is_word(after)) for before, after in together):
            continue
        for before, after in together:
            if before != after and is_own_word(before) and is_own_word(after):
                pairs.setdefault(before, after)
    return tuple(pairs.items())


def _is_field(rows: Rows, edit: LineEdit, name: str) -> bool:
    """Whether a line declares a field of a type."""
    if edit.row is None or re.match(_FIELD.format(re.escape(name)), edit.new) is None:
        return False
    return function_rows(rows, edit.row) is None


def _beside(pieces: Sequence[str], first: int, last: int) -> tuple[str, str]:
    """What stands before and behind, blanks passed over: `f(x)` that becomes `g[x]` is no rename."""
    before = next((piece for piece in reversed(pieces[:first]) if not piece.isspace()), "")
    return before, next((piece for piece in pieces[last:] if not piece.isspace()), "")


def renamings(rows: Rows, seen: Evidence) -> list[Renaming]:
    """The renames among the last edits, newest first; none that a newer one took back."""
    support: Counter[tuple[str, str]] = Counter()
    newest: dict[tuple[str, str], LineEdit] = {}
    for edit in seen.edits:
        for pair in renamed_words(edit.old, edit.new):
            if not _is_rename(edit, pair):
                continue
            if (pair[1], pair[0]) in newest:
                continue
            support[pair] += 1
            newest.setdefault(pair, edit)
    found = [_renaming(rows, seen, pair, edit, support[pair]) for pair, edit in newest.items()]
    # What became different things has no one new name.
    olds = Counter(old for old, _ in newest)
    return [each for each in found if each is not None and olds[each.old] == 1]


def leaves_scope(rows: Rows, draft: EditDraft, local: Sequence[Renaming]) -> bool:
    """Whether a draft of another maker renames where a name means something else: `local` are renames of one place."""
    row = rows.row(draft.start)
    beyond = {(each.old, each.new) for each in local if each.local is not None and row not in each.local}
    if not beyond or row != rows.row(draft.end):
        return False
    line, start = rows.lines[row], rows.start(row)
    new = line[: draft.start - start] + draft.text + line[draft.end - start :]
    return not beyond.isdisjoint(renamed_words(line, new))


def _renaming(rows: Rows, seen: Evidence, pair: tuple[str, str], edit: LineEdit, support: int) -> Renaming | None:
    old, new = pair
    use = "attribute" if _is_field(rows, edit, new) else _use(edit.new, *_first(edit.new, new))
    local = _local(rows, seen.edits, old, new) if use == "plain" else None
    if local is None:
        # A short name is many things, but not as an attribute nor within one function.
        if (len(old) < _SHORTEST and use != "attribute") or old in TYPES or new in TYPES:
            return None
        # A name that code had before is another thing: it was put in the place of this one, here.
        if support < 2 and _stands_elsewhere(rows, new, seen):  # noqa: PLR2004
            return None
    partly = _first(edit.new, old) != (-1, -1)
    return Renaming(old, new, support, use, edit.row, local, partly)


def _is_rename(edit: LineEdit, pair: tuple[str, str]) -> bool:
    """Whether a line is still the same but for names; a comment, but for this one."""
    one, other = _WORD.findall(edit.old), _WORD.findall(edit.new)
    if is_prose(edit.new):
        return len(one) == len(other) and [pair[1] if word == pair[0] else word for word in one] == other
    if pair[0] in other and pair[1] in one:
        return False  # they changed places
    same = SequenceMatcher(None, one, other, autojunk=False).ratio()
    return same >= _SAME


def _stands_elsewhere(rows: Rows, name: str, seen: Evidence) -> bool:
    edited = seen.rows()
    pattern = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    for match in pattern.finditer(rows.text):
        row = rows.row(match.start())
        if row not in edited and not is_quoted(rows.lines[row], match.start() - rows.start(row)):
            return True
    return False


def _places(rows: Rows, renaming: Renaming) -> Iterator[EditDraft]:
    """Every line with the old name: all of its places in the line, and those alone that are used alike."""
    pattern = re.compile(rf"(?<![\w$]){re.escape(renaming.old)}(?![\w$])")
    by_row: dict[int, list[re.Match[str]]] = {}
    for match in pattern.finditer(rows.text):
        by_row.setdefault(rows.row(match.start()), []).append(match)
        if len(by_row) > _PLACES:
            break
    for row, matches in by_row.items():
        line, start = rows.lines[row], rows.start(row)
        uses = [_use(line, match.start() - start, match.end() - start) for match in matches]
        outside = renaming.local is not None and row not in renaming.local
        kept = [
            (match, use)
            for match, use in zip(matches, uses, strict=True)
            if (renaming.local is None and (len(renaming.old) >= _SHORTEST or use == "attribute"))
            or (renaming.local is not None and (use == "quoted" or (use == "keyword" and outside) or
            (use != "attribute" and not outside)))
        ]  # fmt: skip
        if renaming.use == "quoted":
            # The words of a string name no code.
            kept = [(match, use) for match, use in kept if use == "quoted"]
        if not kept:
            continue
        likeness = 0.4 if outside or (renaming.partly and row == renaming.row) else 1.0
        # Code alone: what a string or a comment says is a change of its own, and an unsure one.
        code = [match for match, use in kept if use != "quoted"]
        same = [match for match, use in kept if use == renaming.use]
        quoted = [match for match, use in kept if use == "quoted"]
        choices = [code, same if len(same) < len(code) else [], quoted]
        for number, chosen in enumerate(choices):
            if not chosen:
                continue
            first, last = chosen[0].start(), chosen[-1].end()
            spelled = dict.fromkeys(
                [_respelled_at(rows, chosen, renaming, full=True), _respelled_at(rows, chosen, renaming)]
            )
            for other, text in enumerate(spelled):
                worth = likeness * (1.0, 0.9, 0.6)[number] * (0.9 if other else 1.0)
                yield EditDraft(first, last, text, MAKER, renaming.support, worth, alone=chosen is quoted)


def _respelled_at(rows: Rows, chosen: Sequence[re.Match[str]], renaming: Renaming, *, full: bool = False) -> str:
    """The text from the first to the last place with the new name.

    `full`: `{ name }`, which is `{ name: name }` in JavaScript and Rust, keeps the name of the field.
    """
    text, at = "", chosen[0].start()
    for match in chosen:
        new = renaming.new
        if full and renaming.use == "plain" and _is_shorthand(rows.text, match.start(), match.end()):
            new = f"{renaming.old}: {new}"
        text += rows.text[at : match.start()] + new
        at = match.end()
    return text


def _is_shorthand(text: str, start: int, end: int) -> bool:
    line = text[text.rfind("\n", 0, start) + 1 : start]
    if any(line.count(quote) % 2 for quote in "\"'`"):
        return False  # a placeholder in a string
    if not re.search(r"\{[^{}()\[\]=]*$", line) or re.match(r"\s*(?:import|export|const|let|var|use)\b[^=]*$", line):
        return False
    return re.search(r"[{,]\s*$", line) is not None and re.match(r"\s*[,}]", text[end : end + 40]) is not None


def _first(line: str, name: str) -> tuple[int, int]:
    match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line)
    return match.span() if match else (-1, -1)


def _use(line: str, start: int, end: int) -> _Use:
    before, after = line[:start].rstrip(), line[end:].lstrip()
    if is_quoted(line, start):
        return "quoted"
    if before.endswith((".", "->")) and not before.endswith(".."):
        return "attribute"
    if before.endswith(("(", ",", "{")) and re.match(r"=(?!=)", after):
        return "keyword"
    return "plain"


def is_quoted(line: str, at: int) -> bool:
    """Whether a place is in a string or a comment of one line, but for what a string computes: `{total}`."""
    for token in tokens(line):
        if token.start <= at < token.end:
            inside = len(token.text) > 1 and token.text[0] in "\"'`"
            return inside and _COMPUTED.search(line[token.start : at]) is None
        # Behind a quote that its line does not close there is a string that goes on.
        comment = token.text in {"#", "//"} and (token.start == 0 or line[token.start - 1].isspace())
        if comment or token.text in {'"', "`"} or (token.text == "*" and not line[: token.start].strip()):
            return True
    return False


def _is_inline(line: str, start: int, end: int) -> bool:
    """Whether a name is the parameter of a function that begins and ends in its line."""
    arrow = re.match(r"[^()]*\)?\s*(?::\s*[\w<>\[\]]+\s*)?=>\s*(.*)", line[end:])
    if arrow is not None:
        return bool(arrow.group(1)) and not arrow.group(1).rstrip().endswith(("{", "("))
    if re.search(r"\|[^|]*$", line[:start]) and re.match(r"[^|]*\|\s*[^{\s]", line[end:]):
        return True
    return re.search(r"\blambda\b[^:]*$", line[:start]) is not None


def _local(rows: Rows, edits: Sequence[LineEdit], old: str, new: str) -> range | None:
    """The function whose parameter or variable was renamed; None when the name may be known outside."""
    for edit in edits:
        if edit.row is None or (old, new) not in renamed_words(edit.old, edit.new):
            continue
        start, end = _first(edit.new, new)
        if _is_inline(edit.new, start, end):
            return range(edit.row, edit.row + 1)
        head = parameter_head(rows, edit.row, start)
        inside = function_rows(rows, edit.row if head is None else head)
        if inside is None:
            continue
        typed = is_typed_head(rows, inside.start)
        named = _TYPED_NAMED if typed else _NAMED
        declared = _TYPED_DECLARED if typed else _DECLARED
        parameter = head is not None and inside.start == head and named.search(edit.new[:start]) is not None
        variable = inside.start != edit.row and re.search(declared.format(re.escape(new)), edit.new) is not None
        if parameter or variable:
            return inside
    return None

"""Drafts for what is named now: arguments after Python's `*`, in an options object or in a structure.

And for the fields of a structure that was a tuple (`fields`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from calomel.code.calls import Listed, calls, read_list
from calomel.code.lines import Rows, indent_of
from calomel.code.names import parts
from calomel.code.tokens import is_quoted
from calomel.suggest.drafts.arguments import KEYWORD, PARAMETER, RECEIVER, calls_of, changed_lists
from calomel.suggest.drafts.evidence import EditDraft, Evidence

MAKER: Final = "by_name"
_NAME: Final = re.compile(r"[^\W\d][\w$]*")
# Columns beyond which a call whose arguments became fields is split over several lines.
_WIDTH: Final = 100
# `cfg *Config`, `cfg: &Config`: what precedes the type, and its name.
_OF_TYPE: Final = re.compile(r"\w+\??(?:\s*:\s*|\s+)([*&]?)(?:mut\s+)?([^\W\d]\w*)$")
_BRACED: Final = (
    r"(?:\btype\s+{0}\s+struct|\bstruct\s+{0}|\binterface\s+{0}|\btype\s+{0}\s*=)(?:<[^>]*>)?\s*\{{([^{{}}]*)\}}"
)
_CLASS: Final = r"^class\s+{0}\b[^\n]*:\n((?:[ \t]+[^\n]*\n|\n)+)"
_FIELD: Final = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+|readonly\s+)?([^\W\d]\w*(?:,\s*\w+)*)\??\s*(:?)[ \t]*\S")

# The edit of one call: start, end and new text.
_Named = Callable[[str, Listed], tuple[int, int, str] | None]


def by_name(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for calls: `f(1, 2)` becomes `f(1, b=2)` after Python's `*`, `f({ a: 1, b: 2 })` for options.

    A structure that replaces parameters is built from the arguments: `f(Config{A: 1, B: 2})` (rust-url: a `Config` for
    three booleans of IDNA; cobra: options for the functions of its completions).
    """
    for _, old, new in changed_lists(rows, seen):
        before = {listed.name: listed.texts(old) for listed in calls(old)}
        for listed in calls(new):
            items, parameters = listed.texts(new), before.get(listed.name)
            if parameters is None or items == parameters:
                continue
            parameters, items = ([item for item in each if not RECEIVER.match(item)] for each in (parameters, items))
            stars = "*" in items and "*" not in parameters
            rule = _keywords(parameters, items.index("*")) if stars else _fields(rows, parameters, items)
            if rule is not None:
                yield from _by_rule(rows, seen, listed.name, rule)


def _by_rule(rows: Rows, seen: Evidence, name: str, rule: _Named) -> Iterator[EditDraft]:
    """Drafts for the calls of a name that do not follow a rule yet, supported by those that do."""
    support = 1 + sum(_follows(edit.old, edit.new, name, rule) for edit in seen.edits)
    for listed in calls_of(rows, name):
        found = rule(rows.text, listed)
        if found is None:
            continue
        start, end, text = found
        line = rows.before(start) + text + rows.behind(end)
        opened = text.find("{") + 1
        if support == 1 and opened > 1 and len(line) > _WIDTH and "\n" not in text:
            text = _over_lines(text, opened, indent_of(line), rows.line_end)
        yield EditDraft(start, end, text, MAKER, support, 1.0)


def _follows(old: str, new: str, name: str, rule: _Named) -> bool:
    """Whether the line that an edit changed became what a rule makes of it."""
    found = [edit for listed in calls(old, name) if (edit := rule(old, listed)) is not None]
    return any(old[:start] + text + old[end:] == new for start, end, text in found)


def _over_lines(text: str, opened: int, indent: str, line_end: str) -> str:
    """A structure with one field per line."""
    listed = read_list(text, opened - 1)
    if listed is None:
        return text
    inner = indent + ("\t" if indent.startswith("\t") else "    ")
    fields = [item.split(": ", 1) for item in listed.texts(text)]
    # gofmt aligns the values.
    width = max(len(key) for key, *_ in fields) if text[opened - 2].isalnum() else 0
    lines = [f"{f'{key}:':<{width + 1}} {value[0]}" if value else key for key, *value in fields]
    made = "".join(f"{inner}{line},{line_end}" for line in lines)
    return f"{text[:opened].rstrip()}{line_end}{made}{indent}{text[listed.end :]}"


def _keywords(parameters: list[str], first: int) -> _Named:
    """The rule that passes items by keyword from index `first` on."""
    names = [match.group() if (match := _NAME.match(item)) else "" for item in parameters]

    def named(text: str, listed: Listed) -> tuple[int, int, str] | None:
        items = listed.texts(text)
        if not items or len(items) > len(names) or any(item.startswith("*") for item in items):
            return None
        at, end = listed.items[0][0], listed.items[-1][1]
        pieces: list[str] = []
        for index, (start, _) in enumerate(listed.items):
            if index >= first and names[index] and not KEYWORD.match(items[index]):
                pieces += text[at:start], f"{names[index]}="
                at = start
        return (listed.items[0][0], end, "".join([*pieces, text[at:end]])) if pieces else None

    return named


def _fields(rows: Rows, parameters: list[str], items: list[str]) -> _Named | None:
    """The rule for a new item whose fields are the parameters that it replaced; None if they are not."""
    kept = next((at for at, item in enumerate(items) if item not in parameters), len(items))
    behind = len(items) - kept - 1
    if behind < 0 or parameters[:kept] != items[:kept] or parameters[len(parameters) - behind :] != items[kept + 1 :]:
        return None
    form = _form(rows, items[kept])
    moved = [match.group(1) for item in parameters[kept : len(parameters) - behind] if (match := PARAMETER.match(item))]
    known = {} if form is None else {tuple(parts(name)): name for name in form.names}
    names = [known.get(tuple(parts(name)), "") for name in moved]
    if form is None or not moved or not all(names):
        return None

    def made(text: str, listed: Listed) -> tuple[int, int, str] | None:
        passed = listed.texts(text)[kept : len(listed.items) - behind]
        if not passed or len(passed) > len(names) or (len(passed) < len(names) and (behind or not form.short)):
            return None
        if passed[0].startswith(form.made) or any(map(KEYWORD.match, passed)):
            return None
        pairs = [
            value if form.short and key == value else f"{key}{form.between}{value}"
            for key, value in zip(names, passed, strict=False)
        ]
        start, end = listed.items[kept][0], listed.items[kept + len(passed) - 1][1]
        return start, end, form.opening + ", ".join(pairs) + form.closing

    return made


@dataclass(frozen=True, slots=True)
class _Form:
    """The syntax of a value with named fields.

    Attributes:
        names: of the fields.
        name: of the type; empty without one.
        opening, between, closing: around the fields, and between a name and its value.
        short: `{ name }` is allowed for `{ name: name }`.
    """

    names: list[str]
    name: str
    opening: str
    between: str
    closing: str
    short: bool = False

    @property
    def made(self) -> tuple[str, ...]:
        """How a value already in this form starts."""
        return ("{", "...", *((self.name, f"&{self.name}") if self.name else ()))


def _form(rows: Rows, item: str) -> _Form | None:
    """The syntax of a parameter's values; None if its type is not a structure known in the file."""
    opened = read_list(item, 0) if item.startswith("{") else None
    if opened is not None:
        names = [match.group() for part in opened.texts(item) if (match := _NAME.match(part))]
        return _Form(names, "", "{ ", ": ", " }", short=True)
    typed = _OF_TYPE.match(item)
    braced = None if typed is None else re.search(_BRACED.format(typed[2]), rows.text)
    body = braced if typed is None or braced else re.search(_CLASS.format(typed[2]), rows.text, re.MULTILINE)
    if typed is None or body is None:
        return None
    pointer, name = ("&" if typed[1] else ""), typed[2]
    lines = re.split(r"\n|;|,\s*(?=\w+\s*:)", body[1])
    names = [each for line in lines if (match := _FIELD.match(line)) for each in re.split(r",\s*", match[1])]
    if braced is None:
        return _Form(names, name, f"{name}(", "=", ")")
    if "struct" not in braced[0].partition("{")[0]:
        return _Form(names, "", "{ ", ": ", " }", short=True)
    go = braced[0].startswith("type")
    opening, closing = (f"{pointer}{name}{{", "}") if go else (f"{pointer}{name} {{ ", " }")
    return _Form(names, name, opening, ": ", closing, short=not go)


FIELDS: Final = "fields"
_MOST_USES: Final = 24
_HOLDER: Final = re.compile(r"\s*(?:pub(?:\([^)]*\))?\s+|let\s+(?:mut\s+)?)?([^\W\d]\w*)\s*:")
_STRUCTURE: Final = r"\bstruct\s+{0}\b[^;{{(]*\{{([^{{}}]*)\}}"
_TYPED_FIELD: Final = re.compile(r"(?m)^\s*(?:pub(?:\([^)]*\))?\s+)?([^\W\d]\w*)\s*:\s*(.+?),?\s*(?://.*)?$")
# What may be between the name of what holds a tuple and the number: `entries[at]`, `entry.borrow()`, `last?`.
_BETWEEN: Final = r"(?:\[[^\[\]]*\]|\.\w+\([^()]*\)|\?)*"


def fields(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for the field numbers of a Rust tuple that became a structure: `index.0` becomes `index.start`.

    (ureq: the positions of a status line; tree-sitter: the entries of its loader.)
    """
    for edit in seen.edits:
        holder, made = _HOLDER.match(edit.new), _became(edit.old, edit.new)
        names = None if made is None else _names(rows, seen, *made)
        if holder is None or names is None:
            continue
        uses = re.compile(rf"(?<![\w$]){re.escape(holder[1])}{_BETWEEN}\.(\d+)(?!\w)")
        for match in list(uses.finditer(rows.text))[:_MOST_USES]:
            number, before = int(match[1]), rows.before(match.start(1))
            if number < len(names) and not is_quoted(before, len(before) - 1):
                yield EditDraft(match.start(1), match.end(1), names[number], FIELDS)


def _became(old: str, new: str) -> tuple[tuple[str, ...], str] | None:
    """The types of a tuple in a line, and the type that replaced it; None if something else changed."""
    for match in re.finditer(r"(?<![\w)>])\(", old):
        listed = read_list(old, match.start())
        if listed is None or len(listed.items) < 2:  # noqa: PLR2004
            continue
        head, rest = old[: match.start()], old[listed.end + 1 :].partition("//")[0].rstrip()
        name = new[len(head) :].partition("//")[0].rstrip().removesuffix(rest)
        if new.startswith(head) and re.fullmatch(r"[A-Z]\w*", name):
            return tuple(listed.texts(old)), name
    return None


def _names(rows: Rows, seen: Evidence, types: tuple[str, ...], name: str) -> list[str] | None:
    """The fields of a structure in the file, or a new one elsewhere; None if its types differ."""
    texts = (rows.text, "\n".join(line for new in seen.insertions for line in new.lines))
    bodies = (re.search(_STRUCTURE.format(name), text) for text in texts)
    body = next((match[1] for match in bodies if match is not None), "")
    found = _TYPED_FIELD.findall(body)
    return [each for each, _ in found] if tuple(kind for _, kind in found) == types else None

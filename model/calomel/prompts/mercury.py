"""The tagged prompt of `/v1/edit/completions`, read and written, and the answer to it.

    <|recently_viewed_code_snippets|> <|recently_viewed_code_snippet|> code_snippet_file_path: PATH …
    <|current_file_content|> current_file_path: PATH … <|code_to_edit|> …<|cursor|>… <|/code_to_edit|> …
    <|edit_diff_history|> unified diffs, the newest last

Clients differ in the order of the parts, in what they leave out, and in whether the region is inside the file or after
it. A client puts each tag at the beginning of a line with nothing after it. Anything like a tag elsewhere is the user's
text, unless all tags are like that. The answer replaces the region in the user's file, so a prompt whose region is
uncertain is rejected rather than guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from calomel.prompts.edit_prompt import (
    LONGEST_PATH,
    EditPrompt,
    ForeignPromptError,
    cut_cursor,
    numbered,
    parse_edits,
    sort_snippets,
)
from calomel.prompts.parts import EditRegion, PromptParts

CURSOR: Final = "<|cursor|>"
# Words for the hosted service's router, which one client leaves in.
ROUTING: Final = ("<|!@#IS_NEXT_EDIT!@#|>", "<|!@#IS_APPLY!@#|>")

_REGION: Final = "code_to_edit"
_FILE: Final = "current_file_content"
_SNIPPETS: Final = "recently_viewed_code_snippets"
_SNIPPET: Final = "recently_viewed_code_snippet"
_HISTORY: Final = "edit_diff_history"
_PARTS: Final = (_SNIPPETS, _FILE, _REGION, _HISTORY)

_FILE_PATH: Final = re.compile(r"[\r\n]{0,8}current_file_path:([^\r\n]*)(?:\r?\n|\Z)")
_SNIPPET_PATH: Final = re.compile(r"[\r\n]{0,8}code_snippet_file_path:([^\r\n]*)(?:\r?\n|\Z)")
_UNCLEAR: Final = "The prompt has more than one <|code_to_edit|>, so the region is ambiguous."
_FENCE: Final = "```"
_FENCED: Final = re.compile(r"\s*```[^\n`]*\n(?P<text>.*?)\n?```\s*", re.DOTALL)
# Broken up or not.
_FORGED: Final = re.compile(rf"<\| ?(?=/?(?:{'|'.join((*_PARTS, _SNIPPET, 'cursor'))})\|>)")
_TAG_OF_REGION: Final = re.compile(rf"<\|/?{_REGION}\|>\n?")
# A prompt with twenty snippets has about fifty; a file about prompts may have as many again.
_MOST: Final = 4096


@dataclass(frozen=True, slots=True)
class _Tag:
    """One occurrence.

    Attributes:
        name: without `<|`, `/` and `|>`.
        closing: whether it ends a part.
        start: offset of the tag.
        end: offset after the tag and the line end that belongs to it.
    """

    name: str
    closing: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Part:
    """The text between two tags, from `start` to `end`, or with the tags from `outer_start` to `outer_end`."""

    name: str
    outer_start: int
    start: int
    end: int
    outer_end: int

    @property
    def closed(self) -> bool:
        """Whether there is a tag at its end."""
        return self.outer_end > self.end

    def holds(self, other: _Part) -> bool:
        """Whether the other one is inside this one."""
        return self.start <= other.outer_start and other.outer_end <= self.end


# The file around the region, tags removed: its path, and the texts before and after.
_Around = tuple[str | None, str, str]


def parse_mercury(prompt: str) -> EditPrompt:
    """Read a prompt.

    The last line end before `<|/code_to_edit|>` belongs to the region: `mercury_answer` leaves it out again.

    Raises:
        ForeignPromptError: there is no region, or its ends or its cursor are ambiguous.
    """
    text = _without_routing(prompt)
    sections, region = _sections(text)
    cursor, inside = cut_cursor(text[region.start : region.end], CURSOR)
    path, prefix, suffix = _file(text, region, sections, inside, shows_cursor=cursor is not None)
    snippets = _text_of(text, sections, _SNIPPETS)
    shown = (_path(_SNIPPET_PATH, snippets[part.start : part.end]) for part in _snippets(snippets))
    related, staged = sort_snippets(shown, path)
    edits = (*staged, *parse_edits(_text_of(text, sections, _HISTORY), path or ""))
    return EditPrompt(path, prefix, inside, suffix, cursor, edits, related)


def mercury_answer(region: str) -> str:
    """The answer: the region between bare fences, the only form that every client understands.

    It repeats the text between the tags, except for the line end before the closing one; an unchanged region means that
    there is nothing to do.
    """
    return f"```\n{region.removesuffix(chr(10))}\n```"


def write_mercury(parts: PromptParts) -> str:
    """The prompt about a region; tags in the user's text are broken up by a space."""
    region = parts.region or EditRegion("")
    at = len(region.text) if region.cursor is None else region.cursor
    mark = "" if region.cursor is None else CURSOR
    snippets = (
        f"<|{_SNIPPET}|>\ncode_snippet_file_path: {_plain(each.path)}\n{_line(_plain(each.text))}<|/{_SNIPPET}|>\n\n"
        for each in (*parts.related, *parts.far)
    )
    edits = (f"--- {_plain(each.path)}\n+++ {_plain(each.path)}\n{_plain(numbered(each))}\n" for each in parts.edits)
    inside = f"{_plain(region.text[:at])}{mark}{_plain(region.text[at:])}"
    return (
        f"<|{_SNIPPETS}|>\n{''.join(snippets)}<|/{_SNIPPETS}|>\n\n"
        f"<|{_FILE}|>\ncurrent_file_path: {_plain(parts.path or '')}\n{_line(_plain(parts.prefix))}"
        f"<|{_REGION}|>\n{_line(inside)}<|/{_REGION}|>\n{_line(_plain(parts.suffix))}<|/{_FILE}|>\n\n"
        f"<|{_HISTORY}|>\n{''.join(edits)}<|/{_HISTORY}|>\n"
    )


def read_answer(content: str, region: str) -> str | None:
    """The new text of `region` that an answer gives; None if it is cut off."""
    found = _FENCED.fullmatch(content)
    if found is None and content.lstrip().startswith(_FENCE):
        return None
    text = content if found is None else found["text"]
    if text.strip() == "None":
        return region
    text = _FORGED.sub("<|", _TAG_OF_REGION.sub("", text).replace(CURSOR, ""))
    return f"{text}\n" if region.endswith("\n") and text and not text.endswith("\n") else text


def _plain(text: str) -> str:
    return _FORGED.sub("<| ", text)


def _line(text: str) -> str:
    """As a whole line, so that a tag begins the next one."""
    return text if not text or text.endswith("\n") else f"{text}\n"


def _without_routing(prompt: str) -> str:
    """The prompt without the router's words at its end; in the middle they are the user's."""
    end, found = _ends(prompt), False
    while prompt.endswith(ROUTING, 0, end):
        found = True
        end = _ends(prompt, prompt.rindex("<|!@#", 0, end))
    return f"{prompt[:end]}\n" if found else prompt


def _ends(text: str, end: int | None = None) -> int:
    """Where `text[:end]` ends, without trailing blanks."""
    end = len(text) if end is None else end
    while end and text[end - 1].isspace():
        end -= 1
    return end


def _sections(text: str) -> tuple[list[_Part], _Part]:
    """Snippets, file and history, each at most once, and the region, which may be inside the file."""
    for anywhere in (False, True):
        found = _tags(text, _PARTS, anywhere=anywhere)
        top = _outermost(found, len(text))
        sections = _first_ones(part for part in top if part.name != _REGION)
        file = next((part for part in sections if part.name == _FILE), None)
        regions = [part for part in top if part.name == _REGION and part.closed]
        within = [] if file is None else [tag for tag in found if file.start <= tag.start < file.end]
        regions += _pairs([tag for tag in within if tag.name == _REGION])
        if regions or anywhere:
            break
    region = _the_one(text, regions)
    if file is not None and file.holds(region):
        # Nested, unlike anything clients send. Text in the region is the user's in any case.
        outside = [tag for tag in within if tag.end <= region.outer_start or tag.start >= region.outer_end]
        nested = _first_ones(part for part in _outermost(outside, file.end) if part.closed)
        sections += [part for part in nested if not any(part.name == each.name for each in (*sections, region))]
    return sections, region


def _first_ones(parts: Iterable[_Part]) -> list[_Part]:
    """The first part of each name."""
    first: dict[str, _Part] = {}
    for part in parts:
        first.setdefault(part.name, part)
    return list(first.values())


def _pairs(found: list[_Tag]) -> list[_Part]:
    """The outermost regions. Raises ForeignPromptError for a tag too many, as any of them may be the user's text."""
    pairs: list[_Part] = []
    depth: list[_Tag] = []
    stray = False
    for tag in found:
        if not tag.closing:
            depth.append(tag)
        elif depth:
            opening = depth.pop()
            if not depth:
                pairs.append(_Part(_REGION, opening.start, opening.end, tag.start, tag.end))
        else:
            stray = True
    if (depth or stray) and len(found) > 1:
        raise ForeignPromptError(_UNCLEAR)
    return pairs


def _the_one(text: str, regions: list[_Part]) -> _Part:
    """The region; if there are several, the one that holds a cursor."""
    if len(regions) > 1:
        regions = [region for region in regions if text.find(CURSOR, region.start, region.end) >= 0]
        if len(regions) != 1:
            raise ForeignPromptError(_UNCLEAR)
    if not regions:
        raise ForeignPromptError("The prompt has no region between <|code_to_edit|> and <|/code_to_edit|>.")
    return regions[0]


def _text_of(text: str, sections: list[_Part], name: str) -> str:
    return next((text[part.start : part.end] for part in sections if part.name == name), "")


def _file(text: str, region: _Part, sections: list[_Part], inside: str, *, shows_cursor: bool) -> _Around:
    """What is around the region: in its own file or, if it is in none, in the file that is shown."""
    part = next((part for part in sections if part.name == _FILE), None)
    others = [each for each in sections if each.name != _FILE]
    if part is not None and not part.holds(region):
        path, shown = _path(_FILE_PATH, _without(text, part.start, part.end, others))
        return _around(path, shown, inside)
    start, end = (0, len(text)) if part is None else (part.start, part.end)
    path, before = _path(_FILE_PATH, _without(text, start, region.outer_start, others))
    after = _without(text, region.outer_end, end, others)
    if part is None and not (before + after).strip():
        before = after = ""
    if not shows_cursor and before.count(CURSOR) + after.count(CURSOR) == 1:
        before, after = before.replace(CURSOR, ""), after.replace(CURSOR, "")
    return path, before, after


def _around(path: str | None, shown: str, inside: str) -> _Around:
    """A file that repeats the region somewhere; one that does not is taken for the text before it."""
    for wanted in (inside, inside.removesuffix("\n")):
        at = shown.find(wanted) if wanted else -1
        if at >= 0:
            return path, shown[:at], shown[at + len(wanted) :].removeprefix("\n" if wanted != inside else "")
    return path, shown, ""


def _without(text: str, start: int, end: int, parts: list[_Part]) -> str:
    """`text[start:end]` without the parts inside it."""
    pieces = []
    for part in sorted(parts, key=lambda each: each.outer_start):
        if start <= part.outer_start and part.outer_end <= end:
            pieces.append(text[start : part.outer_start])
            start = part.outer_end
    return "".join((*pieces, text[start:end]))


def _path(line: re.Pattern[str], text: str) -> tuple[str | None, str]:
    """The path in the first line, and the text after that line."""
    found = line.match(text)
    if found is None:
        return None, text
    return found[1].strip()[:LONGEST_PATH] or None, text[found.end() :]


def _snippets(snippets: str) -> list[_Part]:
    for anywhere in (False, True):
        found = _tags(snippets, (_SNIPPET,), anywhere=anywhere)
        if found:
            return _outermost(found, len(snippets))
    return []


def _tags(text: str, names: Sequence[str], *, anywhere: bool = False) -> list[_Tag]:
    """The tags of these names, in order: those on lines of their own, or also those within lines.

    Raises:
        ForeignPromptError: there are more than any client sends.
    """
    tag = rf"<\|(/?)({'|'.join(map(re.escape, names))})\|>"
    line = rf"{tag}(?:[ \t]*\r?\n)?" if anywhere else rf"^{tag}[ \t]*(?:\r?\n|\Z)"
    found = islice(re.finditer(line, text, re.MULTILINE), _MOST + 1)
    listed = [_Tag(each[2], bool(each[1]), each.start(), each.end()) for each in found]
    if len(listed) > _MOST:
        raise ForeignPromptError("The prompt has too many tags.")
    return listed


def _outermost(found: Sequence[_Tag], length: int) -> list[_Part]:
    """The outermost parts: each ends at the tag that closes it, counting tags of its own name inside it.

    A part that contains one tag of its own name too many ends at the last tag that could close it, and an unclosed one
    at the end of the text, at offset `length`.
    """
    parts: list[_Part] = []
    last = {tag.name: at for at, tag in enumerate(found) if tag.closing}
    at = 0
    while at < len(found):
        opening = found[at]
        if opening.closing:
            at += 1
            continue
        depth, close = 0, at
        while close < len(found):
            if found[close].name == opening.name:
                depth += -1 if found[close].closing else 1
                if depth == 0:
                    break
            close += 1
        if close == len(found) and last.get(opening.name, -1) > at:
            close = last[opening.name]
        if close == len(found):
            parts.append(_Part(opening.name, opening.start, opening.end, length, length))
        else:
            parts.append(_Part(opening.name, opening.start, opening.end, found[close].start, found[close].end))
        at = close + 1
    return parts

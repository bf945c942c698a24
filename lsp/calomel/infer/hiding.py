"""What a request hides on its way out: by place in the newest text, carried back in earlier ones, else by value."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, Protocol

from calomel.infer.completer import CompleteRequest, Draft
from calomel.prompts.parts import (
    Excerpt,
    FileText,
    Hunk,
    PromptParts,
    common_prefix,
    common_suffix,
    line_feeds,
    split_lines,
)
from calomel.workspace.edits import apply, edits_of, minimal_edits, place_of
from calomel.workspace.privacy import secret_pattern
from calomel.workspace.secrets import SHORTEST_REPEATED, SecretFinder, masked

# A part of a text, and its parts that are hidden: start and end.
Span = tuple[int, int]
Spans = tuple[Span, ...]

# A shorter beginning may be one of many things.
_SHORTEST_BEGINNING: Final = 8
_TOKEN: Final = re.compile(r"[\w+/=.~-]")
# Edits and excerpts whose own secrets are remembered.
_REMEMBERED: Final = 512
# Lines around an excerpt's old place in which it is looked for.
_REACH: Final = 200
# The share of its lines that must be there.
_STILL: Final = 0.5
# Lines of an excerpt and of a newer text that are compared, on average of both.
_MOST_LINES: Final = 600


class Knowledge(Protocol):
    """What the editor's side knows of the files that a request names, by their names in prompts."""

    @property
    def masks(self) -> bool:
        """Whether secrets are hidden at all."""

    def versions(self, name: str) -> Sequence[tuple[str, Spans]]:
        """The newest text of each file with this name, and the secrets in it; empty if none is known."""

    def edits(self, name: str) -> Sequence[Hunk]:
        """All edits of the file that are remembered, oldest first, the one in progress last."""

    def permits(self, name: str) -> bool:
        """Whether a model may still see an excerpt of that file."""

    def look_again(self) -> None:
        """Find out which edits a model may still see."""

    def permits_edits(self, name: str) -> bool:
        """Whether a model may still see edits of that file, as `look_again` found it."""

    def values(self) -> Iterable[str]:
        """Secrets of all open files."""


def touched(hidden: Iterable[Span], start: int, end: int) -> bool:
    """Whether a part of a text overlaps or adjoins something hidden."""
    return any(low <= end and start <= high for low, high in hidden)


@dataclass(frozen=True, slots=True)
class RequestAlone:
    """A request that is all that is known."""

    parts: PromptParts

    @property
    def masks(self) -> bool:
        """Always."""
        return True

    def versions(self, name: str) -> Sequence[tuple[str, Spans]]:
        """None is known as a whole."""
        del name
        return ()

    def edits(self, name: str) -> Sequence[Hunk]:
        """Those that came along."""
        return [each for each in self.parts.edits if each.path == name]

    def permits(self, name: str) -> bool:
        """By the file's name."""
        return name == self.parts.path or secret_pattern(Path(name)) is None

    permits_edits = permits

    def look_again(self) -> None:
        """Names do not change."""

    def values(self) -> Iterable[str]:
        """None besides those in the request."""
        return ()


@dataclass(slots=True)
class _Version:
    """A version of a file, and what it hides."""

    text: str
    hidden: list[Span]


class Hiding:
    """One request on its way out; `sent` is what leaves.

    Args:
        request: without files that may not be seen.
        known: of the files that it names.
        finder: of secrets.
        own: of edits, what their own versions hide of them; kept from request to request.
    """

    def __init__(
        self,
        request: CompleteRequest,
        known: Knowledge,
        finder: SecretFinder,
        own: OrderedDict[tuple[str, int, str, str], tuple[Spans, Spans]],
    ) -> None:
        self._request = request
        self._known = known
        self._finder = finder
        self._own = own
        self._versions: dict[str, list[_Version]] = {}
        self._hides = False
        parts = request.parts
        self._window = parts.prefix + ("" if parts.region is None else parts.region.text) + parts.suffix
        self._start = 0
        current = self._current(request.file)
        if parts.path is not None:
            self._versions[parts.path] = [current]
        self._current_version = current
        values = {line_feeds(each) for each in known.values()}
        values |= {current.text[low:high] for low, high in current.hidden}
        self._values = sorted(each for each in values if len(each) >= SHORTEST_REPEATED)

    def sent(self) -> tuple[CompleteRequest, Spans, bool, dict[Draft, Draft]]:
        """The request as it may leave, what is hidden of its window, whether anything is, and drafts as sent."""
        request = self._request
        parts, region = request.parts, request.parts.region
        low, high = self._start, self._start + len(self._window)
        hidden = _joined((*_within(self._current_version.hidden, low, high), *self._elsewhere(self._window)))
        window = self._masked(self._window, hidden)
        at = len(parts.prefix)
        end = at if region is None else at + len(region.text)
        edits = self._edits(parts.edits)
        names = {name: self._name(name) for name in _names(parts)}
        shown = replace(
            parts,
            related=tuple(filter(None, map(self._excerpt, parts.related))),
            far=tuple(filter(None, map(self._excerpt, parts.far))),
            edits=edits,
            prefix=window[:at],
            region=None if region is None else replace(region, text=window[at:end]),
            suffix=window[end:],
        ).with_paths(lambda name: names.get(name, name))
        drafts = {sent: draft for draft in request.drafts if (sent := self._draft(draft, hidden, at, end)) is not None}
        return replace(request, parts=shown, drafts=tuple(drafts)), hidden, self._hides, drafts

    def _masked(self, text: str, spans: Iterable[Span]) -> str:
        hidden = _joined(spans)
        self._hides = self._hides or bool(hidden)
        return masked(text, hidden)

    def _current(self, file: FileText | None) -> _Version:
        """The whole text around the window, and what it hides; the window itself if no more is known."""
        if file is None:
            text = self._window
            return _Version(text, list(self._finder.part_spans(text)))
        text, self._start = file.text, file.start
        if "\r" in text:
            text, self._start = line_feeds(text), len(line_feeds(text[: file.start]))
        find = self._finder.part_spans if isinstance(self._known, RequestAlone) else self._finder.spans
        return _Version(text, [span[:2] for span in find(text)])

    def _versions_of(self, name: str) -> list[_Version]:
        versions = self._versions.get(name)
        if versions is None:
            versions = []
            if isinstance(self._known, RequestAlone):
                texts = (each.text for each in self._request.parts.related if each.path == name)
                versions += (_Version(text, list(self._finder.part_spans(text))) for text in texts)
            for text, spans in self._known.versions(name):
                plain = line_feeds(text)
                found = spans if plain is text or plain == text else [each[:2] for each in self._finder.spans(plain)]
                versions.append(_Version(plain, list(found)))
            self._versions[name] = versions
        return versions

    # Parts that are not the window.

    def _excerpt(self, excerpt: Excerpt) -> Excerpt | None:
        """An excerpt as it may leave; None if its place in a file with secrets is not known."""
        text, versions = excerpt.text, self._versions_of(excerpt.path)
        hidden: list[Span] = [*self._elsewhere(text)]
        placed = False
        for version in versions:
            found = self._placed(version, excerpt)
            placed = placed or found is not None
            hidden += found or ()
        if versions and not placed and any(version.hidden for version in versions):
            return None
        if not placed:
            hidden += self._finder.part_spans(text)
        return replace(excerpt, text=self._masked(text, hidden))

    def _placed(self, version: _Version, excerpt: Excerpt) -> Spans | None:
        """What a version of the file hides of an excerpt; None if its place is not known."""
        for text in (excerpt.text, excerpt.text.removesuffix("\n")):
            at = place_of(version.text, excerpt.start_line, text) if text else None
            if at is not None:
                return _within(version.hidden, at, at + len(text))
        if not version.hidden:
            return ()
        return _aligned(excerpt, version)

    def _edits(self, edits: Sequence[Hunk]) -> tuple[Hunk, ...]:
        chains = {name: self._chain(name) for name in {each.path for each in edits}}
        shown = []
        for each in edits:
            found, secret = chains[each.path]
            spans = found.get(each)
            if spans is None:
                if secret:
                    continue  # where it stood is not known
                spans = self._pair(each)
            before, after = (
                self._masked(text, (*own, *self._elsewhere(text)))
                for text, own in zip((each.before, each.after), spans, strict=True)
            )
            shown.append(replace(each, before=before, after=after))
        return tuple(shown)

    def _pair(self, hunk: Hunk) -> tuple[Spans, Spans]:
        """What an edit of an unknown text hides by itself: what one side hides of their common text, both do."""
        before, after = self._finder.part_spans(hunk.before), self._finder.part_spans(hunk.after)
        return (
            (*before, *carried(hunk.before, hunk.after, after)),
            (*after, *carried(hunk.after, hunk.before, before)),
        )

    def _chain(self, name: str) -> tuple[dict[Hunk, tuple[Spans, Spans]], bool]:
        """What the edits of a file hide, before and after, and whether the file has secrets.

        The newest text is taken back edit by edit; what it hides goes along.
        """
        found: dict[Hunk, tuple[Spans, Spans]] = {}
        secret = False
        edits = [
            replace(each, before=line_feeds(each.before), after=line_feeds(each.after))
            for each in self._known.edits(name)
        ]
        clean: tuple[Spans, Spans] = ((), ())
        # How many of the oldest edits are known to hide nothing by themselves.
        dirty = next((at for at, each in enumerate(edits) if self._own.get(_key(each)) != clean), len(edits))
        for version in self._versions_of(name):
            now, hidden = version.text, [*version.hidden]
            for number, edit in reversed([*enumerate(edits)]):
                if number < dirty and not hidden:
                    for each in edits[: number + 1]:
                        found.setdefault(each, clean)
                    break
                at = place_of(now, edit.start_line, edit.after)
                if at is None:
                    continue
                old = now[:at] + edit.before + now[at + len(edit.after) :]
                own_before, own_after = self._own_spans(edit, now, old, at)
                end = at + len(edit.after)
                after = _joined((
                    *_within(hidden, at, end), *own_after, *carried(edit.after, edit.before, own_before)
                ))  # fmt: skip
                reaching = [(low - at, high - at) for low, high in hidden if low <= end and at <= high]
                before = _joined((*own_before, *carried(edit.before, edit.after, (*reaching, *own_after))))
                known = found.get(edit, ((), ()))
                found[edit] = _joined((*known[0], *before)), _joined((*known[1], *after))
                by = len(edit.before) - len(edit.after)
                hidden = [
                    *((low, min(high, at)) for low, high in hidden if low < at),
                    *((low + at, high + at) for low, high in before),
                    *((max(low, end) + by, high + by) for low, high in hidden if high > end),
                ]
                secret = secret or bool(hidden) or bool(before) or bool(after)
                now = old
            secret = secret or bool(version.hidden)
        return found, secret

    def _own_spans(self, edit: Hunk, now: str, old: str, at: int) -> tuple[Spans, Spans]:
        """What the versions before and after an edit hide of its lines by themselves; searched once."""
        key = _key(edit)
        spans = self._own.get(key)
        if spans is None:
            find = self._finder.spans
            before = _within([each[:2] for each in find(old)], at, at + len(edit.before))
            after = _within([each[:2] for each in find(now)], at, at + len(edit.after))
            spans = self._own[key] = before, after
            while len(self._own) > _REMEMBERED:
                self._own.popitem(last=False)
        else:
            self._own.move_to_end(key)
        return spans

    def _elsewhere(self, text: str) -> Iterator[Span]:
        """Known values in a text, whole, and their beginnings where a token ends with them."""
        for value in self._values:
            beginning = value[:_SHORTEST_BEGINNING]
            at = text.find(beginning)
            while at >= 0:
                length = common_prefix(value, text[at : at + len(value)])
                end = at + length
                if length == len(value) or (
                    not _TOKEN.match(text, end) and not (at and _TOKEN.match(text, at - 1))
                    and not self._is_word(text[at:end])
                ):  # fmt: skip
                    yield at, end
                at = text.find(beginning, max(end, at + 1))

    def _is_word(self, token: str) -> bool:
        """Whether visible text of the files in question has a token at more than one place: nobody types half twice."""
        token = re.escape(token)
        whole = re.compile(rf"(?<![\w+/=.~-]){token}(?![\w+/=.~-])")
        return sum(len(whole.findall(version.text)) for each in self._versions.values() for version in each) > 1

    def _name(self, name: str) -> str:
        return self._masked(name, [*(each[:2] for each in self._finder.spans(name)), *self._elsewhere(name)])

    def _draft(self, draft: Draft, hidden: Spans, at: int, end: int) -> Draft | None:
        """A draft as it may leave; None if it touches or writes something hidden."""
        plain, text = self._window[at:end], draft.text
        if self._request.kind == "fill":
            head = self._window[self._window.rfind("\n", 0, at) + 1 : at]
            wrote = any(high > len(head) for _, high, *_ in self._finder.spans(head + text))
            return None if wrote or any(self._elsewhere(text)) or touched(hidden, at, at) else draft
        inside = tuple((low - at, high - at) for low, high in hidden)
        if not touched(inside, 0, end - at):
            return None if any(self._elsewhere(text)) else draft
        edits = minimal_edits(plain, 0, len(plain), text)
        if any(touched(inside, each.start, each.end) or any(self._elsewhere(each.text)) for each in edits):
            return None
        return replace(draft, text=apply(self._masked(plain, _within(inside, 0, len(plain))), edits_of(edits)))


def _key(edit: Hunk) -> tuple[str, int, str, str]:
    return edit.path, edit.start_line, edit.before, edit.after


def carried(old: str, new: str, hidden: Iterable[Span]) -> Spans:
    """What `old` has to hide where it became `new`, of which `hidden` is hidden: what stood at those places.

    Lines are compared one by one if there are as many as before. Of a changed part that a hidden one overlaps or
    adjoins, all is hidden: nobody knows which of its characters became which.
    """
    spans = sorted(hidden)
    if not spans or not old:
        return ()
    found: list[Span] = []
    for (a, b), (c, d) in _pairs(old, new):
        was, now = old[a:b], new[c:d]
        head = common_prefix(was, now)
        tail = common_suffix(was[head:], now[head:])
        for low, high in spans:
            found.append((max(low, c) - c + a, min(high, c + head) - c + a))
            found.append((max(low, d - tail) - d + b, min(high, d) - d + b))
            if low <= d - tail and c + head <= high:
                found.append((a + head, b - tail))
    return _joined(each for each in found if each[0] < each[1])


def _pairs(old: str, new: str) -> Iterator[tuple[Span, Span]]:
    """Ranges of lines of two texts that correspond."""
    olds, news = split_lines(old), split_lines(new)
    if len(olds) != len(news):
        yield (0, len(old)), (0, len(new))
        return
    a = c = 0
    for was, now in zip(olds, news, strict=True):
        yield (a, a + len(was)), (c, c + len(now))
        a, c = a + len(was), c + len(now)


def _aligned(excerpt: Excerpt, version: _Version) -> Spans | None:
    """What a version hides of an excerpt of an earlier one, by their common lines; None if most are not there."""
    olds, lines = split_lines(excerpt.text), split_lines(version.text)
    first = max(0, excerpt.start_line - _REACH)
    news = lines[first : excerpt.start_line + len(olds) + _REACH]
    if len(olds) + len(news) > 2 * _MOST_LINES:
        return None
    there = set(news)
    if sum(line in there for line in olds) < _STILL * len(olds):
        return None
    start = sum(map(len, lines[:first]))
    if not _within(version.hidden, start, start + sum(map(len, news))):
        return ()
    found: list[Span] = []
    for _, a, b, c, d in SequenceMatcher(None, olds, news, autojunk=False).get_opcodes():
        was, now = "".join(olds[a:b]), "".join(news[c:d])
        low, at = sum(map(len, olds[:a])), start + sum(map(len, news[:c]))
        inside = [
            (max(s, at) - at, min(e, at + len(now)) - at) for s, e in version.hidden if s <= at + len(now) and at <= e
        ]
        found += ((s + low, e + low) for s, e in carried(was, now, inside))
    return _joined(found)


def _names(parts: PromptParts) -> set[str]:
    own = set() if parts.path is None else {parts.path}
    excerpts = {each.path for each in (*parts.related, *parts.far)}
    return own | excerpts | {each.path for each in parts.edits}


def _within(spans: Iterable[Span], start: int, end: int) -> Spans:
    """What is hidden of `start:end`, in its own offsets."""
    return tuple((max(low, start) - start, min(high, end) - start) for low, high in spans if low < end and start < high)


def _joined(spans: Iterable[Span]) -> Spans:
    """In order, overlapping and touching ones joined."""
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        elif high > low:
            found.append((low, high))
    return tuple(found)

"""The folder that the server's user named: excerpts that clients send of its files are completed from its index.

A path in a request is only looked up among the indexed files: none is opened, and what the privacy rules keep out of
the index is unknown here. An excerpt that matches no file is left as the client sent it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from calomel.prompts.edit_prompt import EditPrompt
from calomel.prompts.parts import Excerpt
from calomel.suggest.stateless import language_of
from calomel.workspace.documents import Document
from calomel.workspace.index import Place
from calomel.workspace.privacy import Privacy
from calomel.workspace.related import Related
from calomel.workspace.settings import load_settings
from calomel.workspace.syntax import SyntaxTrees

_log = logging.getLogger("calomel.server")

# Files with the same name that are searched, at most.
_NAMESAKES: Final = 8
# Requests beyond this many waiting ones are answered without the workspace.
_WAITING: Final = 8
_LONGEST_PATH: Final = 4096
# Documents whose last related code is kept, so that it stays the same from keystroke to keystroke.
_DOCUMENTS: Final = 64


@dataclass(frozen=True, slots=True)
class _Match:
    """A file, and its text around an excerpt."""

    place: Place
    around: Around


class KnownWorkspace:
    """Completes prompts. Used from one event loop; looks things up in its own thread."""

    def __init__(self, folder: Path, user_toml: Path | None = None) -> None:
        """`user_toml` holds the user's rules about what no model may see; the folder's own file may add to them."""
        # Links in the path of the folder are the user's own.
        self._folder = folder.resolve()
        self._settings, _ = load_settings(user_toml=user_toml, workspace_toml=self._folder / "calomel.toml")
        self._syntax = SyntaxTrees()
        self._privacy = Privacy((self._folder,), self._settings.privacy)
        self._related = Related(self._syntax, self._privacy, message=_log.warning)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="calomel-workspace")
        self._waiting = 0
        self._told = False
        self._open: dict[str, None] = {}

    def start(self) -> None:
        """Index the folder in the background, and watch it."""
        self._related.start((self._folder,), self._progress, most_files=self._settings.workspace.index_files)

    def close(self) -> None:
        """End the threads."""
        self._thread.shutdown(cancel_futures=True)
        self._related.stop()

    async def edit(self, prompt: EditPrompt) -> EditPrompt:
        """The prompt with the rest of its file and related code of others, if its excerpt is found."""
        if not prompt.path or self._waiting >= _WAITING:
            return prompt
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._edit, prompt)
        except RuntimeError:
            # The server is shutting down.
            return prompt
        finally:
            self._waiting -= 1

    def _edit(self, prompt: EditPrompt) -> EditPrompt:
        match = self._match(prompt.path or "", prompt.prefix, prompt.region, prompt.suffix)
        if match is None:
            return prompt
        outside = _outside(prompt.path or "", match)
        prefix, suffix = match.around.before + prompt.prefix, prompt.suffix + match.around.behind
        edits = tuple(replace(each, path=each.path.removeprefix(outside)) for each in prompt.edits)
        given = [replace(each, path=each.path.removeprefix(outside)) for each in prompt.related]
        others = self._others(match, prefix + prompt.region + suffix, len(prefix) + (prompt.cursor or 0), given)
        path = match.place.file.name
        return replace(prompt, path=path, prefix=prefix, suffix=suffix, edits=edits, related=(*given, *others))

    def _match(self, path: str, prefix: str, region: str, suffix: str) -> _Match | None:
        found: list[_Match] = []
        for place in self._namesakes(path):
            lines = place.segment.lines(place.number, 0, place.file.lines)
            there = around("".join(lines), prefix, region, suffix)
            if there is not None:
                found.append(_Match(place, there))
        return found[0] if len(found) == 1 else None

    def _namesakes(self, path: str) -> list[Place]:
        """Indexed files that a client may mean: those whose path ends with the client's."""
        if len(path) > _LONGEST_PATH:
            return []
        parts = path.replace("\\", "/").split("/")
        wanted = "/".join(["", *parts]) if parts[0] else "/".join(parts)
        if "" in parts[1:] or {".", ".."}.intersection(parts) or not parts[-1]:
            return []
        index = self._related.index
        paths = [each for each in index.named(parts[-1]) if each.endswith(wanted) and (parts[0] or each == wanted)]
        if not paths and len(parts) > 1 and parts[0]:
            # A worktree may have another name than its folder.
            rest = "/".join(parts[1:])
            paths = [each for each in index.named(parts[-1]) if each == f"{self._folder.as_posix()}/{rest}"]
        if len(paths) > _NAMESAKES:
            return []
        # The rules may have changed since the file was indexed.
        permitted = [each for each in paths if self._privacy.allowed(Path(each)).allowed]
        return [place for place in map(index.place, permitted) if place is not None]

    def _others(self, match: _Match, text: str, offset: int, given: Sequence[Excerpt]) -> list[Excerpt]:
        """Related code of other files, the best first, without what the client shows itself."""
        file = match.place.file
        uri = Path(file.path).as_uri()
        document = Document(uri, language_of(file.name), None, text, file.name)
        self._syntax.opened(document)
        try:
            found = self._related.excerpts(document, offset)
        finally:
            self._syntax.closed(document)
        self._keep(document)
        shown = [each.text.strip() for each in given]
        permitted = [each for each in reversed(found) if self._privacy.allowed(self._folder / each.path).allowed]
        return [each for each in permitted if not any(each.text.strip() in text for text in shown)]

    def _keep(self, document: Document) -> None:
        self._open.pop(document.uri, None)
        self._open[document.uri] = None
        while len(self._open) > _DOCUMENTS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            self._related.closed(Document(oldest, "", None, ""))

    def _progress(self, read: int, found: int) -> None:
        if read >= found and not self._told:
            self._told = True
            _log.info("workspace: %d files read", read)


def _outside(path: str, match: _Match) -> str:
    """The part of a client's path before the file's name within the folder."""
    return path.removesuffix(match.place.file.name) if path.endswith(match.place.file.name) else ""


# Characters around the region: a shorter text occurs in too many files to identify one.
_TELLING: Final = 40
# The region in the file is at most this long; the client's may have been cut, or be longer by any amount.
_LONGEST_REGION: Final = 32_768
# A text that occurs more often in the file does not identify a place.
_MOST_PLACES: Final = 32


@dataclass(frozen=True, slots=True)
class Around:
    """The file's text before and after an excerpt."""

    before: str
    behind: str


def around(file: str, prefix: str, region: str, suffix: str) -> Around | None:
    """The text around `prefix + region + suffix` in `file`; None when that does not occur, or more than once.

    Args:
        file: with LF line ends.
        prefix: whole lines before the region; empty if the region begins the file.
        region: may differ from the file's.
        suffix: text after it, up to a line's end; empty if the region ends the file.
    """
    # Clients end their excerpts with a line end that the file may not have there.
    tail = suffix.removesuffix("\n")
    whole = prefix + region + tail
    exact = [at for at in _places(file, whole) if _is_lines(file, at, at + len(whole), tail)]
    if len(exact) == 1 and (_tells(whole) or whole.strip() == file.strip()):
        return _around(file, exact[0], exact[0] + len(whole), suffix)
    if exact:
        return None
    found = list(_spans(file, prefix, region, tail)) if _tells(prefix + tail) else []
    return _around(file, *found[0], suffix) if len(found) == 1 else None


def _spans(file: str, prefix: str, region: str, tail: str) -> Iterator[tuple[int, int]]:
    """Where an excerpt with another region is in the file, from its first character to its last."""
    # A region that ends the file extends to the file's last line end, or beyond it.
    ends = _places(file, tail) if tail else [len(file if region.endswith("\n") else file.removesuffix("\n"))]
    for start in _places(file, prefix) if prefix else [0]:
        first = start + len(prefix)
        if start and file[start - 1] != "\n":
            continue
        for last in ends:
            if first <= last <= first + _LONGEST_REGION and _ends_line(file, last + len(tail), tail):
                yield start, last + len(tail)


def _places(file: str, text: str) -> list[int]:
    """The first places of a text, one more than allowed."""
    places: list[int] = []
    at = file.find(text) if text else -1
    while at >= 0 and len(places) <= _MOST_PLACES:
        places.append(at)
        at = file.find(text, at + 1)
    return places


def _is_lines(file: str, start: int, end: int, tail: str) -> bool:
    return (start == 0 or file[start - 1] == "\n") and _ends_line(file, end, tail)


def _tells(text: str) -> bool:
    return len("".join(text.split())) >= _TELLING


def _ends_line(file: str, at: int, tail: str) -> bool:
    # A region that nothing follows may end after a line end.
    return at == len(file) or file[at] == "\n" or (not tail and at > 0 and file[at - 1] == "\n")


def _around(file: str, start: int, end: int, suffix: str) -> Around:
    behind = file[end:]
    # The excerpt already contains this line end.
    return Around(file[:start], behind.removeprefix("\n") if suffix.endswith("\n") else behind)

"""What an editor would know around a hole: the related code of its package, found as the language server finds it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from calomel.bench.heldout import HeldoutFile
from calomel.bench.holes import Hole
from calomel.prompts.parts import Excerpt
from calomel.workspace.analysis import analyse
from calomel.workspace.bm25 import Hit, search
from calomel.workspace.segment import Segment, SourceFile, build_segment
from calomel.workspace.situation import Situation
from calomel.workspace.words import count_numbers, words_in

# The text beside the cursor that the words to look for come from, in characters: about twenty lines each way.
_NEAR: Final = 800
# More than the largest context has room for.
_CHUNKS: Final = 400


class Surroundings:
    """Related code for holes in held-out files: their packages' other files, then other packages of the language.

    The rest of a hole's own package is more useful, so it comes last; within each, what is most like the text around
    the hole comes last. A large context is therefore full, as it is in a large workspace.
    """

    def __init__(self, files: Sequence[HeldoutFile]) -> None:
        self._files = tuple(files)
        self._segments: dict[tuple[str, str], Segment] = {}

    def situation(self, hole: Hole) -> Situation:
        """The hole's file as an editor has it, the hole empty, the cursor in it."""
        text = hole.prefix + hole.suffix
        path = hole.path or "file"
        return Situation(
            uri=f"bench:{hole.key}",
            path=hole.path,
            language_id=hole.language,
            text=text,
            offset=len(hole.prefix),
            revision=0,
            related=self.related(hole),
            blocks=analyse(text, path).starts,
        )

    def related(self, hole: Hole) -> tuple[Excerpt, ...]:
        """Excerpts of other files, the most useful one last; never one of the hole's own file."""
        query = count_numbers(words_in(hole.prefix[-_NEAR:] + hole.suffix[:_NEAR]))
        package = self._package_of.get((hole.language, hole.path or ""))
        names = [other for other in self._packages if other[0] == hole.language]
        found: list[Excerpt] = []
        for own in (True, False):
            segments = [self._segment(*name) for name in names if (name[1] == package) is own]
            hits = search(segments, query, _CHUNKS) if segments else []
            found += [_excerpt(hit) for hit in hits if hit.segment.files[_file(hit)].name != hole.path]
        return tuple(reversed(found))

    @cached_property
    def _packages(self) -> tuple[tuple[str, str], ...]:
        return tuple(dict.fromkeys((file.language, file.package) for file in self._files))

    @cached_property
    def _package_of(self) -> dict[tuple[str, str], str]:
        return {(file.language, file.path): file.package for file in self._files}

    def _segment(self, language: str, package: str) -> Segment:
        """The index of a package; made when it is first needed."""
        known = self._segments.get((language, package))
        if known is None:
            files = [file for file in self._files if (file.language, file.package) == (language, package)]
            known = build_segment([(SourceFile(file.path, file.path), analyse(file.text, file.path)) for file in files])
            self._segments[language, package] = known
        return known


def _file(hit: Hit) -> int:
    return int(hit.segment.arrays["chunk_file"][hit.chunk])


def _excerpt(hit: Hit) -> Excerpt:
    arrays, file = hit.segment.arrays, _file(hit)
    start, end = int(arrays["chunk_line"][hit.chunk]), int(arrays["chunk_end"][hit.chunk])
    return Excerpt(hit.segment.files[file].name, start, "".join(hit.segment.lines(file, start, end)))

"""What the last edits leave to be done in another open file.

One that imports the edited file, or is imported by it, goes on with what a single edit says; any other only with what
two say. Names that a function keeps to itself, or that the other file has of its own, mean something else there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

from calomel.prompts.parts import Hunk
from calomel.suggest.drafts.evidence import EditDraft, evidence
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.drafts.rename import renamed_words, renamings
from calomel.suggest.drafts.text import Rows
from calomel.workspace.candidates import imports_in, resolve
from calomel.workspace.documents import Document, Documents, file_of
from calomel.workspace.history import prompt_path
from calomel.workspace.languages import grammar_of
from calomel.workspace.segment import family_of

# Files that one question looks at, and how long one may be: so long a one takes some 15 ms.
_FILES: Final = 3
_LONGEST: Final = 40_000
# A list is looked for so many lines above.
_LINES: Final = 24
_CALLED: Final = re.compile(r"(\w+)\s*\Z")
_LONGEST_NAME: Final = 80
# What these do is about the file that was edited.
_OF_ONE_FILE: Final = frozenset({"imports", "extraction"})
# Each sees the names of all files of its folder.
_BY_FOLDER: Final = frozenset({"go", "java", "kotlin", "csharp", "swift"})
# Definitions, parameters, variables and fields of a name.
_BOUND: Final = (
    r"\b(?:def|class|fn|func|function\*?|struct|enum|trait|interface|type|const|let|var|mut|for|as|lambda)\s+"
    r"(?:\([^)\n]*\)\s*)?[({{\[]?(?:\w+\s*,\s*)*{0}\b"
    r"|\b(?:def|fn|func|function)\b[^\n]*[(,]\s*[*&]*{0}\s*[,:)=]"
    r"|^[ \t]*(?:\w+\s*,\s*)*(?:(?:self|this)\.)?{0}\s*(?::[^=\n(]*)?:?=(?![=>])"
)


def others_of(documents: Documents, document: Document) -> Iterator[Document]:
    """The other open files of its kind of language, the one that was touched last first."""
    found = 0
    for other in reversed(tuple(documents.values())):
        if other is not document and family(other) == family(document) and len(other) <= _LONGEST:
            yield other
            found += 1
            if found == _FILES:
                return


def family(document: Document) -> str:
    """The language of a document, with those in one that call each other."""
    grammar = grammar_of(document.language_id, document.path)
    return document.language_id if grammar is None else family_of(f"x{grammar.suffixes[0]}")


def drafts_elsewhere(
    documents: Documents, document: Document, other: Document, hunks: Sequence[Hunk], mask: Callable[[str], str]
) -> tuple[EditDraft, ...]:
    """What goes on in `other`, best first.

    Args:
        documents: all that are open.
        document: that the user is in.
        other: one of them.
        hunks: the last edits of all, newest last, those that still stand; masked.
        mask: masks secrets.
    """
    text = mask(other.text)
    found = drafts(text, hunks, 0, prompt_path(other))
    if not found:
        return ()
    rows, least = Rows(text), 1 if _linked(document, other) or _linked(other, document) else 2
    local = {pair for each in documents.values() if each is not other for pair in _local(each, hunks)}

    def holds(draft: EditDraft) -> bool:
        if draft.hole is not None or draft.maker in _OF_ONE_FILE or draft.support < least:
            return False
        _, line, new = draft.changed(rows)
        pairs = renamed_words(line, new)
        bracket = rows.opening(draft.start, rows.start(max(0, rows.row(draft.start) - _LINES)))
        called = None if bracket is None else _CALLED.search(text, max(0, bracket - _LONGEST_NAME), bracket)
        names = {old for old, _ in pairs} | ({called[1]} if called else set())
        return local.isdisjoint(pairs) and not any(map(own, names))

    @cache
    def own(name: str) -> bool:
        bound = re.compile(_BOUND.format(re.escape(name)))
        return any(bound.search(rows.lines[rows.row(match.start())]) for match in rows.uses(name))

    return tuple(filter(holds, found))


def _local(document: Document, hunks: Sequence[Hunk]) -> Iterator[tuple[str, str]]:
    """Names that were renamed within a function of a document alone."""
    path = prompt_path(document)
    if any(hunk.path == path for hunk in hunks) and len(document) <= _LONGEST:
        rows = Rows(document.text)
        found = renamings(rows, evidence(rows, hunks, path))
        yield from ((each.old, each.new) for each in found if each.local is not None)


def _linked(one: Document, other: Document) -> bool:
    """Whether a file sees the names of another."""
    here, there, kind = file_of(one.uri), file_of(other.uri), family(one)
    if here is None or there is None:
        return False
    if kind in _BY_FOLDER and here.parent == there.parent:
        return True
    named = {there.name: (str(there),)}
    return any(resolve(each, str(here), lambda name: named.get(name, ())) for each in imports_in(one.text, kind))

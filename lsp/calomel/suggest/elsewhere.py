"""What the last edits leave to do in another open file: the uses of a name that was renamed where it is defined.

The other file must see that definition. Names local to a function, or defined by the other file itself, mean something
else there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from calomel.code.languages import grammar_of
from calomel.code.lines import Rows
from calomel.code.names import names_of
from calomel.code.tokens import is_comment
from calomel.prompts.parts import Hunk
from calomel.suggest.drafts.evidence import EditDraft, evidence
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.drafts.rename import MAKER as RENAME
from calomel.suggest.drafts.rename import renamed_words, renamings
from calomel.workspace.candidates import imports_in, resolve
from calomel.workspace.documents import Document, Documents, file_of
from calomel.workspace.history import prompt_path
from calomel.workspace.segment import family_of

# How many files one question looks at, and the longest one in characters, which takes some 15 ms.
_FILES: Final = 3
_LONGEST: Final = 40_000
_SURE: Final = 0.8
# Languages whose files see the names of all files in their folder.
_BY_FOLDER: Final = frozenset({"go", "java", "kotlin", "csharp", "swift"})
_DEFINED: Final = (
    r"^\s*(?:(?:export|default|async|public|static|abstract|pub(?:\([^)]*\))?|const)\s+)*"
    r"(?:def|class|fn|func|function\*?|struct|enum|trait|interface|type|const|let|var)\s+(?:\([^)\n]*\)\s*)?{0}\b"
    r"|^{0}\s*(?::[^=\n]*)?=(?!=)"
)
# Definitions, parameters, variables and fields with a name.
_BOUND: Final = (
    r"\b(?:def|class|fn|func|function\*?|struct|enum|trait|interface|type|const|let|var|mut|for|as|lambda)\s+"
    r"(?:\([^)\n]*\)\s*)?[({{\[]?(?:\w+\s*,\s*)*{0}\b"
    r"|\b(?:def|fn|func|function)\b[^\n]*[(,]\s*[*&]*{0}\s*[,:)=]"
    r"|^[ \t]*(?:\w+\s*,\s*)*(?:(?:self|this)\.)?{0}\s*(?::[^=\n(]*)?:?=(?![=>])"
)


def others_of(documents: Documents, document: Document) -> Iterator[Document]:
    """The other open files of its language family, most recently used first."""
    count = 0
    for other in reversed(tuple(documents.values())):
        if other is not document and family(other) == family(document) and len(other) <= _LONGEST:
            yield other
            count += 1
            if count == _FILES:
                return


def family(document: Document) -> str:
    """The language family of a document: languages that call each other are one."""
    grammar = grammar_of(document.language_id, document.path)
    return document.language_id if grammar is None else family_of(f"x{grammar.suffixes[0]}")


def drafts_elsewhere(documents: Documents, other: Document, hunks: Sequence[Hunk]) -> tuple[EditDraft, ...]:
    """What to continue in `other`, best first.

    Args:
        documents: all that are open.
        other: one of them.
        hunks: the last edits of all that were not undone, newest last.
    """
    text = other.text
    names = names_of(other.language_id, other.path)
    candidates = drafts(text, hunks, 0, prompt_path(other), names)
    if not candidates:
        return ()
    rows, paths = Rows(text, names), {hunk.path for hunk in hunks}
    edited = [
        each
        for each in documents.values()
        if each is not other and prompt_path(each) in paths and len(each) <= _LONGEST
    ]
    if not any(_linked(other, each) for each in edited):
        return ()
    defined = _renamed(edited, hunks)

    @cache
    def own(name: str) -> bool:
        bound = re.compile(_BOUND.format(re.escape(name)))
        return any(bound.search(rows.lines[rows.row(match.start())]) for match in rows.uses(name))

    def holds(draft: EditDraft) -> bool:
        _, line, new = draft.changed(rows)
        pairs = set(renamed_words(line, new, rows.names))
        renamed = draft.maker == RENAME and not draft.alone and draft.likeness >= _SURE and not is_comment(line)
        return renamed and bool(pairs) and pairs <= defined and not any(own(old) for old, _ in pairs)

    return tuple(filter(holds, candidates))


def _defines(text: str, name: str) -> bool:
    """Whether a text or a line defines a name that other files can see."""
    return re.search(_DEFINED.format(re.escape(name)), text, re.MULTILINE) is not None


_NamePairs = set[tuple[str, str]]


def _renamed(edited: Sequence[Document], hunks: Sequence[Hunk]) -> _NamePairs:
    """The names that were renamed where they are defined, with their new ones; none that is local to a function."""
    local: _NamePairs = set()
    defined: _NamePairs = set()
    for document in edited:
        rows = Rows(document.text, names_of(document.language_id, document.path))
        seen = evidence(rows, hunks, prompt_path(document))
        local |= {(each.old, each.new) for each in renamings(rows, seen) if each.local is not None}
        defined |= {
            pair
            for edit in seen.edits
            for pair in renamed_words(edit.old, edit.new, rows.names)
            if edit.row is not None and _defines(edit.old, pair[0]) and _defines(edit.new, pair[1])
        }
    return defined - local


def _linked(one: Document, other: Document) -> bool:
    """Whether a file can see the names of another."""
    here, there, kind = file_of(one.uri), file_of(other.uri), family(one)
    if here is None or there is None:
        return False
    if kind in _BY_FOLDER and here.parent == there.parent:
        return True
    named = {there.name: (str(there),)}
    return any(resolve(each, str(here), lambda name: named.get(name, ())) for each in imports_in(one.text, kind))

"""What the last edits leave to do in another open file: the uses of a name that was renamed where it is defined.

The other file must see that definition. Names local to a function, or defined by the other file itself, mean something
else there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from calomel.code.languages import grammar_of
from calomel.code.names import names_of
from calomel.prompts.parts import Hunk
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.drafts.rename import MAKER as RENAME
from calomel.workspace.documents import Document, Documents
from calomel.workspace.history import prompt_path
from calomel.workspace.segment import family_of

# How many files one question looks at, and the longest one in characters, which takes some 15 ms.
_FILES: Final = 3
_LONGEST: Final = 40_000
_SURE: Final = 0.8


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


def drafts_elsewhere(other: Document, hunks: Sequence[Hunk]) -> tuple[EditDraft, ...]:
    """What to continue in another document, best first.

    Args:
        other: the document.
        hunks: the last edits of all documents that were not undone, newest last.
    """
    found = drafts(other.text, hunks, 0, prompt_path(other), names_of(other.language_id, other.path))
    return tuple(each for each in found if each.maker == RENAME and not each.alone and each.likeness >= _SURE)

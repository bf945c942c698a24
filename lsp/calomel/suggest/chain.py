"""All places of a rename as one answer, so that the editor knows how many there are and need not ask for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Final

from calomel.code.budget import SpentError
from calomel.infer.completer import CompleterError
from calomel.suggest.candidates import CandidateSource
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.drafts.rename import MAKER as RENAME
from calomel.suggest.judging import Judged, shows
from calomel.suggest.search import look
from calomel.suggest.snapshot import Snapshot
from calomel.workspace.edits import Planned

# Questions to the model about one rename.
_QUESTIONS: Final = 12
# Drafts of a file; there may be more than so many.
_DRAFTS: Final = 64


async def whole_rename(
    source: CandidateSource, snapshot: Snapshot, first: Judged, still: Callable[[], bool]
) -> Judged | None:
    """`first` with the edits of all other places of the rename; None unless each of them may be shown.

    Args:
        source: judges them.
        snapshot: of the question that `first` answers.
        first: what is offered now.
        still: whether the text is what it was.
    """
    with suppress(SpentError, CompleterError):
        proposed, _ = await source.aside(look, snapshot)
        edits, left = first.edits, _left(proposed, first.edits)
        for _ in range(_QUESTIONS if len(proposed) < _DRAFTS else 0):
            if not left:
                apart = all(one.end < other.start for one, other in pairwise(edits))
                return replace(first, edits=edits) if apart and edits != first.edits else None
            situation = replace(snapshot.situation, offset=left[0].start)
            region = snapshot.region_at(left[0].start, snapshot.region.within(snapshot.context_tokens))
            answered = await source.rewrite(snapshot, situation, region, left)
            if not isinstance(answered, Judged) or not shows(answered) or answered.maker != RENAME or not still():
                return None
            edits = tuple(sorted({*edits, *answered.edits}))
            before, left = left[0], _left(left, edits)
            if left and left[0] is before:
                return None
    return None


def _left(drafts: Sequence[EditDraft], edits: Sequence[Planned]) -> list[EditDraft]:
    """The drafts of a rename that `edits` do not make."""

    def is_made(draft: EditDraft) -> bool:
        return any(edit.start <= draft.end and draft.start <= edit.end for edit in edits)

    return [draft for draft in drafts if draft.maker == RENAME and not draft.alone and not is_made(draft)]

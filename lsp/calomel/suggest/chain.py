"""All places of a rename as one answer, so that the editor knows how many there are and need not ask for each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from calomel.suggest.candidates import CandidateSource
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.drafts.rename import MAKER as RENAME
from calomel.suggest.judging import Judged, shows
from calomel.suggest.snapshot import Snapshot
from calomel.workspace.edits import Planned

# Who has to wait longer for the number is better off with the first edit alone.
_SECONDS: Final = 0.15
# A model that was not quicker than this with the first region is not asked about the others.
_QUICK: Final = 0.1
# Questions to the model, and drafts of a file; there may be more than so many.
_QUESTIONS: Final = 8
_DRAFTS: Final = 64


async def whole_rename(
    source: CandidateSource, snapshot: Snapshot, first: Judged, proposed: Sequence[EditDraft], seconds: float
) -> Judged:
    """`first` with the edits of all other places of the rename, if each of them may be shown; else `first` itself.

    Args:
        source: judges them.
        snapshot: of the question.
        first: what is offered now.
        proposed: all drafts.
        seconds: that the judgement of `first` took.
    """
    left = [
        draft for draft in proposed if draft.maker == RENAME and not draft.alone and not _is_done(draft, first.edits)
    ]
    if first.maker != RENAME or not left or len(proposed) >= _DRAFTS or seconds > _QUICK:
        return first
    edits = first.edits
    try:
        async with asyncio.timeout(_SECONDS):
            for _ in range(_QUESTIONS):
                situation = replace(snapshot.situation, offset=left[0].start)
                region = snapshot.region_at(left[0].start, snapshot.region.within(snapshot.context_tokens))
                answered = await source.rewrite(snapshot, situation, region, left)
                if not isinstance(answered, Judged) or not shows(answered) or answered.maker != RENAME:
                    return first
                edits = tuple(sorted({*edits, *answered.edits}))
                if not any(_is_done(left[0], (each,)) for each in answered.edits):
                    return first
                left = [draft for draft in left if not _is_done(draft, edits)]
                if not left:
                    apart = all(one.end < other.start for one, other in pairwise(edits))
                    return replace(first, edits=edits) if apart else first
    except TimeoutError:
        pass
    return first


def _is_done(draft: EditDraft, edits: Sequence[Planned]) -> bool:
    return any(edit.start <= draft.end and draft.start <= edit.end for edit in edits)

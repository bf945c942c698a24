"""Answers that are edits: Zed's regions, whatever route they come by, and what is counted of every answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from calomel.prompts.edit_prompt import EditPrompt
from calomel.prompts.parts import Hunk, text_hunks
from calomel.prompts.zeta import ZetaPrompt, zeta_answer
from calomel.server.deliveries import Delivered
from calomel.server.door import Visit
from calomel.server.metrics import Spent
from calomel.server.schemas.base import Usage
from calomel.suggest.outcome_signals import signals_of
from calomel.suggest.silence import SilenceReason
from calomel.suggest.stateless.room import RegionAnswer, language_of

_SHOWN: Final = "shown"


async def rewritten(visiting: Visit, zeta: ZetaPrompt, stop: Sequence[str], client: str) -> tuple[str, Usage]:
    """The answer to one of Zed's prompts, and what it took."""
    acceptances = visiting.door.acceptances
    acceptances.seen(client, zeta.edit.edits)
    known = visiting.door.workspace
    shown = zeta.edit if known is None else await visiting.run(known.edit(zeta.edit))
    answer = await visiting.run(visiting.door.edits.rewrite(visiting.filler, visiting.info, shown, client=client))
    silent = zeta_answer(zeta, None, stop)
    text = silent if answer.reason else zeta_answer(zeta, answer.text, stop)
    if text == silent and not answer.reason:
        # It holds words of the format, and the editor would misread it.
        answer = replace(answer, text=zeta.edit.region, found=(), edits=(), reason=SilenceReason.PROMPT_MARKER)
    used = decided(visiting, answer, zeta.edit.path)
    if answer.found:
        acceptances.offered(client, visiting.id, _changes(zeta.edit, answer.text))
    return text, used


def _changes(edit: EditPrompt, region: str) -> tuple[Hunk, ...]:
    """What an answer does to the lines of the file, told as its history tells it once it was accepted."""
    old, new = (edit.prefix + text + edit.suffix for text in (edit.region, region))
    return text_hunks(edit.path or "", old, new)


def decided(visiting: Visit, answer: RegionAnswer, path: str | None) -> Usage:
    """Count an answer, and remember what is offered for feedback. Every route that answers edits calls it."""
    work = answer.work
    verdict = _SHOWN if answer.reason is None else str(answer.reason)
    visiting.answered(
        Spent(work.context_tokens, work.cached_tokens, work.answer_tokens, work.steps, work.seconds, verdict)
    )
    visiting.door.metrics.judged(verdict)
    if answer.found:
        best = answer.found[0]
        delivered = Delivered(
            kind=best.signals.kind,
            model=visiting.info.id,
            probability=best.probability,
            text="".join(edit.text for edit in answer.edits),
            language_id=language_of(path),
            maker=best.maker,
            signals=signals_of(best.candidate, best.edits, best.signals),
        )
        visiting.door.deliveries.remember(visiting.id, delivered)
    return Usage.count(work.context_tokens, work.answer_tokens, work.cached_tokens)

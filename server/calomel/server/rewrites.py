"""Zed's regions, whatever route they come by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calomel.prompts.differences import text_hunks
from calomel.prompts.foreign.edit_prompt import EditPrompt
from calomel.prompts.foreign.zeta import ZetaPrompt, zeta_answer
from calomel.prompts.parts import Hunk
from calomel.server.door import Visit
from calomel.server.routes.edit import decided
from calomel.server.schemas.base import Usage
from calomel.suggest.silence import SilenceReason


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

"""Zed's regions, whatever route they come by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calomel.prompts.foreign.zeta import ZetaPrompt, zeta_answer
from calomel.server.door import Visit
from calomel.server.routes.edit import decided
from calomel.server.schemas.base import Usage
from calomel.suggest.silence import SilenceReason


async def rewritten(visiting: Visit, zeta: ZetaPrompt, stop: Sequence[str], client: str) -> tuple[str, Usage]:
    """The answer to one of Zed's prompts, and what it took."""
    answer = await visiting.run(visiting.door.edits.rewrite(visiting.filler, visiting.info, zeta.edit, client=client))
    silent = zeta_answer(zeta, None, stop)
    text = silent if answer.reason else zeta_answer(zeta, answer.text, stop)
    if text == silent and not answer.reason:
        # It holds words of the format, and the editor would misread it.
        answer = replace(answer, text=zeta.edit.region, found=(), edits=(), reason=SilenceReason.PROMPT_MARKER)
    return text, decided(visiting, answer, zeta.edit.path)

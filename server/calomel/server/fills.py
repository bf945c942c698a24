"""The question about a hole as a foreign client shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from calomel.prompts.fim_tokens import FimPromptText
from calomel.prompts.parts import PromptParts
from calomel.server.door import Visit
from calomel.server.sessions import client_of
from calomel.suggest.asker import context_tokens
from calomel.suggest.stateless.room import language_of
from calomel.workspace.workspace import Situation

if TYPE_CHECKING:
    from calomel.engine import SamplingParams
    from calomel.suggest.fill import FillRequest

# No token of source code is longer on average, by far: what is farther from a hole is read by no model.
_CHARACTERS_PER_TOKEN: Final = 16
# Characters. What is left out grows in steps, so that the cached front of a prompt stands still while somebody types;
# they are a multiple of those of `calomel.prompts.own`.
_STEP: Final = 64_512


def nearest(prefix: str, suffix: str, tokens: int) -> tuple[str, str]:
    """What stands near a hole, and all that a model with room for so many tokens can read.

    Looking for secrets, for what stands elsewhere and for brackets in megabytes takes seconds.
    """
    room = tokens * _CHARACTERS_PER_TOKEN
    before, behind = (max(0, len(text) - room) // _STEP * _STEP for text in (prefix, suffix))
    return prefix[before:], suffix[: len(suffix) - behind]


async def fill_of(
    visiting: Visit,
    shown: FimPromptText,
    *,
    max_tokens: int,
    stop: tuple[str, ...],
    sampling: SamplingParams,
    min_tokens: int = 0,
    deadline: float | None = None,
) -> FillRequest:
    """The question about a hole as a client shows it, or as the server's own folder has it; secrets masked."""
    from calomel.suggest.fill import FillRequest  # the engine imports torch, which came with the model

    known, mask = visiting.door.workspace, visiting.door.mask
    hole = shown if known is None else await visiting.run(known.hole(shown))
    most = context_tokens(visiting.info, visiting.door.settings.context_tokens, max_tokens)
    if hole is shown:
        prefix, suffix = nearest(hole.prefix, hole.suffix, most)
        hole = shown = replace(hole, prefix=prefix, suffix=suffix)
    texts = (hole.prefix + hole.suffix, *(each.text for each in hole.related))
    masked = [await visiting.prepare(None, mask, each) for each in texts]
    text, at = masked[0], len(hole.prefix)
    related = tuple(replace(each, text=shown) for each, shown in zip(hole.related, masked[1:], strict=True))
    parts = PromptParts(related=related, path=hole.path, prefix=text[:at], suffix=text[at:])
    if hole is not shown:
        # A whole file: what is far from the hole is cut as in an editor's context.
        key = f"hole\0{client_of(visiting.request)}\0{hole.path}"
        situation = Situation(key, hole.path, language_of(hole.path), text, at, 0, related=related)
        parts = visiting.door.edits.around(situation, most)
    return FillRequest(
        prefix=parts.prefix,
        suffix=parts.suffix,
        path=hole.path,
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        stop=stop,
        sampling=sampling,
        max_context=most,
        deadline=deadline,
        parts=parts,
        fitted=True,
    )

"""A suggestion with pieces of a prompt in it: special tokens, tags around an excerpt, the fence of a chat's answer."""

from __future__ import annotations

import re
from typing import Final

from calomel.prompts.special import ALL
from calomel.selectivity.proposal import Proposal

_MARKERS: Final = (
    # Own ones first, then those of Qwen, StarCoder, CodeLlama, DeepSeek, Codestral, Gemma, Mercury, Zeta and chats.
    *map(re.escape, ALL),
    r"<\|/?[a-zA-Z][\w .-]{0,40}\|>",
    r"<｜[\w▁ ]{2,30}｜>",  # noqa: RUF001 (DeepSeek's own bars)
    r"</?fim[_-](?:prefix|suffix|middle|pad|begin|end|hole)>",
    r"<(?:PRE|SUF|MID|EOT)>",
    r"▁<(?:PRE|SUF|MID|EOT)>",
    r"\[(?:PREFIX|SUFFIX|MIDDLE|/?INST)\]",
    r"</?(?:start_of_turn|end_of_turn|file_sep|filename|reponame|repo_name|gh_stars|jupyter_code|endoftext|eos|bos)>",
    r"</?(?:EDIT|INSERT|NO_CHANGE|NO_EDIT|think|thinking|tool_call|tool_response)>",
    r"\[MASK\]",
    r"(?m:^(?:<{7} (?:CURRENT|ORIGINAL|HEAD)|>{7} (?:UPDATED|MODIFIED)))",
)
_MARKER: Final = re.compile("|".join(_MARKERS))
# A model that was trained on chats answers with a fenced block.
_FENCE: Final = re.compile(r"\s*(?:```|~~~)[\w+-]*[ \t]*(?:[\r\n]|\Z)")
_PROSE: Final = frozenset(
    {"", "markdown", "mdx", "quarto", "restructuredtext", "asciidoc", "plaintext", "tex", "latex"}
)
_FENCE_MARK: Final = re.compile(r"```|~~~")


def prompt_marker(proposal: Proposal) -> bool:
    """Whether it contains a mark that the document has not; a file about prompts may well have some."""
    for _, _, new in proposal.edits:
        if any(found[0] not in proposal.text for found in _MARKER.finditer(new)):
            return True
        if proposal.language_id not in _PROSE and _FENCE.match(new) and _FENCE_MARK.search(proposal.text) is None:
            return True
    return False

"""A canvas as text: what is known of an answer behind one denoising step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from calomel.prompts.tokenizer import TextTokenizer

if TYPE_CHECKING:
    from calomel.engine import CanvasState

# Stands for a token that is not known yet: one that hardly stands in code.
UNKNOWN: Final = "\u2591"


@dataclass(frozen=True, slots=True)
class CanvasText:
    """The whole answer behind one step; it takes the place of the one before.

    Attributes:
        step: forwards of this answer so far, prefill not counted.
        text: with one `UNKNOWN` for every token that is not known yet.
        pieces: the same, token by token; a character that goes over tokens is shown as U+FFFD.
        revealed: of each token, whether it is there to stay.
    """

    step: int
    text: str
    pieces: tuple[str, ...] = ()
    revealed: tuple[bool, ...] = ()


def canvas_text(state: CanvasState, tokenizer: TextTokenizer, max_tokens: int) -> CanvasText:
    """The state as text; what stands behind a revealed end token, or beyond the answer's bound, is no part of it.

    Args:
        state: as the engine recorded it.
        tokenizer: of the model.
        max_tokens: of the answer: a canvas may be longer.
    """
    ends = (at for at, token in enumerate(state.ids) if token == tokenizer.end and state.revealed[at])
    length = min(next(ends, len(state.ids)), max_tokens)
    ids, revealed = state.ids[:length], state.revealed[:length]
    known = tuple(token != tokenizer.mask for token in ids)
    return CanvasText(
        state.step,
        "".join(_runs(ids, known, tokenizer)),
        tuple(tokenizer.decode([token]) if is_known else UNKNOWN for token, is_known in zip(ids, known, strict=True)),
        tuple(shown and is_known for shown, is_known in zip(revealed, known, strict=True)),
    )


def _runs(ids: Sequence[int], known: Sequence[bool], tokenizer: TextTokenizer) -> Iterable[str]:
    """Known tokens side by side are decoded together, so that their characters are whole."""
    run: list[int] = []
    for token, is_known in zip(ids, known, strict=True):
        if is_known:
            run.append(token)
            continue
        yield tokenizer.decode(run)
        yield UNKNOWN
        run = []
    yield tokenizer.decode(run)

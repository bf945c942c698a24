"""The families of checkpoints as tables of Markdown: what is shown of each, and which checkpoint fits where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from calomel.families.family import Family, Published

_STATE: Final = (
    "| family | attention | asked for a hole, for an edit | loads | compared with a reference | run on a GPU | "
    "measured here | what is not there |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
)
_GUIDE: Final = (
    "| checkpoint | family | licence of its weights | weights in bfloat16 | in eight bits | published elsewhere |\n"
    "| --- | --- | --- | --- | --- | --- |\n"
)
_WAYS: Final = {
    "calomel": "our own format",
    "fim_tokens": "its fill-in-the-middle tokens",
    "around": "prefix and suffix as they are",
    "chat": "an instruction in its chat template",
}


def state_table(families: Iterable[Family]) -> str:
    """What loads, what was compared with a reference, what ran on a GPU, what was measured."""
    return _STATE + "".join(f"| {' | '.join(_state(family))} |\n" for family in families)


def guide_table(families: Iterable[Family]) -> str:
    """Every published checkpoint, the smallest first: licence, memory of its weights, figures of others."""
    rows = [(checkpoint, family) for family in families for checkpoint in family.facts.checkpoints]
    rows.sort(key=lambda row: (row[0].billions, row[0].name))
    return _GUIDE + "".join(f"| {' | '.join(_guide(*row))} |\n" for row in rows)


def _state(family: Family) -> Iterator[str]:
    facts, prompts = family.facts, family.prompts
    yield facts.title
    yield facts.attention
    ways = [_WAYS[prompts.fim], _WAYS[prompts.edit]]
    yield ways[0] if ways[0] == ways[1] else "; ".join(ways)
    yield "yes"
    yield f"yes (`{facts.parity}`)" if facts.parity else "no"
    yield facts.gpu or "no"
    yield facts.measured or "no"
    yield facts.limits


def _guide(checkpoint: Published, family: Family) -> Iterator[str]:
    yield checkpoint.name
    yield family.facts.title
    yield checkpoint.licence
    yield _size(checkpoint.billions * 2)
    yield _size(checkpoint.billions) if family.facts.eight_bits else "no"
    yield checkpoint.figures


def _size(gigabytes: float) -> str:
    return f"{gigabytes * 1000:.0f} MB" if gigabytes < 1 else f"{gigabytes:.1f} GB"

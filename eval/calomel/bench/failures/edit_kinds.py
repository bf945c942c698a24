"""Kinds of wrong next edits: who is to blame, the proposals, the gate or the choice; and for wrong texts, how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from calomel.bench.failures.edit_case import Block, EditCase
from calomel.bench.failures.hole_case import HoleCase
from calomel.bench.failures.hole_kinds import RULES as HOLE_RULES
from calomel.bench.failures.hole_kinds import hole_kind

WRONG_TEXT: Final = "wrong_text"


def _should_be_silent(case: EditCase) -> bool:
    return case.moment.silent


def _held_back(case: EditCase) -> bool:
    return case.result is None and case.right_proposed


def _nothing_proposed(case: EditCase) -> bool:
    return case.result is None and not case.proposed


def _only_wrong_proposals(case: EditCase) -> bool:
    return case.result is None


def _too_much(case: EditCase) -> bool:
    """One of the changes to come is there as it should be, and something besides."""
    wanted = case.wanted_blocks
    return any(block in wanted for block in case.made_blocks)


def _wrong_choice(case: EditCase) -> bool:
    return case.right_proposed


def _wrong_place(case: EditCase) -> bool:
    """No line that is to change was changed."""
    return _meeting(case) is None


RULES: Final[Mapping[str, tuple[Callable[[EditCase], bool], str]]] = {
    "should_be_silent": (_should_be_silent, "shown where nothing is to come"),
    "held_back": (_held_back, "silent, though a right edit was proposed"),
    "nothing_proposed": (_nothing_proposed, "silent, and nobody proposed anything"),
    "only_wrong_proposals": (_only_wrong_proposals, "silent, and all that was proposed is wrong"),
    "too_much": (_too_much, "a right change, and something besides"),
    "wrong_choice": (_wrong_choice, "another one was shown than the right proposal"),
    "wrong_place": (_wrong_place, "shown at a place where nothing is to come"),
}


def edit_kind(case: EditCase) -> str:
    """The first rule that holds for a wrong answer; a wrong text at the right place is one of the kinds of holes."""
    found = next((name for name, (rule, _) in RULES.items() if rule(case)), None)
    if found is not None:
        return found
    hole = as_hole(case)
    return WRONG_TEXT if hole is None else f"{WRONG_TEXT}:{hole_kind(hole)}"


def as_hole(case: EditCase) -> HoleCase | None:
    """The lines that were to change where the suggestion changed some of them, as a hole; None where it did not."""
    met = _meeting(case)
    if met is None:
        return None
    wanted, made = met
    lines = case.moment.text.splitlines(keepends=True)
    start, end = min(wanted.start, made.start), max(wanted.end, made.end)

    def with_block(block: Block) -> str:
        return "".join((*lines[start : block.start], *block.lines, *lines[block.end : end]))

    before, behind = "".join(lines[:start]), "".join(lines[end:])
    return HoleCase(
        case.moment.story.language, before, behind, with_block(wanted), with_block(made), case.moment.text
    )  # fmt: skip


def describe(kind: str) -> str:
    """What a kind says, in words."""
    prefix, _, hole = kind.partition(":")
    if prefix == WRONG_TEXT:
        told = HOLE_RULES[hole][1] if hole in HOLE_RULES else "otherwise"
        return f"the right place, a wrong text: {told}"
    return RULES[kind][1]


def _meeting(case: EditCase) -> tuple[Block, Block] | None:
    """A change to come and one that was suggested, at the same lines."""
    pairs = ((wanted, made) for wanted in case.wanted_blocks for made in case.made_blocks)
    return next((pair for pair in pairs if pair[0].start <= pair[1].end and pair[1].start <= pair[0].end), None)

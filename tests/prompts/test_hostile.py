"""Large texts that are made to be slow to read."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest
from tests.prompts.test_mercury import _TAGS, region
from tests.prompts.test_zeta import _WORDS, STOP

from calomel.prompts.edit_prompt import ForeignPromptError, parse_edits
from calomel.prompts.fim_tokens import parse_fim
from calomel.prompts.mercury import parse_mercury
from calomel.prompts.zeta import parse_zeta, zeta_answer


def read_zeta(text: str) -> None:
    read = parse_zeta(f"<[fim-suffix]><[fim-prefix]><filename>a\n<|marker_1|>{text}<[fim-middle]>")
    zeta_answer(read, read.edit.region + "x", STOP)


READERS: dict[str, tuple[list[Callable[[str], object]], list[str]]] = {
    "diff": (
        [parse_edits],
        ["-a\n b\n", "--- ", "--- x\n+++ y\n", "@@ -1,9 +1,9 @@\n", "\\" * 50 + "\n", '"\\', "@" * 40 + "\n", "-\n"],
    ),
    "fim": (
        [parse_fim, lambda text: parse_fim(text, "x"), lambda text: parse_fim(f"<|file_sep|>{text}<|fim_middle|>")],
        ["<|fim_prefix|>", "<|file_sep|>", "\n<|file_sep|>a\n", "[SUFFIX][PREFIX]", "\n+++++ ", "<PRE> <SUF>", "<|"],
    ),
    "mercury": (
        [parse_mercury, lambda text: parse_mercury(region(text))],
        [
            *(f"{tag}\n" for tag in _TAGS),
            *("<|code_to_edit|>", "<|/code_to_edit|>", "<|cursor|>", "<|", " ", "<|!@#IS_NEXT_EDIT!@#|>\n"),
            *("<|code_to_edit|>\n<|/code_to_edit|>\n", "<|current_file_content|>\n<|/current_file_content|>\n"),
        ],
    ),
    "zeta": (
        [lambda text: read_zeta(f"{text}\n=======\n"), lambda text: read_zeta(f"{text}<|marker_2|>\n")],
        [*_WORDS, "<filename>a\n", "<|marker_", "...\n", "-a\n+b\n", "<[fim-middle]>"],
    ),
}


@pytest.mark.parametrize(
    ("name", "piece"),
    [pytest.param(name, piece) for name, (_, pieces) in READERS.items() for piece in pieces],
    ids=repr,
)
def test_a_large_hostile_text_is_read_in_a_moment(name: str, piece: str) -> None:
    for read in READERS[name][0]:
        began = time.perf_counter()
        with contextlib.suppress(ForeignPromptError):
            read(piece * (500_000 // len(piece)))
        assert time.perf_counter() - began < 3

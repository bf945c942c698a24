from __future__ import annotations

from pathlib import Path

from calomel.lsp.client import COMMANDS
from calomel.suggest.silence import SilenceReason

PAGE = (Path(__file__).parents[2] / "docs" / "lsp.md").read_text(encoding="utf-8")


def test_every_silence_is_documented_with_its_sentence() -> None:
    assert [reason for reason in SilenceReason if f"| `{reason.value}` | {reason.message} |" not in PAGE] == []


def test_every_command_is_documented() -> None:
    assert [command for command in COMMANDS if f"| `{command}` |" not in PAGE] == []

"""Fixtures of the language server's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.loop_watch import _short_turns  # noqa: F401 (a fixture)
from tests.lsp.editor import Editor, Script

# As the program does, before its loop begins.
import calomel.lsp.session  # noqa: F401


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
async def editor(tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Editor]:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    editor = Editor(tmp_path / "lsp.log", script)
    yield editor
    await editor.aclose()

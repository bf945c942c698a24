"""The first line of a longer text is shown while llama.cpp writes the rest."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.lsp.editor import ADD, SECONDS, URI, Editor, inline_params
from tests.server._upstreams import Play, llama_cpp, served

from calomel.infer.completer import Completer
from calomel.infer.upstream.completer import UpstreamCompleter
from calomel.infer.upstream.exchange import Target
from calomel.workspace.settings import BackendSettings

KEY, AUTOMATIC = 1, 2
FIRST, REST = "total = a + b", "\n    return total"


@contextmanager
def _writing(editor: Editor) -> Iterator[tuple[Play, str]]:
    """A llama.cpp that writes the rest once its gate is open."""

    async def connect(settings: BackendSettings) -> Completer:
        return editor.script if settings.upstream is None else UpstreamCompleter(Target(settings.upstream))

    editor.script.connect = connect
    play = Play(tokens=(f"{FIRST}\n", REST[1:]), log_probs=(-0.01, -0.01), gate=threading.Event())
    with served(llama_cpp(play)) as url:
        yield play, url


def _shown(answer: Any) -> tuple[str, str]:
    """Name and text of the one suggestion."""
    (item,) = answer["items"]
    return str(item["command"]["arguments"][0]), str(item["insertText"]).strip()


async def _streams(play: Play) -> None:
    async with asyncio.timeout(SECONDS):
        while not any(body.get("stream") for _, body in play.asked):  # noqa: ASYNC110 (of the server's thread)
            await asyncio.sleep(0.005)


def _opened(play: Play) -> None:
    assert play.gate is not None
    play.gate.set()


async def test_the_line_comes_first_and_all_of_it_once_it_is_there(editor: Editor) -> None:
    with _writing(editor) as (play, url):
        await editor.begin(ADD, backend={"upstream": url}, configuration_filtered=True, extends=True)
        name, text = _shown(await editor.inline(1, 4, AUTOMATIC))
        assert text == FIRST
        assert not editor.shown("calomel/extended")
        _opened(play)
        assert await editor.notice("calomel/extended") == {"uri": URI, "id": name}
        asked = len(play.asked)
        assert _shown(await editor.inline(1, 4, AUTOMATIC)) == (name, FIRST + REST)
        assert len(play.asked) == asked
        assert await editor.outcomes() == {}


@pytest.mark.parametrize(("extends", "kind"), [(False, AUTOMATIC), (True, KEY)], ids=["not_agreed", "by_key"])
async def test_otherwise_it_comes_at_once_when_all_of_it_is_there(editor: Editor, *, extends: bool, kind: int) -> None:
    with _writing(editor) as (play, url):
        await editor.begin(ADD, backend={"upstream": url}, configuration_filtered=True, extends=extends)
        number = editor.start("textDocument/inlineCompletion", inline_params(1, 4, kind))
        await _streams(play)
        _opened(play)
        assert _shown((await editor.answer(number))["result"])[1] == FIRST + REST
        assert await editor.alive()
        assert not editor.shown("calomel/extended")

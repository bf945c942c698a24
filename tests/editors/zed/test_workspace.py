"""Zed's prompts hold some 500 tokens of the file; with a folder of the server's own the model reads all of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.editors.zed.answers import applied
from tests.editors.zed.events import Event
from tests.editors.zed.prompts import STOP, ask
from tests.editors.zed.sources import files

from calomel.prompts.edit_prompt import EditPrompt
from calomel.prompts.zeta import parse_zeta
from calomel.suggest.stateless import EditRoom, RegionAnswer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real files under the names that their editor gives them."""
    root = tmp_path_factory.mktemp("zed") / "work"
    for path, text in files(1, seed=8):
        place = root / Path(*Path(path).parts[1:])
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


@pytest.fixture
def zed(open_client: Callable[..., TestClient], folder: Path) -> Iterator[TestClient]:
    client = open_client(workspace=folder)
    assert client.app.state.door.workspace._related.indexer.wait(60)  # type: ignore[attr-defined]
    return client  # type: ignore[return-value]


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> list[tuple[EditPrompt, RegionAnswer]]:
    """What the room was asked and what it decided."""
    asked: list[tuple[EditPrompt, RegionAnswer]] = []
    rewrite = EditRoom.rewrite

    async def kept(self: EditRoom, filler: Any, info: Any, prompt: EditPrompt, **named: Any) -> RegionAnswer:
        answer = await rewrite(self, filler, info, prompt, **named)
        asked.append((prompt, answer))
        return answer

    monkeypatch.setattr(EditRoom, "rewrite", kept)
    return asked


@pytest.mark.slow
def test_real_excerpts_are_found_and_answers_fit_the_editors_text(
    zed: TestClient, folder: Path, rooms: list[tuple[EditPrompt, RegionAnswer]], filler: Any
) -> None:
    chance = random.Random(9)
    filler.deltas = ["total"]
    told = Counter[str]()
    known = zed.app.state.door.workspace._related.index  # type: ignore[attr-defined]
    for path in sorted(known.paths()):
        text = Path(path).read_text()
        for _ in range(4):
            cursor = chance.randint(0, len(text))
            # Typed since the file was saved.
            typed = text[:cursor] + chance.choice(("", "x = 1", "\nnew line\n")) + text[cursor:]
            asked = ask(f"work/{Path(path).relative_to(folder)}", typed, cursor, [Event("work/a.py", text, typed)])
            if asked is None or not _clean(asked.prompt):
                continue
            body = zed.post("/v1/completions", json={"prompt": asked.prompt, "stop": list(STOP)}).json()
            prompt, answer = rooms[-1]
            shown = asked.excerpt
            whole = prompt.prefix + prompt.region + prompt.suffix
            told["whole" if whole.rstrip("\n") == typed.rstrip("\n") else "excerpt"] += 1
            assert prompt.region == asked.region
            made = applied(asked, body["choices"][0]["text"])
            assert made == typed[: shown.region_start] + answer.text + typed[shown.region_end :]
            if len(prompt.prefix) > shown.region_start - shown.start:
                assert whole.rstrip("\n") == typed.rstrip("\n")
    assert told["whole"] > 4 * told["excerpt"], told


def _clean(prompt: str) -> bool:
    try:
        parse_zeta(prompt)
    except ValueError:
        return False
    return True

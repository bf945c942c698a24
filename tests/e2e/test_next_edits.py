"""Five edits that go on elsewhere, in files of held-out packages, through the language server with the shipped weights.

A person makes the first edit or two, asks, accepts, asks again where that leaves the cursor, and so on.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from calomel.bench.keystrokes import LspSession
from calomel.prompts.parts import common_prefix
from calomel.report.heldout import read_heldout

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# What the shipped model cannot do, and why: these cases must fail, so that nobody forgets to take them out of here.
UNABLE: Final[dict[str, str]] = {
    "parameter added and call sites followed": "the argument `r` at the first call counts as the beginning of `route`",
    "field added and constructor followed": "the line to change is found, but the model is not sure enough of it",
}

# A person who makes two edits at once makes one.
_PAUSE_SECONDS: Final = 1.2
_MOST_ROUNDS: Final = 8


@dataclass(frozen=True)
class Case:
    """One intent.

    Attributes:
        name: of it.
        path: how the name of the held-out file ends.
        text: of the file, where it differs from the package's: old and new.
        edits: what the person does: where (an anchor that precedes it), old text, new text.
        done: pairs of pattern and replacement that carry out the rest.
    """

    name: str
    path: str
    edits: tuple[tuple[str, str, str], ...]
    done: tuple[tuple[str, str], ...]
    spoiled: tuple[str, str] | None = None


CASES: Final = (
    Case(
        name="rename propagated over a file",
        path="jsonschema/_utils.py",
        edits=(("class URIDict", "def normalize(", "def canonical("),),
        done=((r"self\.normalize\(", "self.canonical("),),
    ),
    Case(
        name="parameter added and call sites followed",
        path="gorilla/mux/regexp.go",
        edits=(
            ("func extractVars", "output map[string]string)", "output map[string]string, route *Route)"),
            ("Store host variables", "v.host.varsN, m.Vars)", "v.host.varsN, m.Vars, r)"),
        ),
        done=((r"(extractVars\(.*, m\.Vars)\)", r"\1, r)"),),
    ),
    Case(
        name="field added and constructor followed",
        path="src/exactly_one_err.rs",
        edits=(
            ("pub struct ExactlyOneError", "    inner: I,\n", "    inner: I,\n    yielded: usize,\n"),
            ("pub(crate) fn new", "inner: I)", "inner: I, yielded: usize)"),
        ),
        done=((r"Self \{ first_two, inner \}", "Self { first_two, inner, yielded }"),),
    ),
    Case(
        name="typo fixed everywhere",
        path="flask/debughelpers.py",
        spoiled=("multipart", "mutlipart"),
        edits=(("class DebugFilesKeyError", "mutlipart", "multipart"),),
        done=((r"\bmutlipart\b", "multipart"),),
    ),
    Case(
        name="import added",
        path="jsonschema/_utils.py",
        edits=(("def extras_msg", "repr(extra) for", "json.dumps(extra) for"),),
        done=((r"import itertools\n", "import itertools\nimport json\n"),),
    ),
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Folders of our own, and one engine for all cases, which ends with the last."""
    own = tmp_path_factory.mktemp("own")
    found = dict(os.environ)
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        folder = own / name.lower()
        folder.mkdir(mode=0o700)
        found[name] = str(folder)
    yield found
    for file in own.rglob("*.json"):
        try:
            os.kill(int(json.loads(file.read_text())["pid"]), signal.SIGTERM)
        except (OSError, ValueError, KeyError, TypeError):
            continue


class Editor:
    """One open file, as an editor keeps it; columns are UTF-16 units, which are characters in these files."""

    def __init__(self, session: LspSession, file: Path, language: str) -> None:
        self.session, self.uri, self.version = session, file.as_uri(), 1
        self.text, self.cursor = file.read_text(encoding="utf-8"), 0
        document = {"uri": self.uri, "languageId": language, "version": 1, "text": self.text}
        session.notify("textDocument/didOpen", {"textDocument": document})

    def replace(self, start: int, end: int, text: str) -> None:
        self.version += 1
        change = {"range": {"start": self.place(start), "end": self.place(end)}, "text": text}
        document = {"uri": self.uri, "version": self.version}
        self.session.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        self.text = self.text[:start] + text + self.text[end:]
        self.cursor = start + len(text)

    def place(self, offset: int) -> dict[str, int]:
        before = self.text[:offset]
        return {"line": before.count("\n"), "character": offset - (before.rfind("\n") + 1)}

    def offset(self, place: dict[str, int]) -> int:
        lines = self.text.splitlines(keepends=True)
        return sum(map(len, lines[: place["line"]])) + place["character"]

    async def ask(self) -> dict[str, Any] | None:
        where = {"textDocument": {"uri": self.uri, "version": self.version}, "position": self.place(self.cursor)}
        answer = await self.session.request("textDocument/copilotInlineEdit", where)
        return answer["edits"][0] if answer["edits"] else None

    async def accept(self, edit: dict[str, Any]) -> None:
        self.replace(self.offset(edit["range"]["start"]), self.offset(edit["range"]["end"]), edit["text"])
        await self.session.request("workspace/executeCommand", edit["command"])

    async def status(self) -> dict[str, Any]:
        command = {"command": "calomel.status", "arguments": []}
        answer: dict[str, Any] = await self.session.request("workspace/executeCommand", command)
        return answer


async def carried_out(case: Case, folder: Path, environment: dict[str, str]) -> tuple[str, str, list[str]]:
    """The text that the person ends with, the one that was meant, and what the server had to say on the way."""
    held = next(each for each in read_heldout() if each.path.endswith(case.path))
    source = held.text.replace(*case.spoiled) if case.spoiled else held.text
    assert source.isascii()
    file = folder / Path(held.path).name
    file.write_text(source, encoding="utf-8")
    session = await LspSession.start([sys.executable, "-m", "calomel.cli", "lsp"], environment)
    try:
        await session.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": folder.as_uri(),
                "workspaceFolders": [{"uri": folder.as_uri(), "name": "w"}],
                "capabilities": {},
                "initializationOptions": {
                    "suggest": {"debounce_seconds": 0.0},
                    "server": {"idle_minutes": 1.0},
                },
            },
        )
        session.notify("initialized", {})
        editor = Editor(session, file, held.language)
        status = await editor.status()
        for _ in range(300):
            if status["state"] == "ready":
                break
            await asyncio.sleep(0.2)
            status = await editor.status()
        assert status["state"] == "ready", status
        for anchor, old, new in case.edits:
            at = editor.text.index(old, editor.text.index(anchor))
            change_at, change_old, change_new = minimal(at, old, new)
            editor.replace(change_at, change_at + len(change_old), change_new)
            await asyncio.sleep(_PAUSE_SECONDS)
        meant = done(editor.text, case.done)
        assert meant != editor.text
        said = []
        for _ in range(_MOST_ROUNDS):
            edit = await editor.ask()
            if edit is None:
                said.append(f"silence: {(await editor.status())['last']}")
                break
            said.append(f"{edit['range']['start']['line'] + 1}: {edit['text']!r}")
            await editor.accept(edit)
            await asyncio.sleep(_PAUSE_SECONDS)
        return editor.text, meant, said
    finally:
        await session.end()


def minimal(at: int, old: str, new: str) -> tuple[int, str, str]:
    """What a person types of an edit: without what both texts share at their ends."""
    front = common_prefix(old, new)
    back = common_prefix(old[front:][::-1], new[front:][::-1])
    return at + front, old[front : len(old) - back], new[front : len(new) - back]


def done(text: str, rest: Sequence[tuple[str, str]]) -> str:
    for pattern, replacement in rest:
        text = re.sub(pattern, replacement, text)
    return text


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case.name,
            marks=[pytest.mark.xfail(strict=True, reason=UNABLE[case.name])] if case.name in UNABLE else [],
        )
        for case in CASES
    ],
)
def test_an_edit_is_carried_on_until_it_is_done(case: Case, tmp_path: Path, environment: dict[str, str]) -> None:
    text, meant, said = asyncio.run(carried_out(case, tmp_path, environment))
    assert text == meant, "\n".join(said)

"""Hours of real typing over standard input, while suggestions are asked for: the text stays right, memory bounded."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import change_params, inline_params, open_params
from tests.lsp.program import Program

URI = "file:///workspace/skiplist.rs"
# An answer of the server may stand in the pipe for so long.
ASK_EVERY, LISTEN_EVERY = 7, 70
# What a whole day of typing in one file may add to the program.
GROWTH_MIB = 64


def recorded(name: str) -> dict[str, Any]:
    data = Path(os.environ.get("CALOMEL_DATA", Path(__file__).parents[3] / "shared" / "data"))
    path = data / "keystrokes" / name
    if not path.is_file():
        pytest.skip(f"{path} is not there; set CALOMEL_DATA to the folder of public data")
    with gzip.open(path) as file:
        found: dict[str, Any] = json.load(file)
    return found


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


class Typist:
    """Sends a recorded session as an editor would, in UTF-16 units, and keeps the text itself."""

    def __init__(self, program: Program, text: str) -> None:
        self.program = program
        self.text = text
        self.version = 1
        program.notify("textDocument/didOpen", open_params(text, URI, "rust"))

    def place(self, offset: int) -> dict[str, int]:
        start = self.text.rfind("\n", 0, offset) + 1
        return {"line": self.text.count("\n", 0, offset), "character": units(self.text[start:offset])}

    def replace(self, at: int, deleted: int, inserted: str) -> None:
        self.version += 1
        where = {"start": self.place(at), "end": self.place(at + deleted)}
        change = change_params(self.version, {"range": where, "text": inserted}, uri=URI)
        self.program.notify("textDocument/didChange", change)
        self.text = self.text[:at] + inserted + self.text[at + deleted :]
        if self.version % ASK_EVERY == 0:
            self.ask(at + len(inserted))
        if self.version % LISTEN_EVERY == 0:
            # By a key: that one reaches the model however fast the typing is.
            place = self.place(at + len(inserted))
            self.program.ask("textDocument/inlineCompletion", inline_params(place["line"], place["character"], 1, URI))

    def ask(self, offset: int) -> None:
        place = self.place(offset)
        params = inline_params(place["line"], place["character"], 2, URI)
        request = {"jsonrpc": "2.0", "id": f"typing {self.version}", "method": "textDocument/inlineCompletion"}
        self.program.send({**request, "params": params})


def resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError


def type_all(folder: Path, trace: dict[str, Any], count: int | None) -> None:
    script = {"fill": "let x = 1;", "seconds": 0.02}
    with Program(folder, script=script) as program:
        program.initialize(debug=True, suggest={"debounce_seconds": 0})
        transactions = trace["txns"][:count]
        typist = Typist(program, trace["startContent"])
        before = 0.0
        for number, transaction in enumerate(transactions):
            for at, deleted, inserted in transaction["patches"]:
                typist.replace(at, deleted, inserted)
            if number == len(transactions) // 5:
                before = resident_mib(program.process.pid)
        assert program.ask("calomel/debug/document", {"uri": URI})["text"] == typist.text
        if count is None:
            assert typist.text == trace["endContent"]
        assert resident_mib(program.process.pid) - before < GROWTH_MIB
        asked = (folder / "asked.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(asked) > len(transactions) // ASK_EVERY // 20
        assert program.ask("shutdown") is None
        program.notify("exit")
        assert program.end() == 0


def test_five_thousand_transactions_leave_the_text_right(tmp_path: Path) -> None:
    type_all(tmp_path, recorded("rustcode.json.gz"), 5000)


def test_typing_of_our_own_leaves_the_text_right(tmp_path: Path) -> None:
    """The same without any data: astral characters, deletions, several cursors, line ends of two kinds."""
    pieces = ["fn f(x: u8) {\r\n", "    // 😀 smile\n", 'let s = "é";', "\n", "}", "\t", "😀"]
    transactions = []
    length = 0
    for number in range(400):
        piece = pieces[number % len(pieces)]
        at = (number * 37) % (length + 1)
        deleted = min(length - at, number % 5)
        transactions.append({"patches": [[at, deleted, piece], [0, 0, "a"]]})
        length += len(piece) - deleted + 1
    type_all(tmp_path, {"startContent": "", "txns": transactions}, 400)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rustcode.json.gz", "sveltecomponent.json.gz"])
def test_a_whole_session_gives_its_text_within_bounds(tmp_path: Path, name: str) -> None:
    type_all(tmp_path, recorded(name), None)

"""The real language server over stdio, with a model that follows a script: started as a program by the tests.

The script is a JSON file named by CALOMEL_TEST_SCRIPT: `{"fill": ..., "also": [...], "edit": ..., "seconds": ...,
"error": ..., "loading_seconds": ..., "log_prob": ..., "pauses": ..., "ports": ..., "hub": ...}`. `fill` is the text
for every hole, or an object from the end of the prefix to the text, and `also` are other texts for it. While it
`pauses`, only the first line of a longer text is there. `edit` is an object of texts
and what they become in the region. `ports` are those where a model server may run, each with a title; a model that is
chosen there answers in the place of this one. `hub` is the address of a hub with a model that may be downloaded. What
the model was asked is appended to the file named by CALOMEL_TEST_ASKED, one JSON object a line.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.lsp.editor import SMALL, Script

from calomel.families import recommended
from calomel.infer.completer import FIRST_LINE, Candidate, CompleteAnswer, Completer, CompleteRequest, ModelInfo
from calomel.infer.upstream import running
from calomel.infer.upstream.completer import UpstreamCompleter
from calomel.infer.upstream.exchange import Target
from calomel.lsp import commands
from calomel.lsp.connection import claim_stdio
from calomel.lsp.server import Server, leave
from calomel.workspace.settings import BackendSettings


class FromFile(Script):
    """Does as a file says, which may change while the server runs."""

    def __init__(self, script: Path, asked: Path | None) -> None:
        super().__init__()
        self._script = script
        self._asked = asked

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        told = self._read()
        kind = "ahead" if request.ahead else request.kind
        note: dict[str, Any] = {"kind": kind, "prefix": request.parts.prefix[-200:]}
        try:
            await asyncio.sleep(told.get("seconds", 0))
        except asyncio.CancelledError:
            self._note(note | {"cancelled": True})
            raise
        self._note(note)
        fill = told.get("fill")
        if isinstance(fill, dict):
            fill = next((text for end, text in fill.items() if request.parts.prefix.endswith(end)), None)
        self.fill, self.also, self.edit = fill, tuple(told.get("also", ())), told.get("edit", {})
        self.error, self.log_prob = told.get("error"), told.get("log_prob", self.log_prob)
        if self.fill is not None and "\n" in self.fill:
            self._show(self.fill.partition("\n")[0])
            while self._read().get("pauses"):  # noqa: ASYNC110 (of a file)
                await asyncio.sleep(0.005)
        self.requests.clear()  # the tests read what was asked in the file; whoever measures memory keeps nothing here
        return await super().complete(request)

    def _show(self, line: str) -> None:
        FIRST_LINE.get()(CompleteAnswer((Candidate(line, (self.log_prob,)),), model="scripted"))

    async def info(self) -> ModelInfo:
        await asyncio.sleep(self._read().get("loading_seconds", 0))
        told = self._read()
        self.broken, self.reads_ahead = told.get("broken", ""), told.get("reads_ahead", False)
        return await super().info()

    def ports(self) -> list[tuple[str, int]]:
        return [(title, port) for title, port in self._read().get("ports", ())]

    def hub(self) -> str:
        return str(self._read().get("hub", ""))

    def _read(self) -> dict[str, Any]:
        return dict(json.loads(self._script.read_text(encoding="utf-8")))

    def _note(self, note: dict[str, Any]) -> None:
        if self._asked is not None:
            with self._asked.open("a", encoding="utf-8") as file:
                file.write(json.dumps(note) + "\n")


def main() -> None:
    transport = claim_stdio()
    # A print that must not reach the client.
    sys.stdout.write("noise on stdout\n")
    asked = os.environ.get("CALOMEL_TEST_ASKED")
    completer = FromFile(Path(os.environ["CALOMEL_TEST_SCRIPT"]), Path(asked) if asked else None)

    async def factory(settings: BackendSettings) -> Completer:
        if settings.upstream is None:
            return completer
        return UpstreamCompleter(Target(settings.upstream, settings.upstream_format, settings.upstream_model))

    async def played() -> list[running.Running]:
        os.environ["HF_ENDPOINT"] = completer.hub()
        vars(recommended)["ROWS"] = (replace(smallest, text=SMALL) if completer.hub() else smallest,)
        return await running.running(completer.ports())

    smallest = recommended.ROWS[0]
    # What runs on the machine of the tests, and would suit it, is none of theirs.
    vars(commands)["running"] = played
    leave(Server(completer_factory=factory).run(transport))


if __name__ == "__main__":
    main()

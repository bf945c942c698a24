"""The real language server over stdio, with a model that follows a script: started as a program by the tests.

The script is a JSON file named by CALOMEL_TEST_SCRIPT: `{"fill": ..., "also": [...], "edit": ..., "seconds": ...,
"error": ..., "loading_seconds": ..., "log_prob": ...}`. `fill` is the text for every hole, or an object from the end of
the prefix to the text, and `also` are other texts for it. `edit` is an object of texts and what they become in the
region. What the model was asked is appended to the file named by CALOMEL_TEST_ASKED, one JSON object a line.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from calomel.lsp.server import Server, leave
from calomel.lsp.transport import claim_stdio
from calomel.suggest.completer import Candidate, CompleteAnswer, CompleteRequest, CompleterError, ModelInfo


class ScriptedCompleter:
    """Answers from the script, which may change while the server runs."""

    def __init__(self, script: Path, asked: Path | None) -> None:
        self._script = script
        self._asked = asked

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        script = self._read()
        kind = "ahead" if request.ahead else request.kind
        note: dict[str, Any] = {"kind": kind, "prefix": request.parts.prefix[-200:]}
        try:
            await asyncio.sleep(script.get("seconds", 0))
        except asyncio.CancelledError:
            self._note(note | {"cancelled": True})
            raise
        self._note(note)
        if script.get("error"):
            raise CompleterError(script["error"], "as the script says")
        text = self._fill(script, request) if request.kind == "fill" else self._edit(script, request)
        if text is None:
            return CompleteAnswer((), reason="empty", model="scripted")
        candidates = tuple(
            Candidate(each, log_probs=(script.get("log_prob", -0.01),), entropies=(0.01,), end_log_prob=-0.01)
            for each in (text, *(script.get("also", []) if request.kind == "fill" else []))
        )
        return CompleteAnswer(candidates, context_tokens=100, cached_tokens=95, model="scripted")

    async def info(self) -> ModelInfo:
        await asyncio.sleep(self._read().get("loading_seconds", 0))
        if self._read().get("broken"):
            raise CompleterError("failed", "The weights are damaged.")
        ahead = self._read().get("reads_ahead", False)
        return ModelInfo("scripted", "0", ("fill", "edit"), 32768, 2048, None, "0", reads_ahead=ahead)

    async def aclose(self) -> None:
        pass

    @staticmethod
    def _fill(script: dict[str, Any], request: CompleteRequest) -> str | None:
        wanted = script.get("fill")
        if isinstance(wanted, dict):
            return next((text for end, text in wanted.items() if request.parts.prefix.endswith(end)), None)
        return wanted

    @staticmethod
    def _edit(script: dict[str, Any], request: CompleteRequest) -> str | None:
        text = request.parts.region.text if request.parts.region else ""
        for before, after in script.get("edit", {}).items():
            text = text.replace(before, after)
        return text

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
    completer = ScriptedCompleter(Path(os.environ["CALOMEL_TEST_SCRIPT"]), Path(asked) if asked else None)

    async def factory(_: object) -> ScriptedCompleter:
        return completer

    leave(Server(completer_factory=factory).run(transport))


if __name__ == "__main__":
    main()

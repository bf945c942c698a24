"""`calomel bench use`: what a simulated person sees who types held-out files in `calomel lsp`.

The person types every key, rests now and then, reads what appears at a rest, and accepts what is right. Each figure has
one definition, in `NOTES`.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from calomel.bench.keystrokes import LspSession, SessionError, engine_ended
from calomel.bench.model import private_folders
from calomel.report.heldout import HeldoutFile, read_heldout
from calomel.report.result import Report, Value, figures_table, percentile, put_interval, wilson
from calomel.report.running import Progress, load_before

FILES, QUICK_FILES = 8, 2
# Characters typed in each file, from the line at this share of it.
TYPED, BEGIN = 240, 0.35
# Shorter files have too little text around the place.
SHORTEST = 1500
# Seconds between keys (the median), and of a rest, which comes after a tenth of the keys and at each new line.
KEY_SECONDS, REST_SECONDS, RESTS = 0.12, 1.0, 0.1
READY_SECONDS = 120.0
# Nobody accepts less.
LEAST = 3

NOTES: Final = (
    (
        "A simulated person types 240 characters of each held-out file, in the place where the author wrote them: a key"
        " every 0.12 s (median; the spread of a log-normal of 0.5), and a pause of one second after every tenth key on"
        " average and at each new line. At a pause, it accepts what is right, or right in its first line, from three"
        " characters on. Settings are as shipped."
    ),
    (
        "`time_p50_ms`, `time_p95_ms`: from the last key to text that was not visible before. Cold: the first text in a"
        " file. Warm: every later one. Answers without text do not count."
    ),
    (
        "`shown_share`: pauses at which text is visible. Of these, `right_share`: all of it is what the author wrote;"
        " `first_line_share`: its first line is, more lines are not; `wrong_word_share`: it is wrong from its first"
        " word. The rest is right at first and wrong later in its first line."
    ),
    "`saved_share`: characters that acceptance wrote, less one key for each, of all characters.",
)


@dataclass(slots=True)
class _Use:
    """What was counted; times in milliseconds."""

    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    pauses: int = 0
    shown: int = 0
    right: int = 0
    first_line: int = 0
    wrong_word: int = 0
    accepted: int = 0
    saved: int = 0
    characters: int = 0

    def flat(self) -> dict[str, Value]:
        """The figures by name."""
        times = [*self.cold, *self.warm]
        found: dict[str, Value] = {}
        for name, values in (("time", times), ("cold", self.cold), ("warm", self.warm)):
            found |= {f"{name}_p{percent}_ms": percentile(values, percent) for percent in (50, 95)}
        found |= {"texts": len(times), "pauses": self.pauses, "shown": self.shown, "accepted": self.accepted}
        put_interval(found, "shown_share", wilson(self.shown, self.pauses))
        for name in ("right", "first_line", "wrong_word"):
            put_interval(found, f"{name}_share", wilson(getattr(self, name), self.shown))
        found["characters"] = self.characters
        found["saved_share"] = round(self.saved / self.characters, 4) if self.characters else None
        return found


def run_use(model: Path | None = None, upstream: str | None = None, *, quick: bool = False, seed: int = 1) -> Report:
    """Type through the real program. Raises SessionError when it does not become ready.

    Args:
        model: a checkpoint folder or a GGUF file; None for the shipped one.
        upstream: address of another server, which is asked instead.
        quick: fewer files.
        seed: of the person's pace.
    """
    load = load_before()
    use = _Use()
    with tempfile.TemporaryDirectory(prefix="calomel-bench-") as folder, engine_ended(Path(folder)):
        backend = {"idle_minutes": 2, **({"model": str(model)} if model else {})}
        backend = {"upstream": upstream} if upstream else backend
        pace = random.Random(seed)  # noqa: S311 (a person's)
        name = asyncio.run(_type_all(backend, Path(folder), use, QUICK_FILES if quick else FILES, pace))
    flat = {"model": name, **use.flat(), **load}
    words = re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()
    table = figures_table("Use", {key: value for key, value in flat.items() if key != "model"})
    return Report(f"bench use {words}{' quick' if quick else ''}", flat, (table,), NOTES)


async def _type_all(backend: dict[str, Any], folder: Path, use: _Use, count: int, pace: random.Random) -> str:
    """Type in `count` files of as many packages as there are; returns the model's name."""
    environment = {**os.environ, **private_folders(folder)}
    session = await LspSession.start([sys.executable, "-m", "calomel.cli", "lsp"], environment)
    progress = Progress()
    try:
        name = await _ready(session, backend, folder)
        files = _files(count)
        progress.phase("files", len(files))
        for number, file in enumerate(files):
            await _Typist(session, use, pace, file, (folder / f"{number}-{Path(file.path).name}").as_uri()).type()
            progress.step()
        return name
    finally:
        await session.end()


def _files(count: int) -> list[HeldoutFile]:
    """The first long file of each package, until there are enough."""
    found: dict[tuple[str, int], HeldoutFile] = {}
    seen: dict[str, int] = {}
    for file in read_heldout():
        if len(file.text) >= SHORTEST:
            seen[file.package] = seen.get(file.package, 0) + 1
            found[file.package, seen[file.package]] = file
    return [found[key] for key in sorted(found, key=lambda key: (key[1], key[0]))][:count]


async def _ready(session: LspSession, backend: dict[str, Any], folder: Path) -> str:
    """Greet the server and wait for its model; returns the model's name."""
    options = {"backend": backend, "extensions": True, "configuration_filtered": True, "log": {"outcomes": False}}
    await session.request(
        "initialize",
        {
            "processId": os.getpid(),
            "rootUri": folder.as_uri(),
            "capabilities": {"textDocument": {"inlineCompletion": {"dynamicRegistration": False}}},
            "initializationOptions": {"calomel": options},
        },
    )
    session.notify("initialized", {})
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        status = await session.request("workspace/executeCommand", {"command": "calomel.status", "arguments": []})
        if status["state"] == "ready":
            return str(status["model"])
        await asyncio.sleep(0.1)
    raise SessionError(f"the model is not ready after {READY_SECONDS:.0f} s: {status['message']}")


class _Typist:
    """The person at one file, whose text there is known."""

    def __init__(self, session: LspSession, use: _Use, pace: random.Random, file: HeldoutFile, uri: str) -> None:
        begin = file.text.find("\n", int(len(file.text) * BEGIN)) + 1
        self._wanted = file.text[begin : begin + TYPED]
        rest = file.text[begin + TYPED :]
        self._text = f"{file.text[:begin]}\n{rest.partition(chr(10))[2]}"
        self._at, self._version, self._uri = begin, 1, uri
        self._session, self._use, self._pace = session, use, pace
        self._visible = ""
        self._is_cold, self._asks = True, 0
        self._asked: asyncio.Task[Any] | None = None
        document = {"uri": uri, "languageId": file.language, "version": 1, "text": self._text}
        session.notify("textDocument/didOpen", {"textDocument": document})

    async def type(self) -> None:
        """All of the text; what is accepted is not typed."""
        self._use.characters += len(self._wanted)
        done = 0
        while done < len(self._wanted):
            key = self._wanted[done]
            done += 1
            is_rest = key == "\n" or self._pace.random() < RESTS
            seconds = REST_SECONDS if is_rest else KEY_SECONDS * self._pace.lognormvariate(0, 0.5)
            item = await self._press(key, seconds)
            if is_rest:
                done += await self._look(item, self._wanted[done:])
        if self._asked is not None:
            await asyncio.wait({self._asked})
            self._asked.exception()
        self._session.notify("textDocument/didClose", {"textDocument": {"uri": self._uri}})

    async def _press(self, key: str, seconds: float) -> Any:
        """Type a key, and see what appears before the next; returns the item that is visible then."""
        self._insert(key)
        # Of what was visible, the rest is, as long as the key continues it; anything else is new.
        self._visible = self._visible[1:] if self._visible.startswith(key) else ""
        if self._asked is not None:
            self._session.notify("$/cancelRequest", {"id": self._asked.get_name()})
            self._asked.add_done_callback(lambda asked: asked.exception())
        self._asks += 1
        identity = f"use-{id(self)}-{self._asks}"
        began = time.monotonic()
        params = {"textDocument": {"uri": self._uri}, "position": self._place(), "context": {"triggerKind": 2}}
        asked = self._session.request("textDocument/inlineCompletion", params, identity)
        self._asked = asyncio.create_task(asked, name=identity)
        await asyncio.wait({self._asked}, timeout=seconds)
        took = time.monotonic() - began
        item = None
        if self._asked.done() and not self._asked.cancelled() and self._asked.exception() is None:
            item = next(iter((self._asked.result() or {}).get("items", ())), None)
            self._asked = None
        text = "" if item is None else self._rest_of(item)
        if text and not (self._visible and text.startswith(self._visible)):
            (self._use.cold if self._is_cold else self._use.warm).append(1e3 * took)
            self._is_cold = False
        self._visible = text
        await asyncio.sleep(max(0.0, seconds - (time.monotonic() - began)))
        return item

    async def _look(self, item: Any, wanted: str) -> int:
        """Judge what is visible at a pause; returns how many characters were accepted."""
        use, text = self._use, self._visible.rstrip()
        use.pauses += 1
        if not text:
            return 0
        use.shown += 1
        line, word = text.partition("\n")[0].rstrip(), re.match(r"\s*(?:\w+|[^\w\s]+)", text)
        taken = ""
        if wanted.startswith(text):
            use.right += 1
            taken = text
        elif line and line != text and wanted.startswith(f"{line}\n"):
            use.first_line += 1
            taken = line
        elif word is not None and not wanted.startswith(word[0]):
            use.wrong_word += 1
        if len(taken) < LEAST:
            return 0
        self._insert(taken)
        use.accepted += 1
        use.saved += len(taken) - 1
        self._visible = ""
        if item.get("command"):
            await self._session.request("workspace/executeCommand", item["command"])
        return len(taken)

    def _rest_of(self, item: Any) -> str:
        """What an item adds behind the cursor, of which it may repeat what is typed."""
        text = str(item["insertText"])
        place = item.get("range")
        return text if place is None else text[self._place()["character"] - place["start"]["character"] :]

    def _insert(self, text: str) -> None:
        self._version += 1
        place = self._place()
        self._session.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": self._uri, "version": self._version},
                "contentChanges": [{"range": {"start": place, "end": place}, "text": text}],
            },
        )
        self._text = self._text[: self._at] + text + self._text[self._at :]
        self._at += len(text)

    def _place(self) -> dict[str, int]:
        """The cursor, as the protocol has it."""
        before = self._text[: self._at]
        column = len(before[before.rfind("\n") + 1 :].encode("utf-16-le")) // 2
        return {"line": before.count("\n"), "character": column}

"""`calomel bench keystrokes`: from a keystroke to its suggestion, through the real `calomel lsp`.

A private workspace of real files, a private runtime folder (so that no engine server of the user is touched), and an
editor's messages over the program's own pipes. Each budget has a language server of its own; the engine server behind
them is started by the first, as it is for a user.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol.converters import get_converter
from pygls.client import JsonRPCClient
from pygls.exceptions import JsonRpcException
from pygls.protocol import JsonRPCProtocol, JsonRPCResponseMessage

from calomel.bench.model import private_folders
from calomel.report.result import Report, Value, figures_table, percentile
from calomel.report.running import Progress, load_before

BUDGETS = (2048, 8192)
# A file of 25,000 tokens, and its neighbours as related code.
FILE, NEIGHBOURS = "argparse.py", ("asyncio", "email", "http", "json", "logging", "unittest", "urllib")
# Far enough into the file that the text before it fills a budget of 8K.
LINE = 1400
LINES, QUICK_LINES = 12, 3
STARTS, QUICK_STARTS = 5, 2
CHANGES = 400
# In lines, relative to where the typing happens.
JUMPS = (-300, 300, -200, 250)
READY_SECONDS = 90.0
# Lines with less text than this say little about typing.
SHORT_LINE = 20
SETTLE_SECONDS = 1.5
# From opening a file to the first question about it.
REST_SECONDS = 2.0
# A context is ready when only its end has to be encoded.
READY = 0.95
# Reading the workspace takes a few seconds.
SETTLED_ASKS, SETTLED_PAUSE = 8, 0.5

NOTES = (
    (
        "A keystroke is a didChange of one character followed by an inlineCompletion request; its time runs from"
        " sending the first to receiving the answer to the second, without a pause. The next key waits for the"
        " answer. The filter is as shipped: if it hides an answer, the next key asks the model again."
        " `answered_share`: keystrokes with a visible answer. `null_ms`: the time of those without one."
    ),
    (
        "`change_p50_ms`: a didChange followed by a trivial request, minus the median of that request by itself,"
        " while the server computes suggestions."
    ),
    (
        "`prefix_reuse`: the share of context tokens that the engine found in its prefix cache: after a keystroke,"
        " after an edit some lines away (`settled`), and after the cursor jumped 200 to 300 lines (`jump`); with"
        " 8,192 tokens of context, `_2k` with 2,048. `context_ready_share`: the share of questions after a keystroke"
        " that found at least 95 % of their context there."
    ),
    (
        "`first_suggestion_ms`: from starting the program to its first answer, with 2,048 tokens."
        " `rested_suggestion_ms`: the first answer with 8,192, two seconds after opening the file."
    ),
)


@dataclass(slots=True)
class _Times:
    """Collects milliseconds and shares."""

    suggest: dict[int, list[float]] = field(default_factory=dict)
    null: list[float] = field(default_factory=list)
    reuse: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    context: dict[int, int] = field(default_factory=dict)
    change: list[float] = field(default_factory=list)
    trivial: list[float] = field(default_factory=list)
    initialize: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    rested: list[float] = field(default_factory=list)
    answered: int = 0
    asked: int = 0


def run_keystrokes(model: Path | None = None, *, quick: bool = False) -> Report:
    """Drive the real program; raises SessionError when it does not become ready.

    Args:
        model: checkpoint folder; None for the shipped one.
        quick: fewer lines and starts.
    """
    load = load_before()
    times = _Times()
    with tempfile.TemporaryDirectory(prefix="calomel-bench-") as folder, engine_ended(Path(folder)):
        asyncio.run(_measure(model, Path(folder), times, Progress(), quick=quick))
    flat = {**_flat(times), **load}
    name = "bench keystrokes quick" if quick else "bench keystrokes"
    return Report(name, flat, (figures_table("Keystrokes", flat),), NOTES)


async def _measure(model: Path | None, folder: Path, times: _Times, progress: Progress, *, quick: bool) -> None:
    workspace = _workspace(folder)
    environment = {**os.environ, **private_folders(folder)}
    command = [sys.executable, "-m", "calomel.cli", "lsp"]
    starts = QUICK_STARTS if quick else STARTS
    progress.phase("starts", starts)
    for _ in range(starts):
        began = time.perf_counter()
        session = await LspSession.start(command, environment)
        await _initialize(session, workspace, BUDGETS[0], model)
        times.initialize.append((time.perf_counter() - began) * 1e3)
        await session.end()
        progress.step()
    for budget in BUDGETS:
        began = time.perf_counter()
        session = await LspSession.start(command, environment)
        try:
            editor = _Editor(session, workspace / FILE)
            await _initialize(session, workspace, budget, model)
            if budget == BUDGETS[0]:
                editor.open()
                await editor.first_answer()
                times.first.append((time.perf_counter() - began) * 1e3)
            else:
                await editor.status()  # the program is running
                editor.open()
                await asyncio.sleep(REST_SECONDS)
                began = time.perf_counter()
                await editor.first_answer()
                times.rested.append((time.perf_counter() - began) * 1e3)
            await editor.settled()
            progress.say(f"budget {budget}: ready")
            await _type(editor, budget, QUICK_LINES if quick else LINES, times, progress)
            if budget == BUDGETS[-1]:
                await _changes(editor, times)
        finally:
            await session.end()


class _Editor:
    """One open document, as an editor would keep it."""

    def __init__(self, session: LspSession, path: Path) -> None:
        self.session = session
        self.uri = path.as_uri()
        self.lines = path.read_text(encoding="utf-8").split("\n")
        self._version = 1

    def open(self) -> None:
        """Open the document with the cursor at `LINE`, with the messages that Calomel's editors send."""
        document = {"uri": self.uri, "languageId": "python", "version": 1, "text": "\n".join(self.lines)}
        self.session.notify("textDocument/didOpen", {"textDocument": document})
        place = {"textDocument": {"uri": self.uri}, "position": {"line": LINE, "character": 0}}
        self.session.notify("textDocument/didFocus", place)

    def replace(self, line: int, start: int, end: int, text: str) -> None:
        """Replace columns of one line (the file is ASCII, so columns are utf-16 units)."""
        self._version += 1
        before = self.lines[line]
        self.lines[line] = before[:start] + text + before[end:]
        where = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
        self.session.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": self.uri, "version": self._version},
                "contentChanges": [{"range": where, "text": text}],
            },
        )

    async def ask(self, line: int, column: int, *, explicit: bool = False) -> Any:
        """Ask for an inline completion."""
        return await self.session.request(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": self.uri},
                "position": {"line": line, "character": column},
                "context": {"triggerKind": 1 if explicit else 2},
            },
        )

    async def status(self) -> dict[str, Any]:
        """The status that the program reports."""
        answer = await self.session.request("workspace/executeCommand", {"command": "calomel.status", "arguments": []})
        return answer if isinstance(answer, dict) else {}

    async def first_answer(self) -> None:
        """Ask until the model has answered; raises SessionError when it does not within 90 seconds."""
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            await self.ask(LINE, 0, explicit=True)
            last = (await self.status()).get("last_request")
            if last:
                return
            await asyncio.sleep(0.05)
        raise SessionError("no suggestion within 90 seconds; `calomel lsp` writes its log; see calomel.showLog")

    async def settled(self) -> None:
        """Ask until the context no longer changes: the workspace is read, and tokens are counted exactly."""
        sizes: list[int] = []
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until and (len(sizes) < SETTLED_ASKS or len(set(sizes[-SETTLED_ASKS:])) > 1):
            await self.ask(LINE, 0, explicit=True)
            sizes.append(((await self.status()).get("last_request") or {}).get("context_tokens", 0))
            await asyncio.sleep(SETTLED_PAUSE)


async def _type(editor: _Editor, budget: int, count: int, times: _Times, progress: Progress) -> None:
    """Type real lines again, key by key, waiting for each answer; then edit elsewhere, then jump."""
    numbers = [number for number in range(LINE, LINE + 400) if len(editor.lines[number].strip()) > SHORT_LINE][:count]
    milliseconds = times.suggest.setdefault(budget, [])
    progress.phase(f"lines at {budget}", len(numbers))
    for number in numbers:
        text = editor.lines[number]
        start = len(text) - len(text.lstrip())
        editor.replace(number, start, len(text), "")
        await editor.ask(number, start, explicit=True)
        for column in range(start, len(text)):
            began = time.perf_counter()
            editor.replace(number, column, column, text[column])
            answer = await editor.ask(number, column + 1)
            milliseconds.append((time.perf_counter() - began) * 1e3)
            times.asked += 1
            if answer and answer.get("items"):
                times.answered += 1
            else:
                times.null.append(milliseconds[-1])
            _note_reuse(times, "", budget, await editor.status())
        progress.step()
    for step in range(3):
        editor.replace(LINE - 40 - 20 * step, 0, 0, f"# note {step}\u0020")
        await asyncio.sleep(SETTLE_SECONDS)
        # An edit settles when the next one begins elsewhere.
        number = numbers[step % len(numbers)]
        column = len(editor.lines[number])
        editor.replace(number, column, column, " ")
        await editor.ask(number, column + 1, explicit=True)
        _note_reuse(times, "_settled", budget, await editor.status())
    for step in JUMPS:
        line = LINE + step
        await editor.ask(line, len(editor.lines[line]), explicit=True)
        _note_reuse(times, "_jump", budget, await editor.status())
    times.context[budget] = ((await editor.status()).get("last_request") or {}).get("context_tokens", 0)


async def _changes(editor: _Editor, times: _Times) -> None:
    """Types without waiting for suggestions, while one is always being computed."""
    for _ in range(CHANGES // 4):
        times.trivial.append(await _trivial(editor))
    asked: asyncio.Task[Any] | None = None
    for step in range(CHANGES):
        if asked is None or asked.done():
            asked = asyncio.create_task(editor.ask(LINE, len(editor.lines[LINE])))
        began = time.perf_counter()
        column = len(editor.lines[LINE])
        editor.replace(LINE, column, column, "x" if step % 40 else " ")
        await _trivial(editor)
        times.change.append((time.perf_counter() - began) * 1e3)
    if asked is not None:
        await asked


async def _trivial(editor: _Editor) -> float:
    began = time.perf_counter()
    await editor.session.request("getVersion", {})
    return (time.perf_counter() - began) * 1e3


def _note_reuse(times: _Times, name: str, budget: int, status: dict[str, Any]) -> None:
    """Notes the cached share of a request that reached the model; many are answered by the current offer."""
    last = status.get("last_request") or {}
    if last.get("context_tokens") and last != times.last:
        times.reuse.setdefault((name, budget), []).append(last["cached_tokens"] / last["context_tokens"])
    times.last = last


async def _initialize(session: LspSession, workspace: Path, budget: int, model: Path | None) -> None:
    options: dict[str, Any] = {
        "suggest": {"debounce_seconds": 0, "context_tokens": budget},
        "backend": {"idle_minutes": 2, **({"model": str(model)} if model else {})},
    }
    await session.request(
        "initialize",
        {
            "processId": os.getpid(),
            "rootUri": workspace.as_uri(),
            "workspaceFolders": [{"uri": workspace.as_uri(), "name": "bench"}],
            "capabilities": {"textDocument": {"inlineCompletion": {"dynamicRegistration": False}}},
            "initializationOptions": options,
        },
    )
    session.notify("initialized", {})


def _workspace(folder: Path) -> Path:
    """A copy of some packages of the running Python's library."""
    workspace = folder / "workspace"
    workspace.mkdir()
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copy(library / FILE, workspace / FILE)
    for name in NEIGHBOURS:
        shutil.copytree(library / name, workspace / name, ignore=shutil.ignore_patterns("__pycache__", "test*"))
    return workspace


@contextmanager
def engine_ended(folder: Path) -> Iterator[None]:
    """Stops the engine server that the language server started."""
    try:
        yield
    finally:
        for path in folder.joinpath("xdg_runtime_dir").rglob("*.json"):
            with contextlib.suppress(OSError, ValueError, KeyError):
                os.kill(int(json.loads(path.read_text(encoding="utf-8"))["pid"]), signal.SIGTERM)


def _flat(times: _Times) -> dict[str, Value]:
    trivial = percentile(times.trivial, 50) or 0.0
    change = [max(0.0, value - trivial) for value in times.change]
    small, large = (times.suggest.get(budget, []) for budget in BUDGETS)
    return {
        "change_p50_ms": percentile(change, 50),
        "change_p99_ms": percentile(change, 99),
        "suggest_2k_p50_ms": percentile(small, 50),
        "suggest_2k_p95_ms": percentile(small, 95),
        "suggest_8k_p50_ms": percentile(large, 50),
        "suggest_8k_p95_ms": percentile(large, 95),
        "suggest_n": len(large),
        "null_ms_p50": percentile(times.null, 50),
        "null_ms_p95": percentile(times.null, 95),
        "context_2k_tokens": times.context.get(BUDGETS[0]),
        "context_8k_tokens": times.context.get(BUDGETS[1]),
        **{
            f"prefix_reuse{name}{tail}": _mean(times.reuse.get((name, budget), []))
            for name in ("", "_settled", "_jump")
            for budget, tail in zip(BUDGETS, ("_2k", ""), strict=True)
        },
        "initialize_ms": percentile(times.initialize, 50),
        "first_suggestion_ms": percentile(times.first, 50),
        "rested_suggestion_ms": percentile(times.rested, 50),
        "context_ready_share": _mean([float(share >= READY) for share in times.reuse.get(("", BUDGETS[1]), [])]),
        "answered_share": round(times.answered / times.asked, 4) if times.asked else None,
    }


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


# An answer that takes longer is a hang, not a slow answer.
ANSWER_SECONDS = 120.0
END_SECONDS = 10.0


class SessionError(RuntimeError):
    """The program ended, or answered with an error; the message says which."""


def _plain() -> Any:
    """Answers as JSON has them."""
    converter = get_converter()
    converter.register_structure_hook(JsonRPCResponseMessage, lambda values, kind: kind(**values))
    return converter


class LspSession(JsonRPCClient):
    """One process and one connection. Requests may overlap; responses are matched by id."""

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str]) -> LspSession:
        """Start `command` with pipes; what it writes to stderr is dropped."""
        session = cls(JsonRPCProtocol, _plain)
        session.feature("workspace/configuration")(lambda asked: [None] * len(asked.items))
        for told in ("calomel/silence", "calomel/status"):
            session.feature(told)(lambda _: None)
        await session.start_io(*command, env=dict(env))
        if session._server is not None and session._server.stderr is not None:
            session._async_tasks.append(asyncio.create_task(session._server.stderr.read()))
        return session

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self.protocol.notify(method, params)

    async def request(self, method: str, params: object, identity: str | None = None) -> Any:
        """Send a request, called `identity`, and wait for its result.

        Raises:
            SessionError: the response is an error, or the program has ended.
        """
        try:
            asked = self.protocol.send_request_async(method, params, msg_id=identity)
            return await asyncio.wait_for(asked, ANSWER_SECONDS)
        except (JsonRpcException, RuntimeError, ConnectionError) as error:
            raise SessionError(str(error)) from error

    async def end(self) -> None:
        """Shut the program down as an editor does; kill it when it does not comply."""
        if self._server is None:
            return
        with contextlib.suppress(SessionError, TimeoutError):
            await self.request("shutdown", None)
            self.notify("exit", None)
            await asyncio.wait_for(self._server.wait(), END_SECONDS)
        if self._server.returncode is None:
            self._server.kill()
        await self.stop()  # type: ignore[no-untyped-call]

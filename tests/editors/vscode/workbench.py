"""A real VS Code with the extension, driven as a person would: keys go in, and the screen is looked at."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import psutil
from tests.editors.programs import Programs
from tests.editors.shared import RENAME, Scripted
from tests.lsp.program import REAL, SCRIPTED, environment

# Machines that do something else at the same time take their time.
SECONDS = 30.0
# The first start of a workbench on a busy machine.
START_SECONDS = 180.0

WIDTH, HEIGHT = 1000, 560

# The server waits for no pause in the typing and reads nothing but the open files.
SETTINGS: dict[str, Any] = {
    "calomel.suggest.debounceSeconds": 0,
    "calomel.workspace.index": False,
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "chat.disableAIFeatures": True,
    "security.workspace.trust.enabled": False,
    "editor.minimap.enabled": False,
    "editor.autoClosingBrackets": "never",
    "editor.autoClosingQuotes": "never",
    "editor.autoIndent": "none",
    "editor.cursorBlinking": "solid",
    "files.autoSave": "afterDelay",
    "files.autoSaveDelay": 50,
    "git.enabled": False,
    "extensions.ignoreRecommendations": True,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
}


class Workbench(Scripted):
    """One VS Code and, once it is started, one language server with a model that follows a script."""

    poll = 0.02

    def __init__(
        self,
        programs: Programs,
        vsix: Path,
        folder: Path,
        *,
        command: Sequence[str] | None = SCRIPTED,
        settings: dict[str, Any] | None = None,
        script: dict[str, Any] | None = None,
        path: Sequence[Path] = (),
    ) -> None:
        self.folder = folder
        self.files = folder / "project"
        self.files.mkdir()
        self.seconds = SECONDS
        self._opened, self._name = 0, ""
        self.data, self.extensions = folder / "data", folder / "extensions"
        self._programs = programs
        self._environment = environment(folder, {"fill": None} | (script or {}))
        # The folders where programs may lie are the test's own.
        self._environment |= {
            "HOME": str(folder / "home"),
            "LC_ALL": "C.UTF-8",
            "PATH": os.pathsep.join(map(str, [*path, programs.node.parent, "/usr/bin", "/bin"])),
        }
        (folder / "home").mkdir()
        # A login shell is asked for the PATH, which makes one of its own.
        profile = f"export PATH='{self._environment['PATH']}'\n"
        (folder / "home" / ".profile").write_text(profile, encoding="utf-8")
        self.program = folder / "bin" / "calomel"
        if command is not None:
            self.install(command)
        self.set(({"calomel.path": str(self.program)} if command is not None else {}) | (settings or {}))
        self._log = (folder / "workbench.log").open("wb")
        subprocess.run(
            [*self._base(), "--install-extension", str(vsix)],
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
            check=True,
            timeout=120,
        )
        self._start()

    def _base(self) -> list[str]:
        return [str(self._programs.code_server), f"--user-data-dir={self.data}", f"--extensions-dir={self.extensions}"]

    def _start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        quiet = ["--auth=none", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"]
        self.process = subprocess.Popen(
            [*self._base(), *quiet, f"--bind-addr=127.0.0.1:{self.port}"],
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self.driver = subprocess.Popen(
            [
                self._programs.node,
                Path(__file__).parent / "driver.mjs",
                self._programs.playwright,
                self._programs.chromium,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=self._environment,
            start_new_session=True,
        )
        try:
            self._open_window()
        except BaseException:
            # Nobody else would end what was started.
            self.__exit__()
            raise

    def _open_window(self) -> None:
        self._wait_for_port()
        url = f"http://127.0.0.1:{self.port}/?folder={self.files}"
        self.ask("open", url=url, width=WIDTH, height=HEIGHT, scale=2)

    def _wait_for_port(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5):
                    return
            except OSError:
                assert time.monotonic() < deadline, "VS Code does not listen"
                time.sleep(0.1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the browser, then the workbench with all that it started."""
        assert self.driver.stdin is not None
        assert self.driver.stdout is not None
        self.driver.stdin.close()
        for process in (self.driver, self.process):
            if process is self.process:
                self._signal(process, signal.SIGTERM)
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self._signal(process, signal.SIGKILL)
                process.wait()
            self._signal(process, signal.SIGKILL)
        self.driver.stdout.close()
        self._log.close()

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        # Of the group that was started here, and of no other.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)

    def ask(self, action: str, **what: Any) -> Any:
        """Have the browser do something."""
        assert self.driver.stdin is not None
        assert self.driver.stdout is not None
        self.driver.stdin.write(json.dumps({"action": action, **what}).encode() + b"\n")
        self.driver.stdin.flush()
        line = self.driver.stdout.readline()
        assert line, "the browser ended"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def see(self, name: str) -> Any:
        """What a function of `eyes.js` sees."""
        return self.ask("see", name=name)

    def report(self) -> str:
        """What a person would look at first when a test fails."""
        self.screenshot(self.folder / "failed.png")
        asked = [(each.get("kind"), each["prefix"][-20:]) for each in self.asked()]
        return (
            f"{self.folder}/failed.png\nlines {self.lines()} place {self.place()!r} ghost {self.ghost()!r} "
            f"shown {self.shown()} struck {self.struck()} status {self.status()} toasts {self.toasts()} "
            f"asked {asked[-4:]} outcomes {self.records()[-4:]}"
        )

    # The program, its model and its settings.

    def install(self, command: Sequence[str]) -> None:
        """Put a program in place that runs this as its language server, and the real one for all else."""
        self.program.parent.mkdir(parents=True, exist_ok=True)
        quoted = " ".join(f"'{part}'" for part in command)
        real = " ".join(f"'{part}'" for part in REAL[:-1])
        self.program.write_text(f'#!/bin/sh\n[ "$1" = lsp ] || exec {real} "$@"\nexec {quoted}\n', encoding="utf-8")
        self.program.chmod(0o755)

    def set(self, settings: dict[str, Any]) -> None:
        """Change settings of the user; None takes one back."""
        # What is in the user's own file counts as it was at the start: a change of it is not seen here.
        for part in ("User", "Machine"):
            path = self.data / part / "settings.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else dict(SETTINGS)
            told = {name: value for name, value in settings.items() if part == "Machine" or "calomel." not in name}
            new = {name: value for name, value in {**known, **told}.items() if value is not None}
            path.write_text(json.dumps(new, indent=2), encoding="utf-8")

    def server_pids(self) -> list[int]:
        """The running language servers of this workbench: those that know its script."""
        script = str(self.folder / "script.json")
        return [
            process.pid
            for process in psutil.process_iter(["cmdline", "environ"])
            if SCRIPTED[-1] in (process.info["cmdline"] or ())
            and (process.info["environ"] or {}).get("CALOMEL_TEST_SCRIPT") == script
        ]

    # Hands.

    def open(self, text: str, name: str | None = None) -> Path:
        """Edit a new file with this text, the cursor at its beginning: VS Code remembers places in old ones."""
        self._opened += 1
        name = self._name = name or f"file{self._opened}.py"
        path = self.files / name
        path.write_bytes(text.encode())
        self.press("Control+p")
        self.until(lambda: self.see("quickInput") is not None, "a file can be named")
        self.ask("insert", text=str(path))
        self.until(lambda: any(name in row for row in self.see("quickRows")), f"{name} is found")
        self.press("Enter")
        self.until(lambda: name in self.see("activeTab"), f"{name} is open")
        wanted = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")[0]
        self.until(lambda: (self.lines() or [""])[0] == wanted, "the text is there")
        self.press("Control+Home")
        self.until(lambda: self.place() == (1, 1), "the cursor is at the beginning")
        return path

    def warm_up(self) -> None:
        """Type until ghost text appears: a workbench that has just started does not ask at each key yet."""
        self.until_status("Calomel")
        self.script(fill={"x": "warm"})
        self.open("\n", "warm.py")
        deadline = time.monotonic() + START_SECONDS
        while self.ghost() != "warm":
            assert time.monotonic() < deadline, f"no ghost text\n{self.report()}"
            self.type("x")
            time.sleep(1)
        self.press("Tab")
        self.close_all()

    def close_all(self) -> None:
        """Close every file."""
        self.command("View: Close All Editors")
        self.until(lambda: self.lines() is None, "no editor is open")

    def command(self, title: str) -> None:
        """Run a command by its title."""
        self.press("F1")
        self.until(lambda: self.see("quickInput") == ">", "a command can be named")
        self.ask("insert", text=title)
        self.until(lambda: title in self.see("focusedRow"), f"the command {title!r} is found")
        self.press("Enter")

    def press(self, *keys: str) -> None:
        """Press keys, one after another."""
        for key in keys:
            self.ask("press", key=key)

    def type(self, text: str) -> None:
        """Type a text."""
        self.ask("type", text=text, delay=5)

    def go(self, line: int, column: int = 1) -> None:
        """Put the cursor somewhere."""
        self.press("Control+g")
        self.until(lambda: self.see("quickInput") == ":", "a line can be named")
        self.ask("insert", text=f"{line}:{column}")
        self.press("Enter")
        self.until(lambda: self.see("quickInput") is None, "the line was taken")
        self.until(lambda: self.place() == (line, column), f"the cursor is at {line}:{column}")

    def offered(self, text: str, place: tuple[int, int], keys: str, ghost: str, **script: Any) -> None:
        """Type in a new file with this text, until ghost text is there: behind what is typed, or as scripted."""
        self.script(**({"fill": {keys: ghost}} | script))
        self.open(text)
        if place != (1, 1):
            self.go(*place)
        self.type(keys)
        self.until_ghost(ghost)

    def edited(self, text: str, edit: Mapping[str, str] | None = None, *, seconds: float = 0) -> None:
        """Change the first word of a new file to `new`, until a next edit is shown."""
        self.script(edit=edit or RENAME, seconds=seconds)
        self.open(text)
        self.press("Control+Shift+ArrowRight")
        self.type("new")
        self.until(self.decorations, "a next edit is shown")

    # Eyes.

    def lines(self) -> list[str] | None:
        """The lines on the screen, with ghost text in them; None without an editor."""
        found = self.see("lines")
        return None if found is None else list(found)

    def saved(self) -> str:
        """The file's text."""
        return (self.files / self._name).read_bytes().decode()

    def until_saved(self, text: str) -> None:
        """Wait for the file to hold a text."""
        self.until(lambda: self.saved() == text, lambda: f"the file holds {text!r}, not {self.saved()!r}")

    def place(self) -> tuple[int, int] | None:
        """Line and column of the cursor, both from 1."""
        words = str(self.see("place")).replace(",", "").replace("(", " ").split()
        return (int(words[1]), int(words[3])) if len(words) >= 4 and words[0] == "Ln" else None

    def ghost(self) -> str:
        """The ghost text of the editor."""
        return "\n".join(self.see("ghost"))

    def until_ghost(self, text: str) -> None:
        """Wait for ghost text."""
        self.until(lambda: self.ghost() == text, f"ghost text {text!r}")

    def shown(self, kind: str | None = None) -> list[str]:
        """What the extension's decorations say: `box`, `hint` or `insertion`."""
        return [each["text"] for each in self.decorations() if kind in {None, each["kind"]}]

    def decorations(self) -> list[dict[str, Any]]:
        """The same, with their places."""
        return list(self.see("decorations"))

    def struck(self) -> list[str]:
        """The pieces of text that are struck out, one for each line."""
        rows: dict[float, str] = {}
        for top, text in self.see("struck"):
            rows[top] = rows.get(top, "") + text
        return [rows[top] for top in sorted(rows)]

    def status(self) -> list[str]:
        """The item in the status bar, and what it says when it is hovered."""
        return [str(each).strip() for each in self.see("status")]

    def until_status(self, text: str) -> None:
        """Wait for the item in the status bar to say something."""
        self.until(lambda: self.status()[0] == text, f"the status {text!r}")

    def until_silent_because(self, reason: str) -> None:
        """Wait for the status bar to say why nothing is shown."""
        self.until(lambda: reason in self.status()[1], f"the status says {reason!r}")
        assert (self.ghost(), self.decorations()) == ("", [])

    def toasts(self) -> list[str]:
        """Messages."""
        return list(self.see("toasts"))

    def until_toast(self, *parts: str) -> str:
        """Wait for a message that says this."""

        def found() -> str:
            return next((toast for toast in self.toasts() if all(part in toast for part in parts)), "")

        return str(self.until(found, f"a message that says {parts}"))

    def click(self, button: str) -> None:
        """Click a button of a message."""
        self.ask("click", selector=f'.notifications-toasts .monaco-button:has-text("{button}")')

    def clear_toasts(self) -> None:
        """Click the messages away."""
        self.command("Notifications: Clear All Notifications")
        self.until(lambda: not self.toasts(), "they are gone")

    def until_tab(self, title: str) -> None:
        """Wait for a page."""
        self.until(lambda: any(title in tab for tab in self.see("tabs")), f"the page {title!r}")

    def screenshot(self, path: Path, clip: dict[str, int] | None = None) -> None:
        """A picture of the window."""
        self.ask("screenshot", path=str(path), clip=clip)


Starter = Callable[..., Workbench]

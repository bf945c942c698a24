"""What the drivers of all editors share: a model that follows a script, and what became of what it suggested."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shlex
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calomel.cli.editor import Here
from calomel.infer.runtime_file import read

SECONDS = 20.0
# A function to be typed, with what the scripted model offers behind `re`.
HEAD = "def add(a, b):\n    \n"
REST = "turn a + b\n\n\ndef sub(a, b):\n    return a - b"
# A name to be changed in the first line, whose other use is far below, and how the scripted model goes on.
FAR = "old = 1\n" + "\n" * 8 + "print(old)\n"
RENAME = {"print(old)": "print(new)"}
# How the scripted model goes on once the name in the first line has changed: in two places with nothing in common.
CHAINED = "old = alpha(1)\n\n\n\n\nbeta(1)\n"
CHAIN = {"alpha(1)": "alpha(2)", "beta(1)": "beta(2)"}
CHANGED = CHAINED.replace("old", "new").replace("(1)", "(2)")
# A function to be renamed, and a file that calls it.
SHOP = "def total(prices):\n    return sum(prices)\n"
HELPER = "from shop import total\n" + "\n" * 8 + "print(total([]))\n"


# Seconds between two keys of somebody who presses one too many, and those after which Tab indents again.
APART, PAUSE = 0.1, 0.5
# Names, and what they become: they share a beginning, an end, both or neither.
NAMES = [("items", "points"), ("price", "unit_price"), ("item", "items"), ("old_rate", "rate"), ("alpha", "beta"),
         ("max", "maximum"), ("user", "customer"), ("getName", "getFullName"), ("rows", "columns")]  # fmt: skip
PLACES = ["show({}, {})", "return {} + {}", "keep[{}] = {}", "total = {} + {}", "# {} {}", "x{} = {}"]


@dataclass(frozen=True)
class Chain:
    """A name of a file's first line that a person changes, and what is to be changed behind it.

    Attributes:
        text: the file before.
        name: the new one.
        edits: lines with their ends, and what the scripted model makes of them.
        done: the file once every edit is accepted.
    """

    text: str
    name: str
    edits: dict[str, str]
    done: str

    @classmethod
    def drawn(cls, seed: int) -> Chain:
        """The chain of a seed: a name with one to four other places, next to each other or far away."""
        draw = random.Random(seed)
        old, new = NAMES[seed % len(NAMES)]
        lines, edits = [f"{old} = load(0)"], {}
        for at in range(draw.randint(1, 4)):
            form = draw.choice(PLACES)
            lines += ["pass"] * draw.choice([0, 1, 6, 12])
            lines.append(form.format(at, old))
            # With its line end, since one name may begin the other.
            edits[f"{lines[-1]}\n"] = f"{form.format(at, new)}\n"
        lines += ["pass"] * draw.choice([0, 3])
        done = [f"{new} = load(0)\n", *(edits.get(f"{line}\n", f"{line}\n") for line in lines[1:])]
        return cls("\n".join(lines) + "\n", new, edits, "".join(done))


def here(folder: Path, command: Sequence[str]) -> Here:
    """What `editor setup` finds on a machine whose user's folder is `folder`, and whose `calomel lsp` is `command`."""
    program = folder / "bin" / "calomel"
    program.parent.mkdir(exist_ok=True)
    # Whatever else an editor says to it is not understood.
    words = f'[ "$1" = lsp ] && shift || exit 64\nexec {shlex.join(command)} "$@"\n'
    program.write_text(f"#!/bin/sh\n{words}", encoding="utf-8")
    program.chmod(0o755)
    return Here(folder, folder / "xdg_config_home", False, str(program), None, None, None)


@contextlib.contextmanager
def no_server_stays(folder: Path) -> Iterator[None]:
    """A model's server that was started for the test is not for later."""
    try:
        yield
    finally:
        end_model_servers(folder / "runtime")


def end_model_servers(runtime: Path) -> None:
    """End every server that left a file in a runtime folder."""
    for path in runtime.rglob("*.json"):
        record = read(path)
        if record is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(record.pid, signal.SIGTERM)


class Agent:
    """What a test loads into an editor: it listens at `path`, and answers every line of JSON by one."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="calomel-")
        self.path = Path(self._folder.name) / "agent"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(SECONDS)
        self._lines = self._socket.makefile("rb")

    def connect(self) -> None:
        """Wait until it listens."""
        deadline = time.monotonic() + SECONDS
        while self._socket.connect_ex(str(self.path)):
            assert time.monotonic() < deadline, "the editor does not listen"
            time.sleep(0.004)

    def ask(self, **what: Any) -> Any:
        """Have the editor do something; what it returns."""
        self._socket.sendall(json.dumps(what).encode() + b"\n")
        answer = json.loads(self._lines.readline())
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def hang_up(self) -> None:
        """Say that nothing more will come."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Leave nothing behind."""
        self._lines.close()
        self._socket.close()
        self._folder.cleanup()


class Scripted:
    """An editor whose language server keeps its files below `folder`, and has a model that follows a script."""

    folder: Path
    seconds: float
    poll = 0.01

    def report(self) -> str:
        """What a person would look at first when a test fails."""
        return ""

    def until(self, condition: Callable[[], Any], what: str | Callable[[], str] = "") -> Any:
        """Wait until something is true, and return it."""
        deadline = time.monotonic() + self.seconds
        while not (value := condition()):
            said = what() if callable(what) else what
            assert time.monotonic() < deadline, f"it never came about: {said or condition}\n{self.report()}"
            time.sleep(self.poll)
        return value

    def script(self, **script: Any) -> None:
        """Tell the model what to answer from now on."""
        path = self.folder / "script.json"
        path.with_suffix(".new").write_text(json.dumps({"fill": None} | script), encoding="utf-8")
        path.with_suffix(".new").replace(path)

    def asked(self) -> list[dict[str, Any]]:
        """What the model was asked."""
        path = self.folder / "asked.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def records(self) -> list[dict[str, Any]]:
        """What became of suggestions, as the language server keeps it, oldest first."""
        path = self.folder / "xdg_state_home" / "calomel" / "outcomes.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if '"outcome"' in line]

    def count(self, outcome: str) -> int:
        """How many suggestions had this outcome."""
        return [each["outcome"] for each in self.records()].count(outcome)

    @contextlib.contextmanager
    def learns(self, outcome: str) -> Iterator[None]:
        """What is done within has this outcome, once, and the server knows of it."""
        before = self.count(outcome)
        yield
        self.until(lambda: self.count(outcome) == before + 1, f"the server knows of one more {outcome}")

    def is_ready(self) -> bool:
        """Whether the language server said in its log that the model is there."""
        path = self.folder / "xdg_state_home" / "calomel" / "lsp.log"
        return path.exists() and " is ready." in path.read_text(encoding="utf-8")


# What the editors install the server with, without a network: a uv that does what the test says.
class FakeUv:
    """A program `uv` in a folder `bin` that makes environments; `pip install` waits until the test says how it ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.bin = folder / "bin"
        self.bin.mkdir()
        self._asked, self._end = folder / "asked", folder / "end"
        self._asked.touch()
        script = f"""#!/bin/sh
PATH=/usr/bin:/bin
echo "$*" >> {shlex.quote(str(self._asked))}
[ "$1" = venv ] && exec mkdir -p "$4/bin"
case "$*" in *torch*) exit 1 ;; esac
echo "Resolved 70 packages"
end={shlex.quote(str(self._end))}
while ! [ -e "$end" ]; do sleep 0.05; done
. "$end"
"""
        (self.bin / "uv").write_text(script, encoding="utf-8")
        (self.bin / "uv").chmod(0o755)

    def asked(self) -> list[str]:
        """The arguments of each call."""
        return self._asked.read_text(encoding="utf-8").splitlines()

    def installs(self, command: list[str]) -> None:
        """From now on a program comes about that runs this as its language server."""
        lines = ["cat > $(dirname $4)/calomel << 'END'", "#!/bin/sh", f"exec {shlex.join(command)}", "END"]
        self._ends("\n".join([*lines, "chmod +x $(dirname $4)/calomel"]))

    def fails(self, *lines: str) -> None:
        """From now on it ends with this output."""
        self._ends("\n".join([*(f"echo {shlex.quote(line)} >&2" for line in lines), "exit 1"]))

    def waits(self) -> None:
        """From now on it comes to no end."""
        self._end.unlink(missing_ok=True)

    def _ends(self, script: str) -> None:
        new = self._end.with_suffix(".new")
        new.write_text(script + "\n", encoding="utf-8")
        new.replace(self._end)


def planted(storage: Path, version: str, command: list[str]) -> Path:
    """A server of another version, as an installation leaves it."""
    program = storage / "1000000000" / "bin" / "calomel"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n", encoding="utf-8")
    program.chmod(0o755)
    (program.parents[1] / "calomel-version").write_text(version, encoding="utf-8")
    return program

"""What the editors install the server with, without a network: a uv that does what the test says."""

from __future__ import annotations

import shlex
from pathlib import Path


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

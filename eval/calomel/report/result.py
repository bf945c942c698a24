"""A result: flat keys for machines, tables for people, and what it was measured with."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import calomel
from calomel.report.stats import Interval
from calomel.storage import peak_bytes, processors, psutil, write_whole

if TYPE_CHECKING:
    import rich.table

# The packages whose code determines a bench's result; a change in any of them makes earlier results incomparable.
MEASURED_PACKAGES = (
    "engine", "families", "prompts", "selectivity", "workspace", "context", "suggest", "replay", "bench",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Provenance:
    """Command, commit, date and machine: what every result carries. The machine in words, no host or user name."""

    command: str
    commit: str
    dirty: bool
    date: str
    machine: str
    cpu: str
    cores: int


def describe_run(now: datetime | None = None, cpuinfo: Path = Path("/proc/cpuinfo")) -> Provenance:
    """The provenance of a run of this process's own command line."""
    root = Path(__file__).resolve().parent
    cpu = platform.processor() or platform.machine()
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), cpu)
    cores, memory = processors(), psutil().virtual_memory().total / 2**30
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return Provenance(
        command=shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        commit=_git(root, "rev-parse", "HEAD") or "unknown",
        dirty=bool(_git(root, "status", "--porcelain", "--", ":(top)", ":(top,exclude)docs")),
        date=(now if now is not None else datetime.now(UTC)).strftime("%Y-%m-%d"),
        machine=f"{cpu}, {cores} cores, {memory:.0f} GiB, {system}",
        cpu=cpu,
        cores=cores,
    )


def weights_hash(folder: Path) -> str:
    """SHA-256 over every checkpoint file of `folder` (weights, configuration, tokenizer), names included."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in {".safetensors", ".json"}:
            digest.update(path.name.encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def source_hash() -> str:
    """SHA-256 over the Python sources of the packages that determine a bench's result."""
    digest = hashlib.sha256()
    for portion in sorted(Path(entry) for entry in calomel.__path__):
        for package in MEASURED_PACKAGES:
            for path in sorted((portion / package).rglob("*.py")):
                digest.update(f"{package}/{path.name}".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _git(folder: Path, *arguments: str) -> str | None:
    """Output of a git command in `folder`; None outside a work tree or without git."""
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def peak_memory(device: str) -> dict[str, Value]:
    """`peak_memory_mib` (resident, whole process) and, on a GPU, `gpu_peak_memory_mib` (allocated tensors)."""
    keys: dict[str, Value] = {"peak_memory_mib": peak_bytes() / 2**20}
    if device.startswith("cuda"):
        import torch

        keys["gpu_peak_memory_mib"] = torch.cuda.max_memory_allocated(device) / 2**20
    return keys


Value = float | int | str | bool | None
Flat = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of formatted cells under a title; below them, for a terminal or a page, a caption."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def to_markdown(self) -> str:
        """A GitHub-flavoured table; the first column is text, the others are numbers."""
        lines = [
            f"### {self.title}",
            "",
            "| " + " | ".join(self.columns) + " |",
            "|---|" + "---:|" * (len(self.columns) - 1),
            *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in self.rows),
        ]
        return "\n".join(lines)

    def to_rich(self) -> rich.table.Table:
        """For a terminal; cells are plain text, never markup."""
        from rich.table import Column
        from rich.table import Table as RichTable
        from rich.text import Text

        first, *others = self.columns
        columns = [Column(first, no_wrap=True), *(Column(name, justify="right") for name in others)]
        table = RichTable(
            *columns, title=self.title, title_justify="left", title_style="bold", box=None, pad_edge=False,
            padding=(0, 1, 0, 0), caption=self.caption or None, caption_justify="left",
        )  # fmt: skip
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table


@dataclass(frozen=True, slots=True)
class Report:
    """One run of one bench.

    Attributes:
        bench: its name.
        flat: figures by name.
        tables: the same for people.
        notes: sentences: definitions, what was skipped and why.
        details: data written beside the figures, such as one row per case.
        provenance: what it was measured with.
    """

    bench: str
    flat: Mapping[str, Value]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    details: Mapping[str, Any] = field(default_factory=dict)
    provenance: Provenance = field(default_factory=describe_run)

    def to_json(self) -> str:
        """The flat keys, with the provenance among them, and the details."""
        values = {"bench": self.bench, **asdict(self.provenance), **self.flat, **self.details}
        return json.dumps(values, indent=2) + "\n"

    def to_markdown(self) -> str:
        """The page for docs/results/."""
        made = self.provenance
        dirty = " with uncommitted changes" if made.dirty else ""
        loaded = ["", "**Another load was on the machine: the times are not representative.**"]
        return "\n".join(
            [
                f"# {self.bench}",
                "",
                f"    {made.command}",
                "",
                f"Commit `{made.commit}`{dirty}, {made.date}, on {made.machine}.",
                *(loaded if self.flat.get("loaded") else []),
                *(part for table in self.tables for part in ("", table.to_markdown())),
                "",
                *(f"* {note}" for note in self.notes),
                "",
            ]
        )

    def write(self, *, json_path: Path | None, results: Path | None) -> None:
        """Write the flat keys to `json_path` and the page with its keys into the folder `results`, where given."""
        targets = {json_path: self.to_json()} if json_path is not None else {}
        if results is not None:
            stem = self.bench.replace(" ", "-")
            targets |= {results / f"{stem}.md": self.to_markdown(), results / f"{stem}.json": self.to_json()}
        for path, text in targets.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)


def put_interval(flat: dict[str, Value], key: str, interval: Interval | None) -> None:
    """Set `key`, `key_low`, `key_high` and `key_n`; nothing observed leaves the value null and n at 0."""
    flat[key] = None if interval is None else interval.value
    flat[f"{key}_low"] = None if interval is None else interval.low
    flat[f"{key}_high"] = None if interval is None else interval.high
    flat[f"{key}_n"] = 0 if interval is None else interval.n


def figures_table(title: str, flat: Mapping[str, Value]) -> Table:
    """The keys and their numbers, one per row; booleans are left out."""
    rows = [
        (key, number_cell(float(value) if isinstance(value, int | float) else None, 3))
        for key, value in flat.items()
        if not isinstance(value, bool)
    ]
    return Table(title, ("figure", "value"), tuple(rows))


def percent_cell(interval: Interval | None) -> str:
    """A share in percent with its bounds."""
    return interval_cell(interval, None)


def interval_cell(interval: Interval | None, digits: int | None = 2) -> str:
    """An estimate with its bounds; without `digits` in percent."""
    return "-" if interval is None else _bounded(interval.value, interval.low, interval.high, digits)


def flat_cell(flat: Flat, key: str, digits: int | None = 2) -> str:
    """The same from flat keys, where a figure may have no bounds."""
    return _bounded(flat.get(key), flat.get(f"{key}_low"), flat.get(f"{key}_high"), digits)


def _bounded(value: float | None, low: float | None, high: float | None, digits: int | None) -> str:
    if value is None:
        return "-"
    form = ".1%" if digits is None else f",.{digits}f"
    return f"{value:{form}}" if low is None or high is None else f"{value:{form}} [{low:{form}}, {high:{form}}]"


def number_cell(value: Interval | float | None, digits: int = 2) -> str:
    """A number, or an estimate without its bounds; a dash where nothing was measured."""
    number = value.value if isinstance(value, Interval) else value
    return "-" if number is None else f"{number:.{digits}f}"

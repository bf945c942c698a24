"""A result: figures with their intervals, flat keys for machines, tables for people, and what it was measured with.

Intervals are of 95 %: Wilson's for shares, the percentile bootstrap for everything else. Single items are drawn by
`bootstrap`; correlated items, such as those of one minute of a log, by `Resampling`.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from cattrs import Converter
from numpy.typing import NDArray

import calomel
from calomel.prompts.parts import Edit
from calomel.selectivity.sample import Sample
from calomel.storage import peak_bytes, processors, psutil, write_whole

if TYPE_CHECKING:
    import rich.table

# The 97.5 % point of the standard normal distribution: two-sided 95 %.
Z_95: Final = 1.959963984540054
ROUNDS: Final = 2000
# Statistics that are not sums are recomputed in each round, which takes longer.
ROUNDS_OF_STATISTICS: Final = 500
_BOUNDS: Final = (2.5, 97.5)

Floats = NDArray[np.float64]
Items = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate from `n` observations with its 95 % bounds."""

    value: float
    low: float
    high: float
    n: int


def wilson(successes: int, n: int) -> Interval | None:
    """The share `successes / n` with Wilson's score interval (Wilson 1927); None when nothing was observed."""
    if n == 0:
        return None
    share = successes / n
    spread = Z_95 * math.sqrt(share * (1 - share) / n + Z_95**2 / (4 * n**2))
    centre = share + Z_95**2 / (2 * n)
    scale = 1 + Z_95**2 / n
    # The bounds touch 0 and 1 exactly at the extremes; rounding must not push them past the share itself.
    low = 0.0 if successes == 0 else (centre - spread) / scale
    high = 1.0 if successes == n else (centre + spread) / scale
    return Interval(share, low, high, n)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The `percent`-th percentile (0 to 100), linear between neighbours; None for no values."""
    return float(np.percentile(np.asarray(values, dtype=np.float64), percent)) if len(values) else None


def bootstrap(statistic: Callable[..., Any], *columns: Sequence[float], seed: int = 0) -> Interval | None:
    """`statistic` of `columns`, each `[n]`, with bounds from drawing items with replacement, all columns alike.

    The statistic works along the last axis; None where it is not finite. Rounds in which it is not finite do not count.
    """
    values = [np.asarray(column, dtype=np.float64) for column in columns]
    n = len(values[0])
    if not n:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(*values))
        if not math.isfinite(value):
            return None
        picks = np.random.default_rng(seed).integers(0, n, size=(ROUNDS, n))
        rounds = np.asarray(statistic(*(column[picks] for column in values)))
    low, high = np.percentile(rounds[np.isfinite(rounds)], _BOUNDS)
    return Interval(value, float(low), float(high), n)


def percentile_interval(values: Sequence[float], percent: float) -> Interval | None:
    """The `percent`-th percentile with its bounds; None for no values."""
    return bootstrap(lambda found: np.percentile(found, percent, axis=-1), values)


def ratio_of_sums(above: Sequence[float], below: Sequence[float], *, seed: int = 0) -> Interval | None:
    """`sum(above) / sum(below)`, items drawn together; None when the denominators sum to zero."""
    return bootstrap(_ratio, above, below, seed=seed)


def ratio_of_ratios(
    ours: tuple[Sequence[float], Sequence[float]], theirs: tuple[Sequence[float], Sequence[float]]
) -> Interval | None:
    """`ratio_of_sums(*ours) / ratio_of_sums(*theirs)`, items drawn together; None where either is undefined."""
    return bootstrap(lambda a, b, c, d: _ratio(a, b) / _ratio(c, d), *ours, *theirs)


def _ratio(above: Floats, below: Floats) -> Any:
    whole = below.sum(axis=-1)
    return np.where(whole > 0, above.sum(axis=-1) / whole, np.nan)


class Resampling:
    """Draws clusters of items with replacement, the same draws for every figure; deterministic under a seed."""

    def __init__(self, clusters: Sequence[Hashable], seed: int) -> None:
        """Takes one cluster key per item."""
        numbers = {key: number for number, key in enumerate(dict.fromkeys(clusters))}
        self._cluster = np.asarray([numbers[key] for key in clusters], dtype=np.int64)
        self._count = len(numbers)
        rng = np.random.default_rng(seed)
        even = np.full(max(1, self._count), 1 / max(1, self._count))
        # [rounds, clusters]: how often each cluster was drawn.
        self._draws = rng.multinomial(self._count, even, size=ROUNDS).astype(np.float64)[:, : self._count]

    def ratio(self, above: Sequence[float], below: Sequence[float]) -> Interval | None:
        """`sum(above) / sum(below)` over the items; None when the denominators sum to zero."""
        return self._interval((above, below), lambda one, other: one / other)

    def share(self, hits: Sequence[float], of: Sequence[float]) -> Interval | None:
        """`ratio` of zeros and ones. None or all of them gets Wilson's bounds: resampling would claim certainty."""
        found = self.ratio(hits, of)
        if found is not None and found.value in {0.0, 1.0}:
            return wilson(int(sum(hits)), found.n)
        return found

    def rate(self, above: Sequence[float], per: float) -> Interval | None:
        """`sum(above) / per`, where `per` is not a sum over items, such as minutes; None when it is zero."""
        if per <= 0:
            return None
        rounds = self._sums(above) / per if self._count else np.zeros(1)
        low, high = np.percentile(rounds, _BOUNDS)
        return Interval(float(sum(above)) / per, float(low), float(high), len(above))

    def difference(self, ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> Interval | None:
        """The difference of two ratios over the same clusters; None when a denominator sums to zero."""
        return self._interval((*ours, *theirs), lambda a, b, c, d: a / b - c / d)

    def statistic(self, items: Sequence[int] | Items, function: Callable[[Items], float | None]) -> Interval | None:
        """Any statistic of some of the items, given by their indices; None where it is not defined on all of them."""
        chosen = np.asarray(items, dtype=np.int64)
        value = function(chosen) if len(chosen) else None
        if value is None:
            return None
        clusters = self._cluster[chosen]
        rounds = (np.repeat(chosen, draw[clusters].astype(np.int64)) for draw in self._draws[:ROUNDS_OF_STATISTICS])
        found = [again for each in rounds if (again := function(each)) is not None]
        low, high = np.percentile(found, _BOUNDS) if found else (value, value)
        return Interval(value, float(low), float(high), len(chosen))

    def _interval(self, columns: Sequence[Sequence[float]], combine: Callable[..., Any]) -> Interval | None:
        """The interval of `combine` over the columns' sums; every second column is a denominator."""
        totals = [float(sum(column)) for column in columns]
        if not all(totals[1::2]):
            return None
        sums = [self._sums(column) for column in columns]
        known = np.all([each > 0 for each in sums[1::2]], axis=0)
        low, high = np.percentile(combine(*(each[known] for each in sums)), _BOUNDS)
        return Interval(float(combine(*totals)), float(low), float(high), sum(value > 0 for value in columns[1]))

    def _sums(self, column: Sequence[float]) -> Floats:
        """`[rounds]`: the sum in each round."""
        values = np.asarray(column, dtype=np.float64)
        return np.asarray(self._draws @ np.bincount(self._cluster, weights=values, minlength=self._count))


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

# Records as plain values for JSON, and back; a sample has a line of its own, an edit its names.
CONVERTER: Final = Converter()
CONVERTER.register_unstructure_hook(Sample, Sample.to_line)
CONVERTER.register_structure_hook(Sample, lambda line, _: Sample.from_line(line))
CONVERTER.register_unstructure_hook(Edit, Edit._asdict)
CONVERTER.register_structure_hook(Edit, lambda values, _: Edit(**values))


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

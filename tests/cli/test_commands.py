"""Every other command: its options reach what it starts, and what goes wrong becomes one line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.cli.conftest import Runner, configured
from tests.selectivity.made import drawn

from calomel.bench import held_edits
from calomel.bench import infill as bench_infill
from calomel.bench import peers as bench_peers
from calomel.bench import selectivity as bench_selectivity
from calomel.bench import speed as bench_speed
from calomel.bench.held_edits import HeldOptions
from calomel.bench.infill import InfillOptions
from calomel.bench.peers import PeersOptions
from calomel.bench.selectivity import SelectivityOptions
from calomel.bench.speed import SpeedOptions
from calomel.report.heldout import BenchDataError
from calomel.server import run as server_run
from calomel.server.errors import StartError
from calomel.server.settings import ServerSettings
from calomel.training import run as training_run
from calomel.training.config import TrainConfig
from calomel.training.corpus import build
from calomel.training.corpus.build import CorpusConfig
from calomel.training.corpus.packages import PackageListError

FullDisk = Callable[[], AbstractContextManager[None]]
HEAVY = {"fastapi", "httpx", "numpy", "pydantic", "rich", "starlette", "tokenizers", "torch", "transformers", "uvicorn"}


SCRIPT = """
import contextlib, io, json, sys
from calomel.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


KEPT = json.dumps({"kept": "x" * 100})


class Bench:
    """Notes what it was asked for; its report is one line."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.written: tuple[Path | None, Path | None] = (None, None)

    def __call__(self, options: object) -> Bench:
        self.asked.append(options)
        return self

    def to_markdown(self) -> str:
        return "# page"

    def write(self, *, json_path: Path | None, results: Path | None) -> None:
        self.written = json_path, results


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    fake = Bench()
    for module, name in (
        *((bench_infill, "run_infill"), (bench_speed, "run_speed"), (bench_peers, "run_peers")),
        *((held_edits, "run_held_edits"), (bench_selectivity, "run_selectivity")),
    ):
        monkeypatch.setattr(module, name, fake)
    return fake


@pytest.fixture
def settings_file(home: Path) -> Path:
    return configured(home, "calomel/calomel.toml")


@pytest.mark.parametrize("command", ["try", "fill", "serve", "corpus", "train", "bench"])
def test_help_names_every_command(run: Runner, command: str) -> None:
    assert f"\n  {command} " in run("--help").out
    assert run(command, "--help").status == 0


def test_module_can_be_run_and_says_the_version_of_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "calomel.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == version("calomel")


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


# typer checks the types of options with pydantic.
@pytest.mark.parametrize(("words", "heavy"), [((), set()), (("bench", "infill"), {"pydantic"})])
def test_help_imports_nothing_heavy(words: tuple[str, ...], heavy: set[str]) -> None:
    assert HEAVY & imported_by(*words, "--help") <= heavy


@pytest.mark.parametrize(
    ("module", "name", "words", "error", "status"),
    [
        (bench_infill, "run_infill", ("bench", "infill"), BenchDataError("heldout.jsonl.zst is damaged"), 1),
        (bench_infill, "run_infill", ("bench", "infill"), ValueError("steps 'x' is no number"), 2),
        (build, "build_corpus", ("corpus", "--out", "."), PackageListError("entry 3 has no field 'license'"), 1),
        (server_run, "serve", ("serve",), StartError("cannot listen on 127.0.0.1 port 8017"), 1),
    ],
)
def test_failure_becomes_one_line(
    run: Runner,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    name: str,
    words: tuple[str, ...],
    error: Exception,
    status: int,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(module, name, refuse)
    result = run(*words)
    assert (result.status, result.err) == (status, f"calomel: {error}\n")


@pytest.mark.parametrize(
    ("words", "expected", "written"),
    [
        ("infill", InfillOptions(), (None, None)),
        ("speed", SpeedOptions(), (None, None)),
        (
            "infill --quick --policy fixed:2@4 --json out.json",
            InfillOptions(quick=True, policy="fixed:2@4"),
            (Path("out.json"), None),
        ),
        (
            "speed --context 512 --answer 8 --answer 32 --results r",
            SpeedOptions(contexts=(512,), answers=(8, 32)),
            (None, Path("r")),
        ),
        ("peers --holes 8 --quick", PeersOptions(quick=True, holes=8), (None, None)),
        (
            "selectivity one.jsonl two.jsonl --json r.json",
            SelectivityOptions((Path("one.jsonl"), Path("two.jsonl"))),
            (Path("r.json"), None),
        ),
        (
            "edits --held-out --kinds rename,typo_fixed --limit 20 --aggressiveness 0.4 --json out.json",
            HeldOptions(kinds=("rename", "typo_fixed"), limit=20, aggressiveness=0.4),
            (Path("out.json"), None),
        ),
        (
            "edits --held-out --samples s.jsonl --stories train.zst",
            HeldOptions(samples=Path("s.jsonl"), stories=Path("train.zst"), baselines=False),
            (None, None),
        ),
    ],
)
def test_options_reach_the_bench_and_the_rest_keeps_its_default(
    run: Runner, bench: Bench, words: str, expected: object, written: tuple[Path | None, Path | None]
) -> None:
    result = run("bench", *words.split())
    assert (result.status, result.out, bench.asked) == (0, "# page\n", [expected])
    assert bench.written == written


def test_options_reach_the_builder_of_a_corpus(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[CorpusConfig] = []
    monkeypatch.setattr(build, "build_corpus", lambda config, report: calls.append(config))
    assert run("corpus", "--out", tmp_path, "--cache", "kept").status == 0
    assert [CorpusConfig(out=tmp_path, cache=Path("kept"))] == calls


def test_options_reach_the_trainer(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[TrainConfig, Path, dict[str, Any]]] = []
    monkeypatch.setattr(training_run, "train", lambda config, out, **options: calls.append((config, out, options)))
    config = tmp_path / "run.toml"
    config.write_text('corpus = "c"\nheld_out = "h"\ntokenizer = "t"\nrows = 5000\n', encoding="utf-8")
    result = run("train", config, "--out", "run", "--resume", "--rows", 7500)
    assert result.status == 0
    expected = TrainConfig(corpus=Path("c"), held_out=Path("h"), tokenizer=Path("t"), rows=7500)
    options = {"resume": True, "pause_file": None, "device": "cpu"}
    assert [(expected, Path("run"), options)] == calls


def test_options_become_settings(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[ServerSettings] = []
    monkeypatch.setattr(server_run, "serve", served.append)
    assert run("serve", "--port", 0, "--allowed-host", "box", "--allowed-host", "box.lan", "--threads", 2).status == 0
    assert [ServerSettings(port=0, allowed_hosts=("box", "box.lan"), threads=2)] == served


def test_every_setting_is_shown_with_its_origin(
    run: Runner, settings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_file.write_text("[serve]\nport = 8018\ntoken = 'secret-token'\n")
    settings_file.chmod(0o600)
    monkeypatch.setenv("CALOMEL_MAX_REQUESTS", "7")
    done = run("config", "show")
    rows = {line.split()[0]: line.split()[1:] for line in done.out.splitlines()}

    assert done.status == 0
    assert rows["port"] == ["8018", str(settings_file)]
    assert rows["max_requests"] == ["7", "CALOMEL_MAX_REQUESTS"]
    assert rows["device"] == ["cpu"]
    assert rows["token"] == ["(hidden)", str(settings_file)]
    assert set(rows) == set(ServerSettings.model_fields)
    assert "secret-token" not in done.out


def test_settings_are_shown_to_programs_too(run: Runner, settings_file: Path) -> None:
    assert json.loads(run("config", "show", "--json").out)["port"] == {"value": "8017", "from": "default"}


def test_a_wrong_file_is_named_by_show_and_by_serve(run: Runner, settings_file: Path) -> None:
    settings_file.write_text("[serve]\nprot = 8018\n")
    for command in (("config", "show"), ("serve",)):
        done = run(*command)
        assert done.status == 2
        assert "prot is not a setting; did you mean port?" in done.err


def test_where_the_file_is(run: Runner, settings_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("config", "path").out == f"{settings_file}\n"
    monkeypatch.setenv("CALOMEL_CONFIG", "/elsewhere.toml")
    assert run("config", "path").out == "/elsewhere.toml\n"
    assert run("config", "path", "--config", "/named.toml").out == "/named.toml\n"


@pytest.fixture
def words(home: Path) -> dict[str, list[object]]:
    """Command lines that write what somebody keeps; `kept` stands for the file."""
    model = home / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"max_position_embeddings": 2048, "kinds": ["fill", "edit"]}))
    samples = home / "samples.jsonl"
    samples.write_text("".join(each.to_line() for each in drawn(150)), encoding="utf-8")
    log = home / "outcomes.jsonl"
    log.touch()
    return {
        "calibrate": ["calibrate", "--samples", samples, "--model", model, "--out"],
        "stats": ["stats", "--log", log, "--json"],
    }


@pytest.mark.parametrize("which", ["calibrate", "stats"])
def test_what_was_there_outlives_a_disk_that_is_full(
    run: Runner, full_disk: FullDisk, words: dict[str, list[object]], tmp_path: Path, which: str
) -> None:
    kept = tmp_path / "kept"
    kept.write_text(KEPT)
    before = set(tmp_path.iterdir())
    with full_disk():
        done = run(*words[which], kept)

    assert (done.status, done.err) == (1, f"calomel: {kept}: File too large\n")
    assert kept.read_text() == KEPT
    assert set(tmp_path.iterdir()) == before

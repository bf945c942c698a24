"""Every other command: its options reach what it starts, and what goes wrong becomes one line."""

from __future__ import annotations

import json
import os
import re
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
from tests.selectivity.made import drawn, sample

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
from calomel.cli.app import program
from calomel.infer.in_process import EngineCompleter
from calomel.report.heldout import BenchDataError
from calomel.server import run as server_run
from calomel.server.errors import StartError
from calomel.server.settings import NAMES, ServeSettings
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
    assert (result.status, result.err) == (status, f"error: {error}\n")


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
        ("peers --gaps 8 --quick", PeersOptions(quick=True, holes=8), (None, None)),
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
    config.write_text('data = "d"\nrows = 5000\n', encoding="utf-8")
    result = run("train", config, "--out", "run", "--resume", "--rows", 7500)
    assert result.status == 0
    expected = TrainConfig(data=Path("d"), rows=7500)
    options = {"resume": True, "pause_file": None, "device": "cpu"}
    assert [(expected, Path("run"), options)] == calls


@pytest.mark.parametrize(
    ("package", "words", "hint"),
    [
        ("scipy.optimize", ("serve",), "install Calomel's extra `bench`: see docs/install.md#extras"),
        ("zstandard", ("corpus", "--out", "."), "install Calomel's extra `train`: see docs/install.md#extras"),
        ("transformers", ("serve",), "install Calomel's extra `gguf`: see docs/install.md#extras"),
        ("httpx", ("serve",), "install Calomel again"),
    ],
)
def test_a_missing_package_names_the_extra_that_has_it(
    run: Runner, monkeypatch: pytest.MonkeyPatch, package: str, words: tuple[str, ...], hint: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ModuleNotFoundError(name=package)

    monkeypatch.setattr(server_run, "serve", refuse)
    monkeypatch.setattr(build, "build_corpus", refuse)
    result = run(*words)
    assert (result.status, result.err) == (1, f"error: the package {package} is missing\ntry: {hint}\n")


def test_options_become_settings(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[ServeSettings] = []
    monkeypatch.setattr(server_run, "serve", served.append)
    assert run("serve", "--port", 0, "--allowed-host", "box", "--allowed-host", "box.lan", "--threads", 2).status == 0
    assert [ServeSettings(port=0, allowed_hosts=("box", "box.lan"), threads=2)] == served


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
    assert set(rows) == set(NAMES)
    assert "secret-token" not in done.out


def test_settings_are_shown_to_programs_too(run: Runner, settings_file: Path) -> None:
    assert json.loads(run("config", "show", "--json").out)["port"] == {"value": "8017", "from": "default"}


def test_a_wrong_file_is_named_by_show_and_by_serve(run: Runner, settings_file: Path) -> None:
    settings_file.write_text("[serve]\nprot = 8018\n")
    for command in (("config", "show"), ("serve",)):
        done = run(*command)
        assert done.status == 2
        assert "serve.prot: unknown; did you mean port?" in done.err


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

    assert (done.status, done.err) == (1, f"error: {kept}: File too large\n")
    assert kept.read_text() == KEPT
    assert set(tmp_path.iterdir()) == before


TRAINING = 'data = "none"\n'
FILES: dict[str, str | bytes] = {
    "a.py": "x = 1\n",
    "dos.py": "a = 1\r\nb = \r\n",
    "latin.py": b"\xff\xfe",
    "notes.txt": "nothing",
    "no.toml": "not TOML",
    "bare.toml": "rows = 5\n",
    "speed.toml": TRAINING + "speed = 9\n",
    "layers.toml": TRAINING + "[model]\nlayrs = 3\n",
    "shapes.toml": TRAINING + "[[shapes]]\nregion = 48\n",
    "trace.json": json.dumps({"startContent": "", "endContent": "", "txns": []}),
    "samples.jsonl": "".join(each.to_line() for each in drawn(150)),
    "torn.jsonl": sample().to_line() + "{\n",
    "binary.jsonl": b"\xff\xfe\n",
    "model/config.json": json.dumps({"max_position_embeddings": 2048, "kinds": ["fill", "edit"]}),
    "damaged/config.json": json.dumps({"max_position_embeddings": 2048, "kinds": ["fill", "edit"]}),
    "damaged/calibrator.json": "{}",
    "weights.gguf": "GGUF\3",
}
CALIBRATE = "calibrate --model model"
REFUSED = [
    ("fly", "fly"),
    ("fill absent.py --at 1:1", "absent.py: No such file"),
    ("fill a.py --at 1:1 --model nothing", "nothing"),
    ("fill a.py --at 9:1", "--at 9:1: the file has 2 lines"),
    ("fill a.py --at 1:3 --to 1:1", "--to 1:1 is before --at 1:3"),
    ("fill dos.py --at 2:6", "line 2 ends at column 5"),
    ("fill latin.py --at 1:1", "latin.py is not UTF-8"),
    ("serve --host 0.0.0.0", "add --allow-remote"),
    ("serve --host 0.0.0.0 --allow-remote --token a", "needs tokens of at least 16 characters"),
    ("serve --port 70000", "--port: "),
    ("serve --token secret --no-auth", "remove one of them"),
    ("models path nothing", "found no model nothing"),
    ("models path me/nothing", "found no folder me/nothing"),
    ("models path model", "model does not contain a model"),
    ("fill a.py --at 1:1 --model weights.gguf", "weights.gguf is "),
    ("fill a.py --at 1:1 --model a.py", "a.py is neither a GGUF file nor a folder"),
    ("bench edits", "try: name a folder of next-edit scenarios, or --held-out"),
    ("bench edits --held-out folder", "a SUITE and --held-out cannot be combined"),
    ("bench edits --held-out --aggressiveness loud", "--aggressiveness 'loud'"),
    ("train run.toml --out out", "run.toml does not exist"),
    ("train no.toml --out out", "no.toml is not valid TOML"),
    ("train bare.toml --out out", "bare.toml: data: "),
    ("train speed.toml --out out", "speed.toml: speed: "),
    ("train layers.toml --out out", "layers.toml: model.layrs: "),
    ("train shapes.toml --out out", "calomel shards"),
    (f"{CALIBRATE} --samples samples.jsonl --log samples.jsonl", "--samples and --log cannot be combined"),
    (f"{CALIBRATE} --log missing.jsonl", "missing.jsonl does not exist"),
    (f"{CALIBRATE} --samples missing.jsonl", "missing.jsonl"),
    (f"{CALIBRATE} --samples torn.jsonl", "torn.jsonl, line 2"),
    (f"{CALIBRATE} --samples binary.jsonl", "is not a sample"),
    ("calibrate --model nowhere --samples samples.jsonl", "nowhere"),
    ("calibrate --model damaged --samples samples.jsonl", "calibrator.json"),
    ("stats --log missing.jsonl", "missing.jsonl does not exist"),
    ("stats --log .", ". does not exist or is not a file"),
    ("stats --json missing/out.json", "cannot write missing/out.json"),
    ("replay notes.txt", "is not a log Calomel can read"),
    ("replay", "name a LOG"),
    ("replay nowhere.json", "cannot read nowhere.json"),
    ("replay trace.json --latency soon", "--latency 'soon'"),
    ("replay trace.json --aggressiveness 2", "--aggressiveness '2'"),
    ("replay trace.json --kinds fill,poem", "'poem' is not fill or edit"),
    ("replay trace.json --json /nowhere/a.json", "cannot write /nowhere/a.json"),
    ("replay trace.json --samples none/samples.jsonl", "cannot write none/samples.jsonl"),
    ("replay --compare trace.json trace.json", "not a result"),
    ("replay --git /nowhere", "git cannot read /nowhere"),
]
# What is there, and of no use.
FAILED = [
    ("bench edits .", "has no *.txtar file"),
    ("bench edits --held-out --stories none.zst", "none.zst does not exist"),
]


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with files of all kinds in it."""
    for name, content in FILES.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(home)

    def begun(*_: object, **__: object) -> None:
        raise AssertionError("it was begun")

    monkeypatch.setattr(server_run, "serve", begun)
    monkeypatch.setattr(EngineCompleter, "__init__", begun)
    return home


@pytest.mark.parametrize(
    ("status", "line", "said"), [*((2, *refused) for refused in REFUSED), *((1, *failed) for failed in FAILED)]
)
def test_what_cannot_be_done_is_said_in_a_sentence_before_anything_is_begun(
    run: Runner, folder: Path, status: int, line: str, said: str
) -> None:
    done = run(*line.split())

    assert (done.status, done.out) == (status, "")
    assert said in " ".join(done.err.split())
    assert "secret" not in done.err
    assert "Traceback" not in done.err
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("current", "path", "named"),
    [
        ("home", "", ".venv/bin/calomel"),
        ("home/.venv/bin", "", "./calomel"),
        ("elsewhere", "", "HOME/.venv/bin/calomel"),
        ("home", "home/.local/bin", "calomel"),
        ("home", "elsewhere", ".venv/bin/calomel"),
    ],
)
def test_commands_are_named_so_that_they_can_be_copied(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, current: str, path: str, named: str
) -> None:
    program = tmp_path / "home/.venv/bin/calomel"
    link, another = tmp_path / "home/.local/bin/calomel", tmp_path / "elsewhere/calomel"
    for each in (program, link, another):
        each.parent.mkdir(parents=True, exist_ok=True)
    for each in (program, another):
        each.touch(0o755)
    link.symlink_to(program)
    monkeypatch.chdir(tmp_path / current)
    monkeypatch.setattr(sys, "argv", [os.path.relpath(program)])
    monkeypatch.setenv("PATH", str(tmp_path / path))
    named = named.replace("HOME", str(tmp_path / "home"))
    assert f"\n   {named} models recommend\n" in run().out
    assert run("models", "path", "nothing").err.endswith(
        f"try: {named} models list has the names, {named} models fetch OWNER/NAME downloads one\n"
    )
    assert run("modls").err.endswith(f"try: {named} -h\n")
    assert "by `calomel config reference`" in run("config", "reference").out


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("models families", "\n  loads: yes\n"),
        ("models families --guide", "\n  licence of its weights: "),
        ("models recommend --guide", "\n  command: calomel models fetch "),
        ("config reference", "\n  allowed: true or false\n"),
    ],
)
def test_a_table_of_sentences_fits_a_terminal(
    run: Runner, monkeypatch: pytest.MonkeyPatch, line: str, part: str
) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    assert "\n| --- | --- |" in run(*line.split()).out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    said = run(*line.split()).out
    assert part in said
    assert "| --- |" not in said
    assert [each for each in said.splitlines() if each.startswith("  ") and len(each) > 90 and " " in each[4:]] == []


def test_help_lists_every_command_once(run: Runner) -> None:
    listed = re.findall(r"^  (\w+) ", run("--help").out.partition("Commands:")[2], re.MULTILINE)
    assert sorted(listed) == sorted(program().commands)

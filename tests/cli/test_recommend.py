"""`calomel models recommend`: machines, as their drivers describe them, and the one command for each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Runner
from tests.server._upstreams import Play, ollama, served

from calomel.families.facts import family_facts
from calomel.families.recommended import ROWS, recommended
from calomel.infer.upstream import running
from calomel.prompts.next_edit import format_called
from calomel.storage import machine

GIB = 2**30
MODELS = {model.title: model for row in ROWS for model in (row.text, row.edits) if model is not None}


@pytest.fixture(autouse=True)
def programs(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a GPU and without servers: the folder of its programs."""
    folder = home / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    monkeypatch.setattr(running, "USUAL_PORTS", ())
    monkeypatch.setattr(machine, "CARDS", ())
    return folder


def program(folder: Path, name: str, says: str = "") -> None:
    (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / name).chmod(0o755)


def aims(said: str) -> list[tuple[str, str]]:
    return re.findall(r"^For ([^:]+): (.+)$", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "text", "edits"),
    [
        (("--device", "cpu", "--memory-gib", "5", "--cores", "4"), "Qwen2.5-Coder 0.5B", "Sweep Next-Edit 0.5B"),
        (("--device", "cpu", "--memory-gib", "64", "--cores", "6"), "Qwen2.5-Coder 0.5B", "Sweep Next-Edit 0.5B"),
        (("--device", "cpu", "--memory-gib", "8", "--cores", "8"), "Qwen2.5-Coder 1.5B", "Sweep Next-Edit 1.5B"),
        (("--device", "cuda", "--memory-gib", "7.6"), "Qwen2.5-Coder 7B", "Sweep Next-Edit v2 7B"),
        (("--device", "cuda", "--memory-gib", "12"), "Seed-Coder 8B Base", "Zed's Zeta 2.1 (8B)"),
        (("--device", "cuda", "--memory-gib", "80"), "Seed-Coder 8B Base", "Zed's Zeta 2.1 (8B)"),
        (("--device", "mps", "--memory-gib", "16"), "Qwen2.5-Coder 7B", "Sweep Next-Edit v2 7B"),
        (("--device", "mps", "--memory-gib", "36"), "Seed-Coder 8B Base", "Zed's Zeta 2.1 (8B)"),
    ],
    ids=lambda each: " ".join(each[1::2]) if isinstance(each, tuple) else "",
)
def test_a_machine_gets_what_fits_it(run: Runner, words: tuple[str, ...], text: str, edits: str) -> None:
    said = run("models", "recommend", *words).out
    assert aims(said) == [("completions", text), ("next edits", edits)]
    for title in (text, edits):
        assert MODELS[title].gguf in said
        assert MODELS[title].figure in said


@pytest.mark.parametrize(("memory", "both"), [("16", True), ("12", False)])
def test_two_models_are_chosen_together_where_both_fit(run: Runner, memory: str, *, both: bool) -> None:
    words = ("--device", "mps", "--memory-gib", memory) if both else ("--device", "cuda", "--memory-gib", memory)
    said = run("models", "recommend", *words).out
    assert (" --edits\n" in said) is both
    assert (", and fit." in said) is both


def test_a_small_machine_gets_nano_and_is_told_why(run: Runner) -> None:
    said = run("models", "recommend", "--device", "cpu", "--memory-gib", "64", "--cores", "2").out
    assert "Run nano, which is built in" in said
    assert aims(said) == []


def test_the_memory_of_a_card_is_asked_of_its_driver(run: Runner, programs: Path) -> None:
    program(programs, "nvidia-smi", "8188, NVIDIA GeForce RTX 4060\n24564, NVIDIA GeForce RTX 4090")
    said = run("models", "recommend").out
    assert "NVIDIA GeForce RTX 4090 (25.8 GB)" in said
    assert ("completions", "Seed-Coder 8B Base") in aims(said)
    assert "llama-server -hf mradermacher/Seed-Coder-8B-Base-GGUF:Q8_0 --port 8080" in said
    assert "first install llama.cpp" in said
    program(programs, "llama-server")
    assert "first install llama.cpp" not in run("models", "recommend").out
    # One that tells no memory is not planned for.
    program(programs, "nvidia-smi")
    assert "an NVIDIA GPU (memory unknown)" in run("models", "recommend").out


def test_drivers_are_found_by_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.gpu(tmp_path) is None
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    sizes = {"card0": 2 * GIB, "card1": 16 * GIB}
    for name, size in sizes.items():
        place = tmp_path / "sys/class/drm" / name / "device"
        place.mkdir(parents=True)
        (place / "mem_info_vram_total").write_text(f"{size}\n")
    assert machine.gpu(tmp_path) == machine.Gpu("AMD", "an AMD GPU", 16 * GIB)
    # In WSL2 the driver's program is not on the path.
    monkeypatch.setattr(machine, "CARDS", ("/nowhere", "/wsl/nvidia-smi"))
    (tmp_path / "wsl").mkdir()
    program(tmp_path / "wsl", "nvidia-smi", "24564, NVIDIA GeForce RTX 4090")
    assert machine.gpu(tmp_path) == machine.Gpu("NVIDIA", "NVIDIA GeForce RTX 4090", 24564 * 1024**2)


def test_the_same_files_of_drivers_are_looked_for_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    root = Path(__file__).parents[2]
    makefile = re.search(r"^CARDS := \$\(wildcard (.+)\)$", (root / "Makefile").read_text(), re.MULTILINE)
    extension = re.search(
        r"^const CARDS = (\[.+\]);$", (root / "editors/vscode/src/install.ts").read_text(), re.MULTILINE
    )
    assert makefile is not None
    assert makefile is not None
    assert extension is not None
    assert tuple(makefile[1].split()) == tuple(json.loads(extension[1])) == machine.CARDS


def test_ollama_is_used_where_it_runs(run: Runner, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(programs, "nvidia-smi", "12282, NVIDIA GeForce RTX 4070")
    with served(ollama(Play())) as url:
        monkeypatch.setattr(running, "USUAL_PORTS", (("Ollama", int(url.rpartition(":")[2])),))
        said = run("models", "recommend").out
    name = "hf.co/mradermacher/zeta-2.1-GGUF:Q8_0"
    assert f"Ollama at {url}" in said
    assert f"ollama pull {name} && calomel models use --upstream {url} {name}" in said


def test_missing_extras_come_with_the_command(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calomel.cli.recommend.find_spec", lambda name: None)
    said = run("models", "recommend", "--device", "cpu", "--memory-gib", "8", "--cores", "4").out
    assert "calomel[llama]' &&\n  calomel models fetch ggml-org/" in said


def test_what_was_fetched_is_only_chosen(run: Runner, home: Path) -> None:
    (home / ".data/calomel/models/sweepai--sweep-next-edit-0.5B").mkdir(parents=True)
    said = run("models", "recommend", "--device", "cpu", "--memory-gib", "8", "--cores", "4").out
    assert "\n  calomel models use sweepai/sweep-next-edit-0.5B --edits\n" in said
    assert "models fetch sweepai" not in said


def test_a_device_that_is_not_here_needs_its_memory(run: Runner) -> None:
    done = run("models", "recommend", "--device", "mps")
    assert (done.status, done.out) == (2, "")
    assert "mps is not a device of this machine" in done.err


def test_every_model_is_one_that_calomel_knows() -> None:
    known = {each.name: each for facts in family_facts().values() for each in facts.checkpoints}
    for model in MODELS.values():
        assert (model.gguf == "") == (model.checkpoint == "Mercury")
        if model.gguf:
            assert known[model.checkpoint].licence == model.licence
            assert re.fullmatch(r"[\w.-]+/[\w.-]+:[\w.]+", model.gguf)
            assert (format_called(model.gguf) is not None) == (model.use != "text"), model.title
        assert "published" in model.figure
        assert "nobody has measured it here" in model.figure
    for row in ROWS:
        fitting = [model.memory for model in (row.text, row.edits) if model is not None]
        assert all(memory <= row.memory * GIB / 1e9 for memory in fitting) or row.kind == "hosted"
        if row.kind in {"cpu", "gpu", "apple"}:
            assert recommended(row.kind, row.memory, row.cores) is row


def test_it_imports_no_pytorch() -> None:
    script = "import sys; from calomel.cli.main import main\ntry: main(['models', 'recommend'])\n"
    script += "except SystemExit: print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"

"""What no command can do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Runner
from tests.selectivity.made import drawn, sample

from calomel.infer.in_process import EngineCompleter
from calomel.server import run as server_run

TRAINING = 'corpus = "c"\nheld_out = "h"\n'
WITH_TOKENIZER = TRAINING + 'tokenizer = "t"\n'
FILES: dict[str, str | bytes] = {
    "a.py": "x = 1\n",
    "dos.py": "a = 1\r\nb = \r\n",
    "latin.py": b"\xff\xfe",
    "notes.txt": "nothing",
    "no.toml": "not TOML",
    "bare.toml": TRAINING,
    "speed.toml": WITH_TOKENIZER + "speed = 9\n",
    "layers.toml": WITH_TOKENIZER + "[model]\nlayrs = 3\n",
    "shapes.toml": WITH_TOKENIZER + "[[shapes]]\nregion = 48\n",
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
    ("serve --host 0.0.0.0", "add allow-remote"),
    ("serve --port 70000", "--port: "),
    ("serve --token secret --no-auth", "remove one of them"),
    ("models path nothing", "found no model nothing"),
    ("models path me/nothing", "found no folder me/nothing"),
    ("models path model", "model does not contain a model"),
    ("fill a.py --at 1:1 --model weights.gguf", "weights.gguf is "),
    ("fill a.py --at 1:1 --model a.py", "a.py is a file: a model is a folder"),
    ("bench edits", "name a folder of next-edit scenarios, or say --held-out"),
    ("bench edits --held-out folder", "leave the folder out"),
    ("bench edits --held-out --aggressiveness loud", "--aggressiveness 'loud'"),
    ("train run.toml --out out", "run.toml does not exist"),
    ("train no.toml --out out", "no.toml is not valid TOML"),
    ("train bare.toml --out out", "bare.toml: tokenizer: "),
    ("train speed.toml --out out", "speed.toml: speed: "),
    ("train layers.toml --out out", "layers.toml: model.layrs: "),
    ("train shapes.toml --out out", "calomel edits"),
    (f"{CALIBRATE} --samples samples.jsonl --log samples.jsonl", "not both"),
    (f"{CALIBRATE} --log missing.jsonl", "missing.jsonl does not exist"),
    (f"{CALIBRATE} --samples missing.jsonl", "missing.jsonl"),
    (f"{CALIBRATE} --samples torn.jsonl", "torn.jsonl, line 2"),
    (f"{CALIBRATE} --samples binary.jsonl", "is not a sample"),
    ("calibrate --model nowhere --samples samples.jsonl", "nowhere"),
    ("calibrate --model damaged --samples samples.jsonl", "calibrator.json"),
    ("stats --log missing.jsonl", "missing.jsonl does not exist"),
    ("stats --log .", ". does not exist or is not a file"),
    ("stats --json missing/out.json", "cannot write missing/out.json"),
    ("replay notes.txt", "is not a known kind of log"),
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

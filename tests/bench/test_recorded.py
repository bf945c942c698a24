"""Recorded answers of other models: as they are, and through the editor's side."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.engine.conftest import CONFIG, END, MASK, random

from calomel.bench import peer_engines, peers
from calomel.bench.recorded import RecordedOptions, recorded_text, run_recorded
from calomel.bench.suite import SuiteError
from calomel.engine import BlockCausal, Engine, Request, Transformer
from calomel.engine.checkpoint import save_checkpoint
from calomel.families.loading import load_checkpoint
from calomel.report.heldout import Hole
from calomel.report.running import Progress

TEXT = "def area(size):\n    return size * size\n\n\nprint(area(2))\n"
WANTED = "def area(width):\n    return width * width\n\n\nprint(area(2))\n"
SCENARIO = """A parameter is renamed.
id: rename
language: python
file: area.py
row: 1
col: 14
-- buffer.txt --
{text}-- history --
<|file|> area.py
<|old|>
def area(size_in_metres):
<|new|>
def area(size):
-- steps --
request-completion manual
-- expected --
{wanted}"""
QUIET = """Nothing is to come.
id: quiet
language: python
file: done.py
row: 1
col: 1
-- buffer.txt --
x = 1
-- steps --
request-completion manual
"""


def record(folder: Path, provider: str, request: object, response: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"kind": "meta"}]
    for kind, body in (("request", request), ("response", response)):
        rows.append({"kind": kind, "body_b64": base64.b64encode(json.dumps(body).encode()).decode()})
    path = folder / f"{provider}.ndjson"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def mercury(region: str, answer: str) -> tuple[object, object]:
    prompt = f"<|code_to_edit|>\n{region[:5]}<|cursor|>{region[5:]}<|/code_to_edit|>\n"
    return {"messages": [{"content": prompt}]}, {"choices": [{"message": {"content": f"```\n{answer}```"}}]}


def zeta2(region: str, answer: str) -> tuple[object, object]:
    return {"prompt": f"<<<<<<< CURRENT\n{region}=======\n"}, {"choices": [{"text": f"{answer}>>>>>>> UPDATED\n"}]}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "rename.txtar").write_text(SCENARIO.format(text=TEXT, wanted=WANTED), encoding="utf-8")
    (tmp_path / "quiet.txtar").write_text(QUIET, encoding="utf-8")
    record(tmp_path / "recorded/rename", "mercury-made-up", *mercury(TEXT, WANTED))
    record(tmp_path / "recorded/quiet", "mercury-made-up", *mercury("x = 1\n", "x = 1\n"))
    record(tmp_path / "recorded/rename", "zeta-2-made-up", *zeta2(TEXT, TEXT))
    record(
        tmp_path / "recorded/quiet",
        "zeta-2-made-up",
        *zeta2("x = 1\n", "x = 1\nprint(x)\nprint(x)\nprint(x)\nprint(x)\n"),
    )
    return tmp_path


def test_a_right_answer_is_offered_whole_and_a_silent_one_stays_silent(suite: Path) -> None:
    report = run_recorded(RecordedOptions(suite, suite / "recorded", chain=True))
    right = "mercury-made-up"
    for kind in ("raw_", "", "chain_"):
        assert [report.flat[f"{right}.{kind}{key}"] for key in ("exact_match", "quiet_rate", "show_rate")] == [1, 1, 1]
    assert report.flat["zeta-2-made-up.raw_quiet_rate"] == 0
    assert report.flat["zeta-2-made-up.chain_quiet_rate"] == 1  # the same line again and again


def test_what_is_lost_is_said_with_its_reason(suite: Path) -> None:
    edits = {"right": WANTED, "key": TEXT.replace("size * size", "'sk-live-4f9aB2cD8eF0gH1jK5mN'")}
    record(suite / "recorded/rename", "mercury-made-up", *mercury(TEXT, edits["key"]))
    report = run_recorded(RecordedOptions(suite, suite / "recorded"))
    rows = [row for row in report.tables[1].rows if row[0] == "mercury-made-up"]
    assert [(row[1], row[-1]) for row in rows] in ([("rename", "hidden: secret")], [])
    assert "mercury-made-up.chain_score" not in report.flat


@pytest.mark.parametrize("content", ["", "no json", '{"kind": "response", "body_b64": "WzFd"}'])
def test_a_file_that_is_not_a_recording_is_named(suite: Path, content: str) -> None:
    path = suite / "recorded/rename/mercury-made-up.ndjson"
    path.write_text(content, encoding="utf-8")
    if content:
        with pytest.raises(SuiteError, match="mercury-made-up"):
            recorded_text(path, TEXT)
    else:
        assert recorded_text(path, TEXT) is None


def test_a_folder_without_recordings_is_named(tmp_path: Path, suite: Path) -> None:
    with pytest.raises(SuiteError, match="nowhere"):
        run_recorded(RecordedOptions(suite, tmp_path / "nowhere"))


def random_checkpoint(folder: Path, window: int | None) -> Path:
    config = replace(
        CONFIG, max_position_embeddings=512, sliding_window=window, layer_types=CONFIG.layer_types if window else ()
    )
    model = random(Transformer(config))
    model.embed_tokens.weight[MASK] = 0  # ours never predicts it, the peers do not know it
    save_checkpoint(model, folder, dtype=torch.float32)
    return folder


@pytest.fixture(params=[None, 12], ids=["full", "windows"])
def checkpoint(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return random_checkpoint(tmp_path / "checkpoint", request.param)


@pytest.fixture
def prompts() -> tuple[tuple[int, ...], ...]:
    """A prompt, the same with other last tokens, a shorter one, and one that begins otherwise."""
    first = tuple(torch.randint(0, 90, (61,), generator=torch.Generator().manual_seed(1)).tolist())
    return first, (*first[:-3], 5, 6, 7, 8), first[:20], (3, *first[1:])


MOST = 12


def own(engine: Engine, prompt: tuple[int, ...]) -> list[int]:
    return list(engine.submit(Request(prompt, max_new_tokens=MOST, policy="left_to_right")).result(60).ids)


def check(peer: peer_engines.Peer, engine: Engine, prompts: tuple[tuple[int, ...], ...]) -> None:
    for prompt in (*prompts, prompts[0]):
        assert peer.decode(prompt, MOST, END, lambda _: False) == own(engine, prompt)


def test_transformers_gives_our_left_to_right_tokens(
    checkpoint: Path, engine: Engine, prompts: tuple[tuple[int, ...], ...]
) -> None:
    pytest.importorskip("transformers")
    check(peer_engines.TransformersPeer(checkpoint, dtype="float32", threads=1), engine, prompts)


def test_llamacpp_gives_our_left_to_right_tokens(tmp_path: Path, prompts: tuple[tuple[int, ...], ...]) -> None:
    pytest.importorskip("gguf")
    pytest.importorskip("llama_cpp")
    folder = random_checkpoint(tmp_path / "full", None)
    file = tmp_path / "model.gguf"
    peer_engines.write_gguf(load_checkpoint(folder), file, "f32")
    peer = peer_engines.LlamaCppPeer(file, positions=512, threads=1, settings="f32")
    try:
        with Engine(BlockCausal(load_checkpoint(folder), cache_tokens=2048)) as engine:
            check(peer, engine, prompts)
    finally:
        peer.close()


def test_a_file_that_is_no_model_is_refused_by_name(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(peer_engines.PeerUnavailableError, match=f"cannot open {tmp_path.name}"):
        peer_engines.TransformersPeer(tmp_path, dtype="float32", threads=1)


class Scripted:
    """Answers with the same text, and takes its time."""

    def __init__(self, name: str, text: str, seconds: float, log: list[tuple[str, str]], now: list[float]) -> None:
        self.name = name
        self._text, self._seconds, self._log, self._now = text, seconds, log, now

    def fill(self, moment: peers.Moment, context: int) -> peers.Answer:
        del context
        self._log.append((self.name, moment.hole.prefix))
        self._now[0] += self._seconds
        return peers.Answer(self._text, prompt=100, read=7)


def moment(prefix: str, answer: str) -> peers.Moment:
    return peers.Moment((), Hole("key", "rest_of_line", "python", "a.py", prefix, "", answer))


def test_each_is_warmed_one_keystroke_earlier_and_takes_turns_at_being_first() -> None:
    log: list[tuple[str, str]] = []
    now = [0.0]
    names = ("ours", "transformers", "llamacpp")
    answers = (("xy", 0.5), ("xy", 4.0), ("xz", 2.0))
    three = [Scripted(name, text, seconds, log, now) for name, (text, seconds) in zip(names, answers, strict=True)]
    progress = Progress()
    asked = [moment("ab", "xy"), moment("cd", "xy")]
    cases = peers.measure(asked, three, 64, progress, lambda: now[0], lambda: 3 * now[0])
    assert log == [
        *((name, prefix) for name in names for prefix in ("a", "ab")),
        *((name, prefix) for name in (*names[1:], names[0]) for prefix in ("c", "cd")),
    ]
    flat = peers.flat_keys(cases, names)
    # A twin that is wrong is also compared as if it were right.
    expected = {
        "ms_per_character_ours": 250.0, "ms_per_character_llamacpp": 2000.0, "vs_transformers": 0.125,
        "vs_llamacpp": 0.125, "vs_llamacpp_as_right_as_transformers": 0.25, "processor_ms_per_character_ours": 750.0,
        "exact_match_ours": 1.0, "exact_match_llamacpp": 0.0, "prompt_tokens_ours": 100.0,
    }  # fmt: skip
    assert {name: flat[name] for name in expected} == pytest.approx(expected)
    assert "| llamacpp as right as transformers |" in peers.ratio_table(flat, names).to_markdown()


def test_peers_that_are_not_there_are_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = random_checkpoint(tmp_path / "checkpoint", None)
    for module in ("transformers", "gguf", "llama_cpp"):
        monkeypatch.setitem(sys.modules, module, None)
    with peer_engines.open_peers(peer_engines.Offer(folder, 64, (1,)), lambda _: 0.0, lambda _: None) as (
        peers,
        missing,
    ):
        assert peers == []
        assert [sentence.split(" is missing")[0] for sentence in missing] == ["transformers", "gguf"]


@pytest.fixture
def engine(checkpoint: Path) -> Iterator[Engine]:
    with Engine(BlockCausal(load_checkpoint(checkpoint), cache_tokens=2048)) as engine:
        yield engine

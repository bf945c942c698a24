"""`calomel fill` and `calomel try`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.test_recorded import SCENARIO, TEXT, WANTED
from tests.cli.conftest import Runner
from tests.server import _upstreams as played
from tests.server._upstreams import Play, served

from calomel.cli.fill import KINDS, Hole, bundled_samples, offset_of
from calomel.cli.output import InputError, plural
from calomel.engine.errors import CacheFullError, InvalidRequestError
from calomel.infer.completer import Fill, FillRequest
from calomel.prompts.parts import PromptParts


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "add.py"
    file.write_text("def add(a, b):\n    return \n\n\nprint(add(1, 2))\n", encoding="utf-8")
    return file


def test_filled_text_is_shown_in_its_place(run: Runner, filler: Any, source: Path) -> None:
    before = source.read_text()
    result = run("fill", source, "--at", "2:12")
    assert result.status == 0
    assert source.read_text() == before
    assert result.out == "1 │ def add(a, b):\n2 │     return ⟦a + b⟧\n3 │ \n4 │ \n5 │ print(add(1, 2))\n"
    assert "confidence 0.75 · 4 tokens in 2 steps (3 forwards) · 12 ms · stop" in result.err
    assert filler.closed


def test_request_has_the_text_around_the_hole(
    run: Runner, filler: Any, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calomel.cli.device_checks.problem_of", lambda _: None)
    run(
        "fill",
        source,
        "--at",
        "2:12",
        "--max-tokens",
        9,
        "--policy",
        "fixed:2",
        "--model",
        source.parent,
        "--device",
        "cuda:1",
    )
    expected = FillRequest(
        "fill",
        PromptParts(path="add.py", prefix="def add(a, b):\n    return ", suffix="\n\n\nprint(add(1, 2))\n"),
        max_tokens=9,
        policy="fixed:2",
        min_tokens=1,
        fitted=True,
    )
    assert [expected] == filler.requests
    assert [(source.parent, "cuda:1", None)] == filler.opened


def test_json_gives_back_every_byte(run: Runner, filler: Any, source: Path) -> None:
    filler.answers = ["[bold]ü\n\t"]
    assert "return ⟦[bold]ü" in run("fill", source, "--at", "2:12").out
    answer = json.loads(run("fill", source, "--at", "2:12", "--json").out)
    assert answer["text"] == "[bold]ü\n\t"
    assert (answer["path"], answer["at"], answer["to"]) == ("add.py", "2:12", "2:12")
    assert (answer["confidence"], answer["steps"], answer["seconds"]) == (0.75, 2, 0.012)


def test_an_answer_that_does_not_fit_is_an_empty_gap_and_says_what_to_do(
    run: Runner, filler: Any, source: Path
) -> None:
    filler.answers = [""]
    done = run("fill", source, "--at", "2:12")
    assert (done.status, "return ⟦⟧" in done.out) == (0, True)
    assert "The model's answer does not fit here. Try another place or a larger model." in done.err


@pytest.mark.parametrize(
    ("error", "status"), [(InvalidRequestError("no policy is named 'fast'"), 2), (CacheFullError("no page is free"), 1)]
)
def test_refusal_of_the_engine_becomes_one_line(
    run: Runner, filler: Any, source: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def refuse(_: FillRequest) -> Fill:
        raise error

    monkeypatch.setattr(filler, "fill", refuse)
    result = run("fill", source, "--at", "2:12")
    assert result.status == status
    assert result.err.startswith(f"error: {error}")
    assert result.err.count("\n") == 1


@given(st.text(alphabet="ab\n\tü😀"), st.data())
def test_every_place_of_a_text_is_found_again(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    before = text[:offset].split("\n")
    assert offset == offset_of(text, f"{len(before)}:{len(before[-1]) + 1}", "--at")


@pytest.mark.parametrize(
    "wrong", ["", "3", "3:", ":3", "0:1", "1:0", "00:1", "-1:2", "1:2:3", "a:b", "²:1", "1234567890:1"]
)
def test_malformed_place_names_the_option(wrong: str) -> None:
    with pytest.raises(InputError, match=r"--at .*LINE:COLUMN"):
        offset_of("", wrong, "--at")


def test_line_endings_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "dos.py"
    file.write_bytes(b"a = 1\r\nb = \r\n")
    hole = Hole.in_file(file, "2:5")
    assert (hole.prefix, hole.suffix) == ("a = 1\r\nb = ", "\r\n")


def test_model_is_told_no_folder_outside_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "a.py"
    file.write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert Hole.in_file(file, "1:1").path == "src/a.py"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert Hole.in_file(file, "1:1").path == "a.py"


@pytest.mark.e2e
def test_try_shows_every_sample_and_ends_well() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "calomel.cli", "try"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for sample in bundled_samples():
        assert sample.path in done.stdout
    near, far = ([each for each in bundled_samples() if each.kind == kind] for kind in KINDS)
    shares = rf"Exactly right: \d of {len(near)} where the answer appears [\w ]+, \d of {len(far)} where it does not\."
    assert re.search(shares, " ".join(done.stdout.split()))
    assert "right: the author wrote this next" in done.stdout
    steps = done.stdout.partition("Calomel sent nothing over the network.")[2]
    for command in ("calomel editor setup", "calomel models ", "calomel fill FILE"):
        assert command in steps


def test_right_and_wrong_answers_are_told_apart_by_a_model_that_sees_neither(run: Runner, filler: Any) -> None:
    samples = bundled_samples()
    right = [sample.expected for sample in samples]
    filler.answers = ["warm up", right[0], "nonsense", *right[2:]]
    result = run("try")
    assert (result.status, filler.closed) == (0, True)
    asked = [(each.parts.path, each.parts.prefix, each.parts.suffix) for each in filler.requests[1:]]
    assert asked == [(sample.path, sample.prefix, sample.suffix) for sample in samples]
    assert len(samples) - 1 == result.out.count("    right\n")
    assert f"the author wrote {right[1]}" in result.out
    counts = re.findall(r"(\d+) of (\d+) where", result.out)
    near = sum(sample.kind == "near" for sample in samples)
    assert counts == [(str(near - 1), str(near)), (str(len(samples) - near),) * 2]


def test_one_of_a_kind_is_counted_without_a_plural() -> None:
    assert [plural(count, "token") for count in (0, 1, 2000)] == ["0 tokens", "1 token", "2,000 tokens"]


@pytest.fixture
def play() -> Play:
    return Play(
        models=("llama3.2",), capabilities=("completion",), tokens=(" a", " +", " b", "\n"), log_probs=(-0.1,) * 4
    )


@pytest.fixture
def url(play: Play) -> Iterator[str]:
    with served(played.ollama(play)) as found:
        yield found


@pytest.fixture
def source_of_upstream_option(tmp_path: Path) -> Path:
    file = tmp_path / "add.py"
    file.write_text("def add(a, b):\n    return \n", encoding="utf-8")
    return file


def test_fill_shows_what_the_model_of_another_server_says(
    run: Runner, url: str, source_of_upstream_option: Path
) -> None:
    found = run("fill", source_of_upstream_option, "--at", "2:12", "--upstream", url, "--json")

    assert json.loads(found.out)["text"] == "a + b"


def test_no_other_server_gets_a_key_of_the_file(run: Runner, url: str, play: Play, tmp_path: Path) -> None:
    key = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    file = tmp_path / "pay.py"
    file.write_text(f'key = "{key}"\n\n\ndef add(a, b):\n    return \n\n\nother = "{key}"\n', encoding="utf-8")
    found = run("fill", file, "--at", "5:12", "--upstream", url)
    cut = run("fill", file, "--at", "1:20", "--to", "1:22", "--upstream", url)

    assert (found.status, cut.status) == (0, 0), found.err + cut.err
    sent = json.dumps([body for _, body in play.asked])
    assert "def add(a, b):" in sent
    assert not [key[at : at + 8] for at in range(len(key) - 7) if key[at : at + 8] in sent]
    assert key in found.out


@pytest.mark.parametrize("name", [".env", "id_rsa"])
def test_no_model_sees_a_file_of_secrets(run: Runner, filler: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("A=1\n", encoding="utf-8")
    found = run("fill", tmp_path / name, "--at", "1:3")

    assert found.status == 2
    assert "may hold secrets" in found.err
    assert (filler.opened, filler.requests) == ([], [])


def test_the_server_that_is_not_there_is_named_once(run: Runner, source_of_upstream_option: Path) -> None:
    found = run("fill", source_of_upstream_option, "--at", "2:12", "--upstream", "http://127.0.0.1:1")

    assert found.status == 1
    assert found.err.count("no server answers at http://127.0.0.1:1") == 1


def test_the_key_comes_from_the_file_that_a_variable_names(
    run: Runner, play: Play, url: str, source_of_upstream_option: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    play.key = "k-1"
    key = tmp_path / "key"
    key.write_text("k-1\n", encoding="ascii")
    key.chmod(0o600)
    monkeypatch.setenv("CALOMEL_UPSTREAM_KEY_FILE", str(key))
    monkeypatch.setenv("CALOMEL_MODEL", str(tmp_path))  # of `calomel serve`
    found = run("fill", source_of_upstream_option, "--at", "2:12", "--upstream", url, "--json")

    assert found.status == 0, found.err
    assert json.loads(found.out)["text"] == "a + b"


@pytest.mark.parametrize("name", ["FIM", "FORMAT", "EDIT"])
@pytest.mark.parametrize("command", [["try"], ["bench", "infill", "--no-resume"]], ids=["try", "bench"])
def test_a_wrong_variable_is_named(
    run: Runner, url: str, monkeypatch: pytest.MonkeyPatch, command: list[str], name: str
) -> None:
    monkeypatch.setenv(f"CALOMEL_UPSTREAM_{name}", "qwem")
    found = run(*command, "--upstream", url)

    assert found.status == 2
    assert found.err.startswith(f"error: CALOMEL_UPSTREAM_{name}: must be one of ")


def test_an_address_that_code_must_not_be_sent_to_is_refused(run: Runner, source_of_upstream_option: Path) -> None:
    found = run("fill", source_of_upstream_option, "--at", "2:12", "--upstream", "http://192.0.2.1:8080")

    assert found.status == 2
    assert "use https, or a tunnel" in found.err


def test_a_replay_asks_it(run: Runner, url: str, play: Play, tmp_path: Path) -> None:
    log = Path(__file__).parents[2] / "server/calomel/cli/recordings/inventory.recording.json"
    found = run("replay", log, "--upstream", url, "--limit-minutes", 0.3, "--no-resume", "--json", tmp_path / "r.json")

    assert found.status == 0, found.err
    assert json.loads((tmp_path / "r.json").read_text())["options"]["upstream"] == url
    assert any(path == "/api/generate" for path, _ in play.asked[1:])


def test_try_fills_its_holes_with_it(run: Runner, url: str) -> None:
    found = run("try", "--upstream", url)

    assert found.status == 0, found.err
    assert "Exactly right: " in found.out
    assert "Nothing left this machine" not in found.out


def test_the_bench_of_next_edits_asks_it(run: Runner, play: Play, tmp_path: Path) -> None:
    scenario = tmp_path / "rename.txtar"
    scenario.write_text(SCENARIO.format(text=TEXT, wanted=WANTED), encoding="utf-8")
    play.models = ("zeta-2",)
    with served(played.ollama(play)) as url:
        found = run("bench", "edits", scenario, "--upstream", url)

    assert found.status == 0, found.err
    assert any("fim-suffix" in str(body.get("prompt")) for path, body in play.asked if path == "/api/generate")


def test_the_bench_of_holes_asks_it(run: Runner, url: str, tmp_path: Path) -> None:
    told = tmp_path / "r.json"
    found = run("bench", "infill", "--upstream", url, "--gaps-per-kind", 4, "--no-resume", "--json", told)

    assert found.status == 0, found.err
    figures = json.loads(told.read_text())
    assert figures["policy"] == "the server's"
    assert figures["rest_of_line.exact_match"] is not None

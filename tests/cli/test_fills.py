"""`calomel bench fills`: recorded fill-in answers through the editor's side."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.bench.conftest import GO, PYTHON, write_stories
from tests.cli.conftest import Runner

from calomel.report import heldout

Row = dict[str, Any]
Figures = dict[str, Any]
Fills = Callable[..., Figures]

RETURN = "    return total / len(numbers)\n"
GIVEN = Path(os.environ.get("CALOMEL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def gap(text: str, golden: str, language: str = "python", **more: Any) -> Row:
    """The place in `text` where `golden` is cut out."""
    prefix, found, suffix = text.partition(golden)
    assert found
    return {"language": language, "prefix": prefix, "suffix": suffix, "golden": golden, "answers": {}} | more


def scored(text: str, log_prob: float | None) -> dict[str, Any]:
    """An answer in tokens of some characters."""
    return {"text": text, "tokens": [[text[at : at + 5], log_prob] for at in range(0, len(text), 5)]}


@pytest.fixture
def fills(run: Runner, tmp_path: Path) -> Fills:
    """Runs the bench on rows, and returns its figures."""

    def call(*rows: Row, options: str = "") -> Figures:
        told = tmp_path / "fills.json"
        file = write_stories(tmp_path / "fills.jsonl.zst", *rows)
        done = run("bench", "fills", file, "--json", told, *options.split())
        assert done.status == 0, done.err
        figures: Figures = json.loads(told.read_text())
        return figures

    return call


def only(figures: Figures) -> tuple[bool, str, bool, str]:
    (row,) = figures["rows"]
    return row["right"], row["offer"], row["right_offer"], row["why"]


def test_right_and_wrong_answers_are_counted_by_model_and_language(fills: Fills) -> None:
    right = {"good-1.0": RETURN.rstrip(), "bad-1.0": PYTHON[:40].strip()}
    push = "\tqueue.items = append(queue.items, item)\n"
    figures = fills(
        gap(PYTHON, RETURN, category="loops", id="1", answers=right, further="ignored"),
        gap(GO, push, "go", path="queue/queue.go", answers={"good-1.0": push, "bad-1.0": "}"}),
        options="--log-prob -0.1",
    )
    assert {key: figures[key] for key in ("places", "answers", "right", "right_whole", "right_hidden")} == {
        "places": 2, "answers": 4, "right": 2, "right_whole": 2, "right_hidden": 0,
    }  # fmt: skip
    good, bad = (
        {key: figures[f"model.{name}.{key}"] for key in ("right", "wrong")} for name in ("good-1.0", "bad-1.0")
    )
    assert (good, bad) == ({"right": 2, "wrong": 0}, {"right": 0, "wrong": 2})
    assert (figures["language.python.answers"], figures["language.go.right_whole"]) == (2, 1)
    assert figures["wrong"] == sum(figures[f"wrong_{offer}"] for offer in ("whole", "hidden", "changed"))
    assert figures["wrong_hidden"] == sum(count for key, count in figures.items() if key.startswith("wrong_hidden_"))
    assert figures["model.good-1.0.shown_right_share"] == 1.0
    names = [row["name"] for row in figures["rows"]]
    assert names == ["python/loops/1"] * 2 + ["go/2"] * 2
    assert PYTHON[:20] not in json.dumps(figures)  # nothing of the data is written


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (RETURN, (True, "whole", True, "")),
        (f"\n{RETURN.rstrip()}   \r\n", (True, "whole", True, "")),
        ("    return total", (False, "whole", False, "")),
        ("", (False, "hidden", False, "empty")),
        ("    if not numbers:\n", (False, "whole", False, "")),
        (f"{RETURN}\n\nclass Account:\n", (False, "changed", True, "end_cut")),
    ],
    ids=["right", "white space", "less", "nothing", "another", "beyond"],
)
def test_what_is_offered_is_compared_with_the_answer_and_with_what_stood_there(
    fills: Fills, said: str, expected: tuple[bool, str, bool, str]
) -> None:
    figures = fills(gap(PYTHON, RETURN, answers={"m": said}), options="--log-prob -0.1")
    assert only(figures) == expected
    assert figures["beyond"] == figures["beyond_mended"] == said.endswith("Account:\n")


@pytest.mark.parametrize(
    ("golden", "said", "right"),
    [("(numbers)", " (numbers)", "right"), (" total", "total", "wrong"), ("tal / len", " tal / len", "wrong")],
)
def test_white_space_at_an_end_counts_where_it_parts_words(fills: Fills, golden: str, said: str, right: str) -> None:
    text = "def average(numbers):\n    total = sum(numbers)\n    return total / len(numbers)\n"
    at = text.index(golden, text.index("return"))
    row = {"language": "python", "prefix": text[:at], "suffix": text[at + len(golden) :], "golden": golden}
    assert fills({**row, "answers": {"m": said}})[right] == 1


def test_an_answer_without_its_indentation_is_right_but_not_exact(fills: Fills) -> None:
    answers = {"indented": RETURN, "bare": RETURN.strip()}
    figures = fills(gap(PYTHON, RETURN, answers=answers), options="--log-prob -0.1")
    assert (figures["right"], figures["right_exact"]) == (2, 1)
    assert (figures["model.indented.exact_offers"], figures["model.bare.right_exact"]) == (1, 0)
    assert figures["exact_offers"] <= figures["right_offers"] == figures["right_whole"]


def test_log_probabilities_of_tokens_decide_as_those_of_a_server(fills: Fills) -> None:
    said = {"sure": scored(RETURN, -0.01), "unsure": scored(RETURN, -6.0)}
    unknown = {"unknown": scored(RETURN, None), "none": {"text": RETURN}, "plain": RETURN}
    figures = fills(gap(PYTHON, RETURN, answers=said | unknown))
    offers = {row["model"]: (row["offer"], row["why"]) for row in figures["rows"]}
    assert offers["sure"] == ("whole", "")
    assert offers["unsure"] == ("hidden", "low_confidence")
    assert offers["unknown"] == offers["none"] == offers["plain"]


def test_tokens_beyond_the_text_do_not_count(fills: Fills) -> None:
    said = {"text": RETURN, "tokens": [*scored(RETURN, -0.01)["tokens"], ["<|endoftext|>", -9.0]]}
    assert only(fills(gap(PYTHON, RETURN, answers={"m": said}))) == (True, "whole", True, "")


def test_an_answer_ends_at_the_limit_of_tokens(fills: Fills) -> None:
    text = "".join(f"    total += {number}\n" for number in range(100))
    figures = fills(gap(PYTHON, RETURN, answers={"m": scored(text, -0.01)}))
    assert only(figures) == (False, "changed", False, "end_cut")


def test_a_threshold_hides_more(fills: Fills) -> None:
    row = gap(PYTHON, RETURN, answers={"m": scored(RETURN, -0.01)})
    assert only(fills(row, options="--aggressiveness 1"))[1::2] == ("hidden", "low_confidence")
    assert only(fills(row, options="--aggressiveness 0"))[1] == "whole"


def test_models_and_places_can_be_chosen(fills: Fills) -> None:
    rows = [
        gap(text, golden, language, id=str(number), answers={"one": golden, "two": golden})
        for text, golden, language in ((PYTHON, RETURN, "python"), (GO, "\treturn len(queue.items)\n", "go"))
        for number in range(3)
    ]
    figures = fills(*rows, options="--models two --limit 3")
    assert [(row["name"], row["model"]) for row in figures["rows"]] == [
        ("python/0", "two"), ("go/0", "two"), ("python/1", "two"),
    ]  # fmt: skip


@pytest.mark.slow
def test_processes_change_no_figure(fills: Fills) -> None:
    rows = [gap(PYTHON, RETURN, id=str(number), answers={"m": RETURN[: number + 5]}) for number in range(70)]
    assert fills(*rows, options="--jobs 2")["rows"] == fills(*rows, options="--jobs 1")["rows"]


@pytest.mark.parametrize("path", ["/", "../../../../etc/passwd", "src/\0.py", "a" * 400])
def test_a_path_names_a_file_of_no_folder(fills: Fills, path: str) -> None:
    assert only(fills(gap(PYTHON, RETURN, path=path, answers={"m": scored(RETURN, -0.01)})))[0]


def test_a_file_that_models_may_not_see_is_hidden_for_that_reason(fills: Fills) -> None:
    row = gap("KEY = 1\nNAME = 2\n", "NAME = 2", "plaintext", path="shop/.env", answers={"m": "NAME = 2"})
    assert only(fills(row)) == (True, "hidden", False, "ignored_path")


WRONG = {
    "no golden": ({"golden": None}, "golden"),
    "a number": ({"prefix": 3}, "prefix"),
    "answers": ({"answers": ["x"]}, "answers"),
    "an answer": ({"answers": {"m": 3}}, "answers"),
    "a token": ({"answers": {"m": {"text": "x", "tokens": [["x"]]}}}, "tokens"),
    "other tokens": ({"answers": {"m": {"text": "x", "tokens": [["y", -1.0]]}}}, "answers.m.tokens"),
    "half a character": ({"answers": {"m": "\ud800"}}, "answers.m: it has half of a surrogate pair"),
}


@pytest.mark.parametrize(("change", "field"), WRONG.values(), ids=WRONG)
def test_a_wrong_line_is_named_with_its_field(run: Runner, tmp_path: Path, change: Row, field: str) -> None:
    good = gap(PYTHON, RETURN, answers={"m": RETURN})
    bad = {key: value for key, value in (good | change).items() if value is not None}
    done = run("bench", "fills", write_stories(tmp_path / "fills.jsonl.zst", good, bad))
    assert done.status == 1
    assert "fills.jsonl.zst, line 2: " in done.err
    assert field in done.err


def test_a_damaged_or_huge_file_is_refused(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_stories(tmp_path / "fills.jsonl.zst", gap(PYTHON, RETURN, answers={"m": RETURN}))
    whole = file.read_bytes()
    assert "none.zst does not exist" in run("bench", "fills", "none.zst").err
    for content in (b"{}\n", whole[: len(whole) // 2]):
        file.write_bytes(content)
        assert "fills.jsonl.zst is damaged" in run("bench", "fills", file).err
    assert "cannot read" in run("bench", "fills", tmp_path).err
    file.write_bytes(whole)
    monkeypatch.setattr(heldout, "MOST_DATA_BYTES", 100)
    assert "unpacks to more than 100 bytes" in run("bench", "fills", file).err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--models two", "--models two: "),
        ("--log-prob -inf", "--log-prob -inf: it is not finite"),
        ("--log-prob nan", "--log-prob"),
        ("--log-prob 1", "--log-prob"),
        ("--limit 0", "--limit"),
        ("--jobs 0", "--jobs"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(run: Runner, tmp_path: Path, options: str, expected: str) -> None:
    file = write_stories(tmp_path / "fills.jsonl.zst", gap(PYTHON, RETURN, answers={"one": RETURN}))
    done = run("bench", "fills", file, *options.split())
    assert done.status == 2
    assert expected in done.err


def test_a_file_without_answers_is_refused(run: Runner, tmp_path: Path) -> None:
    for rows in ([], [gap(PYTHON, RETURN)]):
        done = run("bench", "fills", write_stories(tmp_path / "fills.jsonl.zst", *rows))
        assert (done.status, "has no answers" in done.err) == (2, True)


@pytest.mark.slow
def test_right_answers_of_real_models_are_shown(run: Runner, tmp_path: Path) -> None:
    file, told = GIVEN / "devbench" / "given.jsonl.zst", tmp_path / "fills.json"
    if not file.is_file():
        pytest.skip(f"needs {file}")
    assert run("bench", "fills", file, "--limit", 90, "--log-prob", -0.1, "--json", told).status == 0
    figures = json.loads(told.read_text())
    assert figures["right"] > 300
    assert figures["right_whole"] / figures["right"] > 0.85
    assert figures["wrong_hidden"] > figures["right_hidden"]

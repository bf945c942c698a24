from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts
from calomel.suggest.completer import CompleteRequest, Draft
from calomel.suggest.offers import Outcome
from calomel.suggest.prompt_log import PromptLog, PromptRecord, prompt_log_path, prompt_of, read_prompts
from calomel.workspace import secrets

PARTS = PromptParts(
    related=(Excerpt("b.py", 0, "import a\n"),),
    far=(Excerpt("a.py", 0, "größe = 1\n"),),
    edits=(Hunk("a.py", 3, "", "total = 1\n"),),
    path="a.py",
    prefix="def add(a, b):\n    ",
    suffix="\n",
)
REQUEST = CompleteRequest("fill", PARTS, max_context=512, drafts=(Draft("return 0", "repeated"),), deadline=0.3)
OUTCOME = Outcome(
    id="00ff",
    outcome="shown",
    reason="",
    kind="fill",
    uri="file:///home/ada/a.py",
    language_id="python",
    trigger="edit",
    model="nano",
    probability=0.5,
    visible_seconds=0.3,
    length=12,
    accepted_length=0,
    text="return a + b",
    request=REQUEST,
    proposed="return a + b",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "prompts.jsonl"


def a_log(path: Path, **options: Any) -> PromptLog:
    options.setdefault("mask", str)
    return PromptLog(path, session="abcd", wall=lambda: 1.5, warn=options.pop("warn", pytest.fail), **options)


def test_what_was_asked_and_proposed_is_read_again(path: Path) -> None:
    a_log(path).record(OUTCOME)
    expected = PromptRecord("abcd", "00ff", "fill", replace(REQUEST, drafts=(), deadline=None), "return a + b")
    assert read_prompts(path).records == (expected,)


def test_only_its_user_can_read_the_prompts(path: Path) -> None:
    a_log(path).record(OUTCOME)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_suggestion_is_written_once_whatever_becomes_of_it(path: Path) -> None:
    log = a_log(path)
    for outcome in ("shown", "ignored", "accepted"):
        log.record(replace(OUTCOME, outcome=outcome))
    log.record(replace(OUTCOME, id="0100", outcome="withheld"))
    assert [record.id for record in read_prompts(path).records] == ["00ff", "0100"]


def test_a_suggestion_that_no_model_was_asked_for_has_no_prompt(path: Path) -> None:
    a_log(path).record(replace(OUTCOME, request=None))
    assert not path.exists()


def test_secrets_are_masked_wherever_they_stand(path: Path) -> None:
    key = "AKIAIOSFODNN7EXAMPLQ"
    parts = replace(
        PARTS,
        related=(Excerpt("b.py", 0, f"# {key}\n"),),
        far=(Excerpt("a.py", 0, f"{key}\n"),),
        edits=(Hunk("a.py", 3, f"{key}\n", f"{key}\n"),),
        prefix=f"{key}\n",
        suffix=f"{key}\n",
        region=EditRegion(f"{key}\n", 0),
    )
    request = CompleteRequest("edit", parts, drafts=(Draft(key, "rename"),))
    a_log(path, mask=secrets.mask).record(replace(OUTCOME, kind="edit", request=request, proposed=f"x = '{key}'\n"))
    assert key not in path.read_text()
    assert key[4:] not in path.read_text()
    assert read_prompts(path).records[0].text == f"x = '{'*' * len(key)}'\n"


def test_what_stands_before_a_proposed_text_can_make_it_a_secret(path: Path) -> None:
    request = replace(REQUEST, parts=replace(PARTS, prefix='a = 1\npassword = "', suffix='"\n'))
    a_log(path, mask=secrets.mask).record(replace(OUTCOME, request=request, proposed="hunter2Xq9!vB"))
    assert "hunter2" not in path.read_text()


def test_a_text_that_is_no_unicode_is_left_out_without_a_word(path: Path) -> None:
    log = a_log(path)
    log.record(replace(OUTCOME, request=replace(REQUEST, parts=replace(PARTS, prefix="\ud800"))))
    log.record(replace(OUTCOME, id="0100"))
    assert [record.id for record in read_prompts(path).records] == ["0100"]


def test_a_mask_that_fails_writes_nothing_and_stops_nobody(path: Path) -> None:
    def broken(_: str) -> str:
        raise RuntimeError

    said: list[str] = []
    a_log(path, mask=broken, warn=said.append).record(OUTCOME)
    assert not path.exists()
    assert len(said) == 1


def test_a_full_file_is_renamed_and_still_read(path: Path) -> None:
    log = a_log(path, max_bytes=2_000, kept_files=3)
    for number in range(8):
        log.record(replace(OUTCOME, id=f"{number:04}"))
    names = [record.id for record in read_prompts(path).records]
    assert path.with_name("prompts.jsonl.1").exists()
    assert names == sorted(names)
    assert names[-1] == "0007"


def test_torn_and_foreign_lines_are_counted(path: Path) -> None:
    a_log(path).record(OUTCOME)
    whole = path.read_bytes()
    foreign = json.dumps({"session": "a", "id": "b", "text": "c", "request": {"protocol": 99}}).encode()
    path.write_bytes(b"\xff\n[]\n" + foreign + b"\n" + whole + whole[:80])
    history = read_prompts(path)
    assert (len(history.records), history.bad_lines) == (1, 4)
    with pytest.raises(ValueError, match="is missing"):
        prompt_of(b"{}")


def test_prompts_lie_beside_the_outcomes() -> None:
    assert prompt_log_path(Path("/a/outcomes.jsonl")) == Path("/a/prompts.jsonl")

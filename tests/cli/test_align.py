"""From files of samples and from the user's own log to what a model is aligned with."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calomel.prompts.parts import EditRegion, PromptParts
from calomel.selectivity.sample import Sample
from calomel.suggest.completer import CompleteRequest
from calomel.suggest.offers import Outcome
from calomel.suggest.outcome_log import OutcomeLog
from calomel.suggest.prompt_log import PromptLog, prompt_log_path
from calomel.suggest.wire import encode_request
from calomel.training.alignment import data as judged_module
from calomel.training.alignment import run as run_module
from calomel.training.alignment.data import AlignConfig, Preference
from calomel.training.alignment.run import Alignment, Evaluation

Run = Callable[..., Any]

FILL = CompleteRequest("fill", PromptParts(prefix="total = ", suffix="\n"), max_context=512)
EDIT = CompleteRequest("edit", PromptParts(prefix="a\n", region=EditRegion("b = 1\n", 0)), max_context=256)


class Aligner:
    """Stands for the training, which has tests of its own."""

    preferences: list[Preference]
    config: AlignConfig
    options: dict[str, Any]

    def __call__(
        self, preferences: list[Preference], model: Path, out: Path, config: AlignConfig, **options: Any
    ) -> Alignment:
        self.preferences, self.config, self.options = preferences, config, options
        before = {"edit": {"canvas": Evaluation(-9.0, -8.0, -1.0, 0.5, 7)}}
        after = {"edit": {"canvas": Evaluation(-7.0, -10.0, -0.5, 0.75, 7)}}
        return Alignment(out / "checkpoint", before, after, 3, 2, 4, 1, 1.0, 0.5)


@pytest.fixture
def aligner(monkeypatch: pytest.MonkeyPatch) -> Aligner:
    aligner = Aligner()
    monkeypatch.setattr(run_module, "align", aligner)
    monkeypatch.setattr(judged_module, "check_enough", lambda _judged: None)
    return aligner


def sample(request: CompleteRequest, text: str, outcome: str, **more: Any) -> Sample:
    asked = json.loads(encode_request(request))
    return Sample(
        request.kind, question="log:1:fill", outcome=outcome, text=text, request=asked, group="package", **more
    )


def write(path: Path, *samples: Sample) -> Path:
    path.write_text("".join(each.to_line() for each in samples), encoding="utf-8")
    return path


def test_samples_of_a_replay_become_answers_that_are_wanted_or_not(run: Run, tmp_path: Path, aligner: Aligner) -> None:
    first = write(tmp_path / "1.jsonl", sample(FILL, "sum(values)", "accepted"), sample(FILL, "None", "superseded"))
    second = write(tmp_path / "2.jsonl", sample(EDIT, "b = 2\n", "rejected"), sample(EDIT, "b", "too_short"))

    result = run("align", "--samples", first, "--samples", second, "--out", tmp_path / "out")

    assert result.status == 0
    assert [(each.kind, each.answer, each.desirable, each.weight) for each in aligner.preferences] == [
        ("fill", "sum(values)", True, 1.0),
        ("fill", "", False, 0.5),
        ("edit", "b = 2\n", False, 1.0),
        ("edit", "b = 1\n", True, 0.5),
    ]
    assert {(each.group, each.max_context) for each in aligner.preferences} == {("package", 512), ("package", 256)}
    assert "0.500 → 0.750" in result.out


def test_what_the_person_wrote_instead_is_wanted(run: Run, tmp_path: Path, aligner: Aligner) -> None:
    path = write(tmp_path / "1.jsonl", sample(FILL, "None", "rejected", wanted="zero"))
    assert run("align", "--samples", path, "--out", tmp_path / "out").status == 0
    assert [(each.answer, each.desirable) for each in aligner.preferences] == [
        ("None", False),
        ("", True),
        ("zero", True),
    ]


def test_options_reach_the_alignment(run: Run, tmp_path: Path, aligner: Aligner) -> None:
    path = write(tmp_path / "1.jsonl", sample(FILL, "None", "rejected"))
    options = ("--epochs", 5, "--learning-rate", 1e-4, "--seed", 3, "--resume")
    assert run("align", "--samples", path, "--out", tmp_path / "out", *options).status == 0
    expected = AlignConfig(epochs=5, learning_rate=1e-4, seed=3)
    assert (aligner.config, aligner.options) == (expected, {"resume": True, "device": "cpu"})


def outcome(name: str, kind: Any, **more: Any) -> Outcome:
    whole = Outcome(
        id=name,
        outcome=kind,
        reason="",
        kind="fill",
        uri="file:///a.py",
        language_id="python",
        trigger="edit",
        model="nano",
        probability=0.5,
        visible_seconds=1.0,
        length=4,
        accepted_length=0,
        text="zero",
        request=FILL,
        proposed="zero",
    )
    return replace(whole, **more)


def user_log(path: Path, *outcomes: Outcome, prompts: bool = True) -> Path:
    log = OutcomeLog(path, session="s", warn=pytest.fail)
    asked = PromptLog(prompt_log_path(path), session="s", mask=str, warn=pytest.fail)
    for each in outcomes:
        log.record(each)
        if prompts:
            asked.record(each)
    return path


def test_the_users_own_log_becomes_answers(run: Run, tmp_path: Path, aligner: Aligner) -> None:
    """The last word counts; what was ignored, or held back and not written, counts half."""
    log = user_log(
        tmp_path / "outcomes.jsonl",
        outcome("1", "shown", proposed="taken"),
        outcome("1", "ignored"),
        outcome("1", "accepted"),
        outcome("2", "shown", proposed="refused", request=EDIT),
        outcome("2", "rejected"),
        outcome("3", "withheld", proposed="typed"),
        outcome("3", "typed"),
        outcome("4", "withheld", proposed="held back"),
        outcome("5", "shown", proposed="still there"),
        outcome("6", "shown", proposed="overtaken"),
        outcome("6", "superseded"),
    )

    assert run("align", "--log", log, "--out", tmp_path / "out").status == 0

    assert sorted((each.answer, each.desirable, each.weight) for each in aligner.preferences) == [
        ("", False, 0.5),
        ("b = 1\n", True, 0.5),
        ("held back", False, 0.5),
        ("refused", False, 1.0),
        ("taken", True, 1.0),
        ("typed", True, 1.0),
    ]


def test_a_log_without_text_says_how_to_keep_it(run: Run, tmp_path: Path) -> None:
    log = user_log(tmp_path / "outcomes.jsonl", outcome("1", "shown"), outcome("1", "accepted"), prompts=False)
    result = run("align", "--log", log, "--out", tmp_path / "out")
    assert result.status == 2
    assert "1 suggestions" in result.err
    assert "log.outcome_text = true" in result.err
    assert "200" in result.err
    assert not (tmp_path / "out").exists()


def test_too_few_suggestions_are_refused(run: Run, tmp_path: Path) -> None:
    log = user_log(tmp_path / "outcomes.jsonl", outcome("1", "shown"), outcome("1", "accepted"))
    result = run("align", "--log", log, "--out", tmp_path / "out")
    assert result.status == 2
    assert "1 judged suggestions with text, 1 of them taken and 0 rejected; alignment needs 200" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--samples"),
        (("--log", "nowhere.jsonl"), "nowhere.jsonl does not exist"),
        (("--samples", "nowhere.jsonl"), "nowhere.jsonl: No such file"),
    ],
)
def test_what_is_not_there_is_named(run: Run, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    result = run("align", *arguments, "--out", tmp_path / "out")
    assert result.status == 2
    assert said in result.err


def test_samples_without_prompts_are_refused(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "1.jsonl", Sample("fill", question="q", outcome="accepted"))
    result = run("align", "--samples", path, "--out", tmp_path / "out")
    assert result.status == 2
    assert "--prompts" in result.err


def test_a_file_that_holds_no_samples_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text("{}\n")
    result = run("align", "--samples", tmp_path / "1.jsonl", "--out", tmp_path / "out")
    assert result.status == 2
    assert "1.jsonl, line 1" in result.err

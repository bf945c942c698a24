"""Every door for holes keeps an answer to what fits, plain and streamed, whatever the model says."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from starlette.testclient import TestClient
from tests.server.conftest import app_of, events, opened
from tests.suggest.rule import TEXTS, Case, broken, hostile
from tests.suggest.scripted_engine import ScriptedEngine

from calomel.prompts.tokenizer import Tokenizer
from calomel.weights import nano_path

Ask = Callable[..., str]


@pytest.fixture(scope="module")
def engine() -> ScriptedEngine:
    return ScriptedEngine(Tokenizer.from_file(nano_path() / "tokenizer.json"))


@pytest.fixture(scope="module")
def scripted(engine: ScriptedEngine) -> Iterator[TestClient]:
    with opened(app_of(engine.filler)) as client:
        yield client


def openai(url: str) -> Ask:
    def ask(client: TestClient, case: Case, *, stream: bool) -> str:
        body = {"model": "m", "prompt": case.prefix, "suffix": case.suffix, "stop": [], "stream": stream}
        answer = client.post(url, json=body | {"max_tokens": case.max_tokens})
        chunks = events(answer)[:-1] if stream else [answer.json()]
        return "".join(chunk["choices"][0]["text"] for chunk in chunks)

    return ask


def infill(client: TestClient, case: Case, *, stream: bool) -> str:
    body = {"input_prefix": case.prefix, "input_suffix": case.suffix, "prompt": "", "stream": stream}
    answer = client.post("/infill", json=body | {"n_predict": case.max_tokens})
    return "".join(chunk["content"] for chunk in (events(answer) if stream else [answer.json()]))


def ollama(client: TestClient, case: Case, *, stream: bool) -> str:
    body = {"model": "m", "prompt": case.prefix, "suffix": case.suffix or "\n", "stream": stream}
    answer = client.post("/api/generate", json=body | {"options": {"num_predict": case.max_tokens}})
    return "".join(chunk["response"] for chunk in (events(answer) if stream else [answer.json()]))


# A line that ends in a word, before a word.
BEFORE_A_WORD = TEXTS["lines.js"].partition("lines(")


DOORS: dict[str, Ask] = {
    "fim": openai("/v1/fim/completions"),
    "completions": openai("/v1/completions"),
    "infill": infill,
    "generate": ollama,
}


@pytest.mark.parametrize("door", DOORS)
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=hostile())
@example(case=Case("lines.js", BEFORE_A_WORD[0], "", "".join(BEFORE_A_WORD[1:]), "function\n", 2))
def test_an_answer_fits_its_hole(door: str, case: Case, scripted: TestClient, engine: ScriptedEngine) -> None:
    engine.says = case.says
    plain, streamed = (DOORS[door](scripted, case, stream=stream) for stream in (False, True))
    assert broken(case, plain) == ""
    assert streamed == plain


def test_a_bounded_answer_says_that_it_was_cut(scripted: TestClient, engine: ScriptedEngine) -> None:
    engine.says = "width * height_of_the_page()"
    body = {"model": "m", "prompt": "def area(width):\n    return ", "suffix": "\n", "max_tokens": 4}
    answer = scripted.post("/v1/fim/completions", json=body).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == len(engine.tokenizer.encode("width"))


def test_an_answer_of_a_least_length_stays_as_it_is(scripted: TestClient, engine: ScriptedEngine) -> None:
    engine.says = "return width * ("
    body = {"model": "m", "prompt": "def area(width):\n    return ", "suffix": "\n", "min_tokens": 2}
    assert scripted.post("/v1/fim/completions", json=body).json()["choices"][0]["text"] == engine.says


@pytest.mark.parametrize(
    ("says", "least", "left"),
    [
        ("x = 1\n    y = 2\nz = 3\n", 4, "x = 1\n    y = 2"),
        ("x = 1\n\n    y = 2\n", 4, "x = 1\n\n    y = 2\n"),
        ("x = 1\n\ty = 2\n  z = 3", 4, "x = 1\n\ty = 2"),
        ("x = 1\ny = 2", 0, "x = 1\ny = 2"),
        ("", 4, ""),
        # What it cuts off leaves nothing open.
        ("x = 1\n    rows = load(\n        path,\n)", 4, "x = 1"),
    ],
)
def test_an_answer_ends_before_a_line_that_is_indented_less(
    scripted: TestClient, engine: ScriptedEngine, says: str, least: int, left: str
) -> None:
    engine.says = says
    prompt = " " * least
    body = {"input_prefix": "def f(path):\n" if least else "", "prompt": prompt, "input_suffix": "\n", "n_predict": 64}
    assert scripted.post("/infill", json={**body, "n_indent": least}).json()["content"] == left

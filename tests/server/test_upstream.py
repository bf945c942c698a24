"""`calomel serve --upstream`: every question comes in by the HTTP door, and is asked of a played server."""

from __future__ import annotations

import gzip
import json
import math
import re
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from tests.server import _upstreams as played
from tests.server._upstreams import Play, served
from tests.server.conftest import TOKEN, events, listening, opened, upstream_app

from calomel.cli.checks import check_upstream
from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest, Draft
from calomel.infer.continuation import last_piece
from calomel.infer.upstream import exchange
from calomel.infer.wire import COMPLETE_PATH, INFO_PATH, decode, decode_info, encode
from calomel.prompts.fim_tokens import FORMATS as FIM_FORMATS
from calomel.prompts.fim_tokens import FimFormat, write_fim
from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts
from calomel.prompts.zeta import parse_zeta
from calomel.server.errors import StartError
from calomel.server.settings import ServeSettings, SettingsError, load
from calomel.server.upstream import upstream_of

FIM = "/v1/fim/completions"
HOLE = {"model": "m", "prompt": "def twice(n):\n    return ", "suffix": "\n"}
# A client of a server with an upstream; of starlette's or httpx's make.
Open = Callable[..., Any]
HEADERS = {"authorization": f"Bearer {TOKEN}"}
JSON = {**HEADERS, "content-type": "application/json"}
FORMATS: dict[str, Callable[[Play], Starlette]] = {
    "llama.cpp": played.llama_cpp,
    "ollama": played.ollama,
    "vllm": played.vllm,
    "openai": played.openai,
    "mercury": played.mercury,
}
ROUTES = {
    "llama.cpp": "/infill",
    "ollama": "/api/generate",
    "vllm": "/v1/completions",
    "openai": "/v1/completions",
    "mercury": "/v1/fim/completions",
}
TOLD = [name for name in FORMATS if name != "mercury"]


NO_TOKENS = {"error": {"code": 501, "message": "Infill is not supported by this model: prefix token is missing."}}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as found:
        yield found


@pytest.fixture
def door(stack: ExitStack) -> Open:
    """A client of a server that asks the one at an address. Raises StartError as its start would."""

    def open_(url: str, *, live: bool = False, **more: Any) -> Any:
        app = upstream_app(url, **more)
        if live:
            host, port = stack.enter_context(listening(app))
            base = f"http://{host}:{port}"
            return stack.enter_context(httpx.Client(base_url=base, headers=HEADERS, trust_env=False, timeout=30))
        return stack.enter_context(opened(app))

    return open_


@pytest.fixture
def asked(stack: ExitStack, door: Open) -> Open:
    """The same for a played server of this format, which is found out."""

    def open_(name: str, play: Play, **more: Any) -> Any:
        if name == "mercury":
            more = {"upstream_format": "mercury", **more}
        return door(stack.enter_context(served(FORMATS[name](play))), **more)

    return open_


def completed(client: httpx.Client, request: CompleteRequest) -> CompleteAnswer:
    response = client.post(COMPLETE_PATH, content=encode(request), headers=JSON)
    assert response.status_code == 200, response.text
    return decode(response.content, CompleteAnswer)


def error_of(response: httpx.Response) -> tuple[int, str, str]:
    error = response.json()["error"]
    return response.status_code, error["code"], error["message"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_hole_is_filled_by_a_server_whose_format_is_found_out(name: str, asked: Open) -> None:
    play = Play()
    answer = asked(name, play).post(FIM, json=HOLE).json()

    assert answer["choices"][0]["text"] == "n * 2"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["prompt_tokens"] == {"llama.cpp": 40, "ollama": 26, "mercury": 21}.get(name, 33)
    assert "def twice(n):" in json.dumps(play.last(ROUTES[name]))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_windows_is_shown_with_line_feeds_and_answered_in_its_own(
    name: str, asked: Open, *, stream: bool
) -> None:
    play = Play(tokens=("n * ", "2\n", "    + 1"), log_probs=None)
    hole = {"model": "m", "prompt": "# twice\r\ndef twice(n):\r\n    return ", "suffix": "\r\n", "stream": stream}
    answer = asked(name, play).post(FIM, json=hole)
    parts = events(answer)[:-1] if stream else [answer.json()]
    assert "".join(part["choices"][0]["text"] for part in parts) == "n * 2\r\n    + 1"
    assert "\\r" not in json.dumps([body for _, body in play.asked])


@pytest.mark.parametrize("name", FORMATS)
def test_empty_events_that_keep_a_connection_open_are_no_part_of_an_answer(name: str, asked: Open) -> None:
    play = Play(heartbeats=True)
    answer = asked(name, play).post(FIM, json=HOLE).json()
    assert answer["choices"][0]["text"] == "n * 2"


@pytest.mark.parametrize("name", FORMATS)
def test_a_stream_has_the_lines_as_they_come(name: str, asked: Open) -> None:
    play = Play(tokens=("x = 1\n", "y = 2\n", "z = 3\n"))
    client = asked(name, play, live=True)
    play.gate = threading.Event()

    body = {"prompt": "w = 0\n", "stream": True, "max_tokens": 32}
    with client.stream("POST", "/v1/completions", json=body) as response:
        events = (json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: {"))
        assert next(events)["choices"][0]["text"] == "x = 1"
        play.gate.set()
        assert "".join(event["choices"][0]["text"] for event in events) == "\ny = 2\nz = 3\n"


@pytest.mark.parametrize(
    ("name", "given", "read", "note"),
    [
        *((name, (-0.1, -0.2, -0.3), (-0.1, -0.2, -0.3), "gives log-probabilities") for name in TOLD),
        *((name, None, (), "it gives no log-probabilities, so only filters") for name in FORMATS),
        # A number that is none takes the others with it.
        *((name, (-0.1, math.nan, -0.3), (), "for some tokens only, so mostly filters") for name in TOLD),
        # Those of a draft model.
        ("llama.cpp", (-0.1, 0.0, 0.0), (), "for some tokens only, so mostly filters"),
    ],
)
def test_log_probabilities_are_the_confidence_and_the_status_says_whether_there_are_any(
    name: str, given: Any, read: tuple[float, ...], note: str, asked: Open
) -> None:
    client = asked(name, Play(log_probs=given))
    request = CompleteRequest("fill", PromptParts(path="a.py", prefix="x = ", suffix="\n"), max_tokens=16)

    before = client.get("/calomel/v1/status").json()["model"]["note"]
    own = completed(client, request).candidates[0]

    assert ("it gives log-probabilities" in before) == (given is not None)
    assert (own.text, own.log_probs) == ("n * 2", read)
    assert note in client.get("/calomel/v1/status").json()["model"]["note"]


@pytest.mark.parametrize("name", TOLD)
def test_an_answer_ends_where_its_model_is_unsure(name: str, asked: Open) -> None:
    play = Play(tokens=("n", " *", " fac", "tor", " + 9"), log_probs=(-0.1, -0.1, -0.2, -0.5, -0.1))
    request = CompleteRequest("fill", PromptParts(path="a.py", prefix="x = ", suffix="\n"), max_tokens=16)
    client = asked(name, play)

    def own(floor: float | None) -> tuple[str, tuple[float, ...], str]:
        found = completed(client, replace(request, floor=floor)).candidates[0]
        return found.text, found.log_probs, found.finish_reason

    assert own(None) == ("n * factor + 9", (-0.1, -0.1, -0.2, -0.5, -0.1), "stop")
    assert own(-0.95) == ("n * factor", (-0.1, -0.1, -0.2, -0.5), "unlikely")
    assert own(-0.7) == ("n * ", (-0.1, -0.1, -0.2), "unlikely")  # and not within a word
    assert own(-0.05) == ("", (), "unlikely")


@pytest.mark.parametrize(("first", "said"), [(-1.0, ("tal(", (0.0, -0.1))), (-3.0, ("", ()))], ids=["meant", "forced"])
def test_the_word_at_the_cursor_is_certain(first: float, said: tuple[str, tuple[float, ...]], asked: Open) -> None:
    play = Play(tokens=(" total", "(", "items"), log_probs=(first, -0.1, -2.0), models=("llama",), marks=())
    play.failing["/infill"] = (501, NO_TOKENS)
    request = CompleteRequest("fill", PromptParts(path="a.py", prefix="x = to", suffix="\n"), max_tokens=16, floor=-0.7)
    found = completed(asked("llama.cpp", play), request).candidates[0]
    assert (found.text, found.log_probs, found.finish_reason) == (*said, "unlikely")


HALF = CompleteRequest("fill", PromptParts(path="a.py", prefix="x = to", suffix="\n"), max_tokens=16, floor=-0.75)
# A model without fill-in-the-middle tokens.
PLAIN: dict[str, Any] = {"models": ("llama",), "marks": (), "capabilities": ("completion",)}


def healed(name: str, asked: Open, **play: Any) -> tuple[str, list[float], str]:
    found = Play(**PLAIN, **play)
    if name == "llama.cpp":
        found.failing["/infill"] = (501, NO_TOKENS)
    own = completed(asked(name, found), HALF).candidates[0]
    return own.text, [round(value, 2) for value in own.log_probs], own.finish_reason


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.parametrize(
    ("rivals", "said"),
    [
        # Half of what begins as typed is that, a tenth of all. What begins otherwise does not count, whatever it is.
        ({" total": 0.05, " top": 0.03, " t": 0.02, " self": 0.8, " ": 0.0}, ("tal(", [-0.69, -0.01], "unlikely")),
        ({" total": 0.05, " top": 0.2, " self": 0.7}, ("", [], "unlikely")),
        ({" total": 0.4, " top": 0.5}, ("", [], "unlikely")),
        # It is none of the ten likeliest, so that nobody knows what else begins so.
        ({" total": 0.05, **{f"{sign} ": 0.06 for sign in "=+-*/<>&|^"}}, ("", [], "unlikely")),
    ],
    ids=["half", "another", "likely and another", "unlisted"],
)
def test_the_word_at_the_cursor_is_as_likely_as_it_is_among_those_that_begin_so(
    name: str, rivals: dict[str, float], said: tuple[str, list[float], str], asked: Open
) -> None:
    numbers = {text: math.log(value or 1e-9) for text, value in rivals.items()}
    tokens = {"tokens": (" total", "(", "items"), "log_probs": (numbers[" total"], -0.01, -2.0)}
    assert healed(name, asked, **tokens, rivals=[numbers]) == said


@pytest.mark.parametrize("name", TOLD)
def test_each_token_that_spells_the_word_at_the_cursor_is_given_what_is_still_owed(name: str, asked: Open) -> None:
    tokens = {"tokens": (" t", "otal", "(", "items"), "log_probs": (-1.0, -3.0, -0.01, -2.0)}
    first = {" t": -1.0, " self": -0.7, " total": -3.0}
    then = {"ime": -0.1, "otal": -3.0, "o": -6.0}
    doubt = -math.log(1 + math.exp(-2)), -math.log(1 + math.exp(-3))
    assert healed(name, asked, **tokens, rivals=[first, then]) == ("tal(", [round(sum(doubt), 2), -0.01], "unlikely")
    then["oken"] = -3.0
    assert healed(name, asked, **tokens, rivals=[first, then]) == ("", [], "unlikely")


def test_a_word_that_is_typed_on_is_given_what_is_typed_by_then(asked: Open) -> None:
    rivals = {" total": math.log(0.3), " time": math.log(0.4)}
    play = Play(**PLAIN, tokens=(" total", "("), log_probs=(rivals[" total"], -0.1), rivals=[rivals])
    play.failing["/infill"] = (501, NO_TOKENS)
    client = asked("llama.cpp", play)

    def own(prefix: str) -> Candidate:
        request = replace(HALF, parts=replace(HALF.parts, prefix=prefix), floor=None)
        return completed(client, request).candidates[0]

    first, second = own("x = t"), own("x = to")

    assert (first.text, second.text) == ("otal(", "tal(")
    assert [round(math.exp(each.log_probs[0]), 2) for each in (first, second)] == [0.43, 1.0]
    asks = [body for path, body in play.asked if path == "/completion" and body["n_predict"] > 1]
    assert [body["n_probs"] for body in asks] == [10]


@pytest.mark.parametrize(
    ("name", "field"), [("llama.cpp", "n_probs"), ("ollama", "top_logprobs"), ("vllm", "logprobs")]
)
def test_likeliest_tokens_are_asked_for_where_a_word_is_owed_and_the_answer_is_short(
    name: str, field: str, asked: Open
) -> None:
    play = Play(**PLAIN, tokens=(" total", "()"))
    if name == "llama.cpp":
        play.failing["/infill"] = (501, NO_TOKENS)
    client = asked(name, play)

    def many(request: CompleteRequest) -> int:
        completed(client, request)
        return int(play.asked[-1][1][field])

    assert many(HALF) == 10
    assert many(replace(HALF, max_tokens=4096)) == 1
    assert many(replace(HALF, parts=replace(HALF.parts, prefix=""))) == 1


@pytest.mark.parametrize(("most", "many"), [(7, 5), (1, 1)])
def test_a_server_that_refuses_so_many_of_the_likeliest_tokens_is_asked_for_fewer(
    most: int, many: int, asked: Open
) -> None:
    play = Play(**PLAIN, tokens=(" total", "()"), most_rivals=most)
    client = asked("vllm", play)

    completed(client, HALF)

    assert play.last("/v1/completions")["logprobs"] == many
    assert "it gives log-probabilities" in client.get("/calomel/v1/status").json()["model"]["note"]


@pytest.mark.parametrize("name", TOLD)
def test_an_answer_with_an_unknown_token_is_kept_whole(name: str, asked: Open) -> None:
    play = Play(log_probs=(-0.1, math.nan, -3.0))
    request = CompleteRequest("fill", PromptParts(path="a.py", prefix="x = ", suffix="\n"), max_tokens=16, floor=-0.5)
    assert completed(asked(name, play), request).candidates[0].text == "n * 2"


@pytest.mark.parametrize(("refuses", "mute"), [(400, False), (500, False), (500, True)])
def test_a_server_that_refuses_the_question_for_log_probabilities_is_asked_without(
    refuses: int, *, mute: bool, asked: Open
) -> None:
    client = asked("openai", Play(log_probs=None, refuses=refuses, mute=mute))

    assert client.post(FIM, json=HOLE).json()["choices"][0]["text"] == "n * 2"
    assert "it gives no log-probabilities" in client.get("/calomel/v1/status").json()["model"]["note"]


EDITED = PromptParts(
    related=(Excerpt("lib/size.py", 0, "LIMIT = 3\n"),),
    edits=(Hunk("app.py", 4, "old = 1\n", "new = 1\n"),),
    path="app.py",
    prefix="def f(n):\n    return ",
    suffix="\n",
)


def test_llama_cpp_gets_other_files_and_edits_as_extra_chunks(asked: Open) -> None:
    play = Play()
    completed(asked("llama.cpp", play), CompleteRequest("fill", EDITED, max_tokens=16, stop=("\n",)))

    body = play.last("/infill")
    assert body["input_prefix"] == "def f(n):\n    return "
    assert body["input_suffix"] == "\n"
    assert body["input_extra"] == [
        {"filename": "lib/size.py", "text": "LIMIT = 3\n"},
        {"filename": "recent_edits.diff", "text": "--- app.py\n-old = 1\n+new = 1\n"},
    ]
    assert (body["n_predict"], body["n_probs"], body["cache_prompt"], body["stop"]) == (16, 1, True, ["\n"])


PROMPTS = {
    "qwen2.5-coder": "<|repo_name|>project\n<|file_sep|>lib/size.py\nLIMIT = 3\n\n<|file_sep|>recent_edits.diff\n"
    "--- app.py\n-old = 1\n+new = 1\n\n<|file_sep|>app.py\n"
    "<|fim_prefix|>def f(n):\n    return <|fim_suffix|>\n<|fim_middle|>",
    "granite-8b-code": "<reponame>project\n<filename>lib/size.py\nLIMIT = 3\n\n<filename>recent_edits.diff\n"
    "--- app.py\n-old = 1\n+new = 1\n\n<filename>app.py\n<fim_prefix>def f(n):\n    return <fim_suffix>\n<fim_middle>",
    "granite-4.1-3b": "<|fim_prefix|>def f(n):\n    return <|fim_suffix|>\n<|fim_middle|>",
    "JetBrains/Mellum-4b-base": "<filename>lib/size.py\nLIMIT = 3\n\n<filename>recent_edits.diff\n"
    "--- app.py\n-old = 1\n+new = 1\n\n<filename>app.py\n"
    "<fim_suffix>\n<fim_prefix>def f(n):\n    return <fim_middle>",
    "starcoder2-3b": "<repo_name>project\n<file_sep>lib/size.py\nLIMIT = 3\n\n<file_sep>recent_edits.diff\n"
    "--- app.py\n-old = 1\n+new = 1\n\n<file_sep><fim_prefix>app.py\ndef f(n):\n    return <fim_suffix>\n<fim_middle>",
    "codegemma-2b": "<|file_separator|>lib/size.py\nLIMIT = 3\n\n<|file_separator|>recent_edits.diff\n"
    "--- app.py\n-old = 1\n+new = 1\n\n<|file_separator|>app.py\n"
    "<|fim_prefix|>def f(n):\n    return <|fim_suffix|>\n<|fim_middle|>",
    "deepseek-coder-6.7b-base": "<｜fim▁begin｜>def f(n):\n    return <｜fim▁hole｜>\n<｜fim▁end｜>",  # noqa: RUF001
    "codellama-7b": "<PRE> def f(n):\n    return  <SUF>\n <MID>",
    "zed-industries/zeta": "<|repo_name|>project\n<|file_sep|>lib/size.py\nLIMIT = 3\n\n<|file_sep|>recent_edits.diff\n"
    "--- app.py\n-old = 1\n+new = 1\n\n<|file_sep|>app.py\n"
    "<|fim_prefix|>def f(n):\n    return <|fim_suffix|>\n<|fim_middle|>",
    "zeta-2.1": "<[fim-suffix]>\n<[fim-prefix]><filename>lib/size.py\nLIMIT = 3\n\n<filename>recent_edits.diff\n"
    "--- app.py\n-old = 1\n+new = 1\n\n<filename>app.py\ndef f(n):\n    return <[fim-middle]>",
    "codestral-22b": "[SUFFIX]\n[PREFIX]+++++ lib/size.py\nLIMIT = 3\n\n+++++ recent_edits.diff\n"
    "--- app.py\n-old = 1\n+new = 1\n\n+++++ app.py\ndef f(n):\n    return ",
}


@pytest.mark.parametrize(("model", "prompt"), PROMPTS.items(), ids=PROMPTS)
def test_a_model_is_asked_with_the_tokens_of_its_family(model: str, prompt: str, asked: Open) -> None:
    play = Play(models=(model,))
    completed(asked("openai", play), CompleteRequest("fill", EDITED, max_tokens=16))

    assert play.last("/v1/completions")["prompt"] == prompt


@pytest.mark.parametrize("form", FIM_FORMATS.values(), ids=FIM_FORMATS)
def test_what_ends_an_answer_is_a_token_of_its_format(form: FimFormat) -> None:
    text = write_fim(EDITED, form)
    assert set(form.ends) - {form.end.lstrip("▁"), *form.files, *form.repository} <= set(form.marks)
    assert all(text.count(mark) == 1 for mark in form.marks)


STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")
QWEN = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
ZETA = ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>")
# Format, server and settings; the route that is asked, and how its prompt begins.
TOKENS: dict[str, tuple[str, Play, dict[str, str], str, str]] = {
    "a name that does not answer": (
        "vllm", Play(models=("/models/mine",), marks=STARCODER), {}, "/v1/completions", "<fim_prefix>def twice",
    ),
    "tokens that llama.cpp does not know": (
        "llama.cpp", Play(marks=ZETA, failing={"/infill": (501, NO_TOKENS)}), {}, "/completion", "<[fim-suffix]>",
    ),
    "a name that tells the order": (
        "vllm", Play(models=("JetBrains/Mellum2-12B",), marks=STARCODER), {}, "/v1/completions", "<filename>untitled",
    ),
    "tokens that the name does not tell": (
        "vllm", Play(models=("granite-5-3b",), marks=QWEN), {}, "/v1/completions", "<|fim_prefix|>",
    ),
    "a format that llama.cpp writes otherwise": (
        "llama.cpp", Play(path="/m/mellum-4b.gguf", marks=STARCODER), {}, "/completion", "<filename>untitled",
    ),
    "tokens that are named": (
        "openai", Play(models=("mine",)), {"upstream_fim": "starcoder"}, "/v1/completions", "<fim_prefix>",
    ),
    "a model that is named where none can be listed": (
        "openai", Play(failing={"/v1/models": (500, {"detail": "no cache"})}),
        {"upstream_model": "qwen2.5-coder"}, "/v1/completions", "<|fim_prefix|>",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "play", "more", "route", "beginning"), TOKENS.values(), ids=TOKENS)
def test_the_tokens_of_a_hole_are_found_out_or_named(
    name: str, play: Play, more: dict[str, str], route: str, beginning: str, asked: Open
) -> None:
    answer = asked(name, play, **more).post(FIM, json=HOLE).json()

    assert answer["choices"][0]["text"] == "n * 2"
    assert beginning in play.last(route)["prompt"]
    assert play.last(route).get("model") in {more.get("upstream_model"), *play.models, None}


def test_a_router_of_llama_cpp_is_told_which_model(asked: Open) -> None:
    play = Play(router=True, models=("qwen2.5-coder:1.5b", "gemma"))
    with pytest.raises(StartError, match=r"set upstream_model to one of them \(qwen2.5-coder:1.5b, gemma\)"):
        asked("llama.cpp", play)
    asked("llama.cpp", play, upstream_model="gemma").post(FIM, json=HOLE)

    assert play.last("/infill")["model"] == "gemma"


# The user's text; what of it must not reach a model of this name.
FORGED = {
    "the format's own": ("qwen2.5-coder", "<|fim_middle|>"),
    "of chats": ("qwen2.5-coder", "<|im_start|>"),
    "of padding": ("qwen2.5-coder", "<|fim_pad|>"),
    "of another maker": ("deepseek-coder", "<｜User｜>"),  # noqa: RUF001 (its own)
    "that ends a text": ("codellama-7b", "</s>"),
    "in a longer run": ("codestral-22b", "+++++++++ "),
    "where no format is known": ("llama3.2", "<|im_end|>"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "token"), FORGED.values(), ids=FORGED)
def test_text_of_the_users_forges_no_token_and_comes_back_as_it_is(
    model: str, token: str, asked: Open, *, stream: bool
) -> None:
    play = Play(models=(model,), log_probs=None)
    client = asked("vllm", play)
    body = {**HOLE, "prompt": f"a = '{token}' or ", "stream": stream}
    client.post(FIM, json=body)
    prompt = play.last("/v1/completions")["prompt"]
    shown = prompt[prompt.index("'") : prompt.index(" or ")]
    # The model repeats what it sees.
    play.tokens = [shown[at : at + 3] for at in range(0, len(shown), 3)]
    answer = client.post(FIM, json=body)
    parts = events(answer)[:-1] if stream else [answer.json()]

    assert ("+++++ " if model == "codestral-22b" else token) not in shown
    assert "".join(part["choices"][0]["text"] for part in parts) == f"'{token}'"


@pytest.mark.parametrize("name", ["vllm", "openai"])
@pytest.mark.parametrize("stop", [[], ["#", "//", "--", "/*"]], ids=["of none", "of a client"])
def test_the_next_file_that_a_model_begins_is_no_part_of_an_answer(name: str, stop: list[str], asked: Open) -> None:
    special = ("<file_sep>",) if name == "vllm" else ()
    play = Play(
        models=("starcoder2-3b",), tokens=("n ", "* 2", "<file_sep>", "b.py\n"), log_probs=None, special=special
    )
    answer = asked(name, play).post(FIM, json={**HOLE, "stop": stop}).json()

    assert answer["choices"][0]["text"] == "n * 2"


@pytest.mark.parametrize(
    ("name", "model", "reading", "least", "most"),
    [
        ("llama.cpp", "", 4.0, 64, 128),
        ("llama.cpp", "", 40.0, 64, 128),
        ("llama.cpp", "", 1.0, 256, 512),
        ("llama.cpp", "", 0.01, 2000, 2000),
        ("llama.cpp", "", None, 2000, 2000),
        ("ollama", "qwen2.5-coder:1.5b-base", 4.0, 64, 128),
        ("ollama", "seed-coder:8b-base", 4.0, 2000, 2000),
    ],
)
def test_a_server_that_reads_slowly_gets_less_of_what_is_behind_the_cursor(
    name: str, model: str, reading: float | None, least: int, most: int, asked: Open
) -> None:
    """Its prefix cache ends at the cursor where the text behind it comes later."""
    behind = "\n" + "    count += 1\n" * 133
    play = Play(reading=reading, models=(model,))
    client = asked(name, play)
    for _ in range(2):
        assert client.post(FIM, json={"model": "m", "prompt": "def f(count):\n    ", "suffix": behind}).is_success
    body = play.last(ROUTES[name])
    shown = body["input_suffix"] if name == "llama.cpp" else body["prompt"]
    count = shown.count("    count += 1\n") * len("    count += 1\n")
    assert min(least, len(behind)) - 15 <= count <= most
    assert shown.partition("    count += 1")[2] == "" or count % 15 == 0


def test_ollama_fills_by_its_template_where_the_tokens_are_not_known(asked: Open) -> None:
    play = Play(models=("mine:latest",))
    asked("ollama", play, upstream_model="mine").post(FIM, json=HOLE)

    body = play.last("/api/generate")
    assert (body["prompt"], body["suffix"], "raw" in body) == ("def twice(n):\n    return ", "\n", False)


def test_secrets_do_not_leave(asked: Open) -> None:
    play = Play()
    secret = "ghp_" + "0123456789abcdefghijklmnopqrstuvwxyz"
    asked("llama.cpp", play).post(FIM, json={**HOLE, "prompt": f"token = '{secret}'\nx = "})

    assert secret not in json.dumps(play.asked)
    assert "token = '****" in play.last("/infill")["input_prefix"]


def test_nor_do_those_in_the_names_of_files(asked: Open) -> None:
    play = Play()
    secret = "ghp_" + "0123456789abcdefghijklmnopqrstuvwxyz"
    extra = [{"filename": f"old/{secret}.py", "text": "x = 1\n"}]
    asked("llama.cpp", play).post("/infill", json={"input_prefix": "a = ", "input_suffix": "", "input_extra": extra})

    assert secret not in json.dumps(play.asked)
    assert "*" in play.last("/infill")["input_extra"][0]["filename"]


RENAMED = CompleteRequest(
    "edit",
    PromptParts(path="a.py", prefix="x = 1\n", suffix="z\n", region=EditRegion("old()\n", 0)),
    drafts=(Draft("bad()\n", "shape"), Draft("good\n", "rename")),
)


@pytest.mark.parametrize("name", ["llama.cpp", "ollama", "vllm", "openai"])
def test_a_server_that_only_fills_leaves_drafts_unjudged(name: str, asked: Open) -> None:
    answer = completed(asked(name, Play()), RENAMED)

    assert [(each.text, each.log_prob) for each in answer.candidates] == [("bad()\n", None), ("good\n", None)]
    assert not answer.judged


@pytest.mark.parametrize("own", [False, True])
def test_edits_by_rules_go_on_while_the_server_is_stopped(door: Open, *, own: bool) -> None:
    with served(played.ollama(Play())) as url:
        client = door(url)
    answer = completed(client, replace(RENAMED, own=own))

    assert [each.text for each in answer.candidates] == ["bad()\n", "good\n"]


def test_what_is_known_by_the_deadline_is_the_answer(asked: Open) -> None:
    play = Play()
    client = asked("llama.cpp", play)
    play.gate = threading.Event()
    request = CompleteRequest("fill", PromptParts(prefix="x = "), max_tokens=16, deadline=0.3)

    own = completed(client, request).candidates[0]
    assert (own.text, own.finish_reason) == ("n ", "deadline")


def test_drafts_are_there_also_when_the_model_is_late(asked: Open) -> None:
    play = Play(models=("zeta-2.1",))
    client = asked("vllm", play)
    play.gate = threading.Event()

    answer = completed(client, replace(RENAMED, deadline=0.3))
    assert [each.text for each in answer.candidates] == ["bad()\n", "good\n"]


REGION = """<|recently_viewed_code_snippets|>

<|/recently_viewed_code_snippets|>

<|current_file_content|>
current_file_path: a.py
def total(prices):
    return sum(prices)

<|code_to_edit|>
result = total(items)
second = total<|cursor|>(others)
<|/code_to_edit|>
<|/current_file_content|>

<|edit_diff_history|>
--- a.py
+++ a.py
@@ -1,2 +1,2 @@
-def count(prices):
-    return len(prices)
+def total(prices):
+    return sum(prices)

@@ -4,1 +4,1 @@
-result = count(items)
+result = total(items)

<|/edit_diff_history|>
"""


def rewritten(client: httpx.Client, region: str = REGION) -> str:
    """What the region of a prompt becomes."""
    answer = client.post("/v1/edit/completions", json={"model": "m", "messages": [{"role": "user", "content": region}]})
    return str(answer.json()["choices"][0]["message"]["content"])


def test_a_rename_goes_on_with_a_server_that_only_fills(asked: Open) -> None:
    region = REGION.replace("second = total<|cursor|>(others)", "second = count<|cursor|>(others)")

    assert rewritten(asked("llama.cpp", Play()), region) == "```\nresult = total(items)\nsecond = total(others)\n```"


@pytest.mark.parametrize(
    ("said", "becomes"),
    [
        ("```\nresult = total(items)\nthird = total(others)\n```", "third = total(others)"),
        ("```python\nresult = total(items)\nthird = total(others)\n```\n", "third = total(others)"),
        ("```\nresult = total(items)\nsecond = total(others)\n```", "second = total(others)"),
        ("None", "second = total(others)"),
    ],
    ids=["fenced", "with a language", "unchanged", "none"],
)
def test_the_hosted_service_rewrites_regions(said: str, becomes: str, asked: Open) -> None:
    play = Play(region=said, key="k-1", tokens=())
    client = asked("mercury", play, upstream_key="k-1")

    assert rewritten(client) == f"```\nresult = total(items)\n{becomes}\n```"
    sent = play.last("/v1/edit/completions")["messages"][0]["content"]
    assert "<|code_to_edit|>\nresult = total(items)\nsecond = total<|cursor|>(others)\n<|/code_to_edit|>\n" in sent
    assert "-result = count(items)\n+result = total(items)\n" in sent


def test_a_region_with_tags_of_its_own_stays_as_it_is(asked: Open) -> None:
    region = 'CURSOR = "<|cursor|>"\nEND = "<|/code_to_edit|>"\n'
    play = Play()
    client = asked("mercury", play)
    request = CompleteRequest("edit", PromptParts(path="a.py", prefix="x = 1\n", region=EditRegion(region, 0)))
    completed(client, request)
    sent = play.last("/v1/edit/completions")["messages"][0]["content"]
    play.region = "```\n" + sent.split("<|code_to_edit|>\n<|cursor|>")[1].split("<|/code_to_edit|>")[0] + "```"

    assert completed(client, request).candidates[0].text == region


@pytest.mark.parametrize("name", ["llama.cpp", "ollama", "vllm"])
def test_a_model_of_zeds_is_asked_in_its_own_format(name: str, asked: Open) -> None:
    play = Play(
        models=("zeta-2.1",),
        path="/models/zeta-2.1-Q8_0.gguf",
        tokens=("<|marker_1|>", "result = total(items)\nthird = total(", "others)", "<|marker_2|>"),
        log_probs=(-0.01, -0.1, -0.1, -0.01),
        marks=ZETA,
        failing={"/infill": (501, NO_TOKENS)},
    )
    client = asked(name, play)

    assert rewritten(client) == "```\nresult = total(items)\nthird = total(others)\n```"
    read = parse_zeta(next(body["prompt"] for _, body in play.asked if "<|marker_1|>" in str(body.get("prompt"))))
    assert read.edit.region == "result = total(items)\nsecond = total(others)"
    assert (read.edit.path, read.edit.cursor) == ("a.py", 36)
    assert read.edit.edits[-1].before == "result = count(items)\n"


SWEEP = """<|file_sep|>a.py.diff
original:
def count(prices):
    return len(prices)
updated:
def total(prices):
    return sum(prices)
<|file_sep|>original/a.py
result = count(items)
second = total(others)
<|file_sep|>current/a.py
result = total(items)
second = total(others)
<|file_sep|>updated/a.py"""


@pytest.mark.parametrize(
    ("name", "more"),
    [("llama.cpp", {"upstream_edit": "sweep"}), ("openai", {})],
    ids=["by its setting", "by its name"],
)
def test_a_model_of_sweeps_is_asked_in_its_own_format(name: str, more: dict[str, str], asked: Open) -> None:
    play = Play(
        models=("sweep-next-edit-1.5b",), tokens=("\nresult = total(items)\n", "third = total(", "others)"),
    )  # fmt: skip
    client = asked(name, play, **more)

    assert rewritten(client) == "```\nresult = total(items)\nthird = total(others)\n```"
    body = next(body for _, body in play.asked if "<|file_sep|>updated/" in str(body.get("prompt")))
    assert body["prompt"] == SWEEP
    assert "<|file_sep|>" in body["stop"]
    assert decode_info(client.get(INFO_PATH).content).region.above == 10


@pytest.mark.parametrize("said", ["", "<|marker_1|>", "<|marker_1|><|marker_1|>"])
def test_silence_of_a_model_of_zeds_is_silence(said: str, asked: Open) -> None:
    client = asked("vllm", Play(models=("zeta-2.1",), tokens=(said,), log_probs=(-0.1,)))

    assert "second = total(others)" in rewritten(client)


def test_an_answer_of_the_hosted_service_that_is_cut_off_is_none(asked: Open) -> None:
    client = asked("mercury", Play(region="```\nresult ="))
    answer = client.post("/v1/edit/completions", json={"model": "m", "messages": [{"role": "user", "content": REGION}]})

    assert error_of(answer)[:2] == (503, "upstream_failed")


def test_the_list_of_models_has_what_is_behind_by_now(stack: ExitStack, door: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client = door(f"http://127.0.0.1:{port}")

    def listed() -> tuple[str, int]:
        (model,) = client.get("/v1/models").json()["data"]
        assert [tag["name"] for tag in client.get("/api/tags").json()["models"]] == [model["id"]]
        return model["id"], model["context_length"]

    assert listed() == ("upstream", 4096)
    stack.enter_context(served(played.ollama(Play()), port))
    assert client.post(FIM, json=HOLE).status_code == 200
    assert listed() == ("qwen2.5-coder:1.5b-base", 8192)


def test_a_server_that_hangs_is_given_up_before_its_model_could_load(
    door: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(exchange, "LOADING_SECONDS", 60.0)
    with socket.create_server(("127.0.0.1", 0)) as hung:
        client = door(f"http://127.0.0.1:{hung.getsockname()[1]}")
        began = time.monotonic()
        answer = client.post(FIM, json=HOLE)

    assert "did not answer in time" in error_of(answer)[2]
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("name", FORMATS)
def test_a_client_that_goes_closes_the_connection_behind_it(name: str, asked: Open) -> None:
    play = Play()
    client = asked(name, play, live=True)
    play.gate = threading.Event()

    with pytest.raises(httpx.ReadTimeout):
        client.post(FIM, json=HOLE, timeout=0.5)

    assert play.gone.wait(10)


def test_a_server_is_looked_at_when_it_is_found_and_then_only_asked(asked: Open) -> None:
    play = Play()
    client = asked("llama.cpp", play)
    for _ in range(3):
        assert client.post(FIM, json=HOLE).status_code == 200
    assert [path for path, _ in play.asked] == ["/props", "/props", *["/infill"] * 4]


def test_a_server_that_does_not_answer_yet_is_not_called_ready(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "calomel.server")
    upstream_app("http://127.0.0.1:1")
    assert caplog.messages == ["no server answers at http://127.0.0.1:1: start it, or correct upstream"]
    with served(played.llama_cpp(Play())) as url:
        upstream_app(url)
    assert caplog.messages[-1] == "the model is ready"


def test_a_server_that_dies_and_returns_is_asked_again(stack: ExitStack, door: Open) -> None:
    first, second = Play(), Play(tokens=("n + n",), log_probs=(-0.5,))
    with served(played.llama_cpp(first)) as url:
        client = door(url)
        assert client.post(FIM, json=HOLE).json()["choices"][0]["text"] == "n * 2"
    gone = client.post(FIM, json=HOLE)
    assert error_of(gone) == (503, "upstream_failed", f"no server answers at {url}: start it, or correct upstream")
    assert gone.headers["retry-after"] == "2"
    assert client.get("/calomel/v1/status").json()["model"]["note"] == error_of(gone)[2]

    with served(played.llama_cpp(second), int(url.rpartition(":")[2])):
        assert client.post(FIM, json=HOLE).json()["choices"][0]["text"] == "n + n"


def test_a_server_that_comes_later_is_waited_for(door: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client = door(f"http://127.0.0.1:{port}")
    assert client.post(FIM, json=HOLE).status_code == 503
    with served(played.ollama(Play()), port):
        assert client.post(FIM, json=HOLE).json()["choices"][0]["text"] == "n * 2"
        assert decode_info(client.get(INFO_PATH).content).id == "qwen2.5-coder:1.5b-base"


@pytest.mark.parametrize(("name", "window"), [("llama.cpp", 8192), ("ollama", 8192), ("vllm", 16384), ("openai", 4096)])
def test_a_prompt_fits_the_servers_window(name: str, window: int, asked: Open) -> None:
    client = asked(name, play := Play())
    info = decode_info(client.get(INFO_PATH).content)
    assert info.max_context == window

    parts = PromptParts(
        related=(Excerpt("far.py", 0, "far = 1\n" * 4000),),
        prefix="".join(f"line_{number} = {number}\n" for number in range(9000)),
        suffix="end\n" * 9000,
    )
    completed(client, CompleteRequest("fill", parts, max_tokens=64, max_context=info.max_context))

    sent = json.dumps(play.last(ROUTES[name]), ensure_ascii=False)
    assert len(sent) < window * 3.5
    assert "line_8999" in sent
    assert "far.py" not in sent


NO_HOLES: dict[str, tuple[str, dict[str, Any], str]] = {
    "llama.cpp": ("llama.cpp", {"failing": {"/infill": (501, NO_TOKENS)}, "marks": ()}, "/completion"),
    "Ollama": ("ollama", {"models": ("llama3.2",), "capabilities": ("completion",)}, "/api/generate"),
    "vLLM": ("vllm", {"models": ("llama",)}, "/v1/completions"),
    "LM Studio": ("openai", {"models": ("llama",)}, "/v1/completions"),
}


@pytest.mark.parametrize(("name", "more", "route"), NO_HOLES.values(), ids=NO_HOLES)
def test_a_model_without_tokens_for_holes_continues_the_text_before_them(
    name: str, more: dict[str, Any], route: str, asked: Open
) -> None:
    play = Play(tokens=(" n", " *", " 2", "\n\n", "def thrice"), log_probs=(-0.1,) * 5, **more)
    client = asked(name, play)

    answer = client.post(FIM, json=HOLE).json()

    # The blank before the cursor was the model's to write, and what comes after the function is not wanted.
    assert answer["choices"][0]["text"] == "n * 2"
    assert play.last(route)["prompt"].endswith("def twice(n):\n    return")
    assert "it has no fill-in-the-middle tokens" in client.get("/calomel/v1/status").json()["model"]["note"]


def test_a_model_that_writes_another_word_than_the_one_at_the_cursor_is_asked_from_there(asked: Open) -> None:
    play = Play(models=("llama",), tokens=(" nothing",), log_probs=(-0.1,))
    answer = asked("openai", play).post(FIM, json={**HOLE, "prompt": "value = tot"}).json()

    assert [body["prompt"] for path, body in play.asked if path == "/v1/completions"][-2:] == ["value =", "value = tot"]
    assert answer["choices"][0]["text"] == " nothing"


# The text before and behind a hole, what a model goes on with, and what of it belongs there.
GOING_ON: dict[str, tuple[str, str, str, str]] = {
    "the rest of a line": ("x = f(", ", 2)\ny = 1\n", "1, 2)\ny = 2\n", "1"),
    "what the text behind closes": ("x = f(", ")\n", "1, 2)\nprint(x)\n", "1, 2"),
    "one statement before others": (
        "def f():\n    a = 1\n    ", "\n    return a\n", "b = 2\n    c = 3\n    d = 4\n", "b = 2",
    ),
    "a statement over several lines": (
        "def f():\n    ", "\n    return b\n", "b = [\n        1,\n    ]\n    c = 3\n", "b = [\n        1,\n    ]",
    ),
    "the end of a block": (
        "def f():\n    ", "\n\n\ndef g():\n    pass\n", "a = 1\n    return a\n\n\ndef h():\n", "a = 1\n    return a",
    ),
    "a block of its own": ("def f(a):\n    if a", "\n", " > 1:\n        pass\n    return 2\n", " > 1:\n        pass"),
    "what ends the line already": ("return ", ";\n}\n", "f(x);\n}\n", "f(x)"),
    "the block that is there": ("if a", ":\n    print(1)\n", " > 1:\n    print(2)\n", " > 1"),
    "brackets in strings": ("x = ", "\n", "')' + y\nz = 2\n", "')' + y"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "behind", "said", "kept"), GOING_ON.values(), ids=GOING_ON)
def test_what_follows_a_hole_tells_where_the_answer_of_a_model_ends_that_goes_on(
    before: str, behind: str, said: str, kept: str, asked: Open
) -> None:
    tokens = re.findall(r"\s*\S+|\s+", last_piece(before, ()) + said)
    play = Play(models=("llama",), tokens=tokens, log_probs=(-0.1,) * len(tokens))

    body = {"model": "m", "prompt": f"<|file_sep|>f.py\n<|fim_prefix|>{before}<|fim_suffix|>{behind}<|fim_middle|>"}
    answer = asked("openai", play).post("/v1/completions", json=body).json()

    assert answer["choices"][0]["text"] == kept


BAD: dict[str, tuple[str, Play, dict[str, Any], str]] = {
    "wrong model name": (
        "ollama", Play(), {"upstream_model": "qwen3"},
        "has no qwen3: it has qwen2.5-coder:1.5b-base",
    ),
    "wrong model name, llama.cpp": (
        "llama.cpp", Play(), {"upstream_model": "qwen3"}, "has no qwen3: it has Qwen2.5-Coder-1.5B-Q8_0",
    ),
    "several models": (
        "openai", Play(models=("qwen-a", "qwen-b")), {},
        "has several models: set upstream_model to one of them (qwen-a, qwen-b)",
    ),
    "no model": ("openai", Play(models=()), {}, "has no model: load one"),
    "tokens that the model has not, llama.cpp": (
        "llama.cpp", Play(marks=()), {"upstream_fim": "qwen"},
        "Qwen2.5-Coder-1.5B-Q8_0 has no tokens <|fim_prefix|> <|fim_suffix|> <|fim_middle|>: remove upstream_fim",
    ),
    "tokens that the model has not, vLLM": (
        "vllm", Play(models=("llama",)), {"upstream_fim": "starcoder"},
        "llama has no tokens <fim_prefix> <fim_suffix> <fim_middle>: remove upstream_fim to detect them",
    ),
    "chat only": (
        "openai", Play(failing={"/v1/completions": (404, {"error": "not found"})}), {},
        "only chats and cannot complete code: use one with /v1/completions",
    ),
    "no key": (
        "mercury", Play(key="k-secret"), {},
        "requires a key: set upstream_key_file or CALOMEL_UPSTREAM_KEY",
    ),
    "wrong key": (
        "vllm", Play(key="k-secret"), {"upstream_key": "k-wrong"},
        "rejects the key: set upstream_key_file or CALOMEL_UPSTREAM_KEY",
    ),
    "another address": (
        "openai", Play(failing={"/v1/models": (307, "http://192.0.2.1/v1/models")}),
        {"upstream_format": "openai"}, "redirects elsewhere, which Calomel does not follow",
    ),
    "another program": (
        "openai", Play(failing={"/v1/models": (200, {"hello": 1})}), {},
        "speaks no known API: if it is llama.cpp, Ollama, vLLM or LM Studio",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "play", "more", "sentence"), BAD.values(), ids=BAD)
def test_what_waiting_cannot_mend_ends_the_start_with_what_to_do(
    name: str, play: Play, more: dict[str, Any], sentence: str, asked: Open
) -> None:
    with pytest.raises(StartError) as refused:
        asked(name, play, **more)

    assert sentence in str(refused.value)
    assert "k-secret" not in str(refused.value)
    assert "k-wrong" not in str(refused.value)


def test_a_certificate_that_nobody_vouches_for_is_told(
    certificate: tuple[Path, Path], stack: ExitStack, door: Open
) -> None:
    url = stack.enter_context(served(played.vllm(Play()), certificate=certificate))
    with pytest.raises(StartError, match=r"no trusted certificate \(self-signed certificate\): set SSL_CERT_FILE"):
        door(url)

    plain = stack.enter_context(served(played.vllm(Play())))
    with pytest.raises(StartError, match=r"does not support TLS, or its version \(\w+\): on this machine, use http"):
        door(plain.replace("http:", "https:"))


@pytest.mark.parametrize("name", FORMATS)
def test_half_an_answer_is_an_error_and_the_next_one_is_whole(name: str, asked: Open) -> None:
    play = Play()
    client = asked(name, play)
    play.half = 2
    status, code, message = error_of(client.post(FIM, json=HOLE))
    assert (status, code) == (503, "upstream_failed")
    assert "stopped in the middle of an answer: see its log, then try again" in message

    play.half = None
    assert client.post(FIM, json=HOLE).json()["choices"][0]["text"] == "n * 2"


def test_a_connection_that_breaks_before_the_first_token_is_tried_once_more(asked: Open) -> None:
    play = Play()
    client = asked("llama.cpp", play)
    play.half = 0
    assert client.post(FIM, json=HOLE).status_code == 503
    assert [path for path, _ in play.asked].count("/infill") == 3


TROUBLES: dict[str, tuple[str | int, str]] = {
    **dict.fromkeys(
        ("{", "[1, 2", '{"choices": 3} x'),
        ("nonsense", "did not answer with llama.cpp format: check upstream and upstream_format"),
    ),
    "too many requests": (429, "is overloaded"),
    "not ready": (503, "not ready yet"),
    "a fault": (500, "see its log"),
}


@pytest.mark.parametrize("said", TROUBLES)
def test_a_server_in_trouble_is_named_and_its_words_are_not_repeated(said: str, asked: Open) -> None:
    play, (kind, sentence) = Play(), TROUBLES[said]
    client = asked("llama.cpp", play)
    if isinstance(kind, int):
        play.failing["/infill"] = (kind, {"error": {"message": "def twice(n) is private"}})
    else:
        play.nonsense = said

    status, code, message = error_of(client.post(FIM, json=HOLE))

    assert (status, code) == (503, "upstream_failed")
    assert sentence in message
    assert "private" not in message


@pytest.mark.parametrize(
    "nonsense", ["3", "[]", '{"content": 7}', '{"content": null, "completion_probabilities": {"a": 1}}']
)
def test_odd_documents_are_read_as_far_as_they_go(nonsense: str, asked: Open) -> None:
    play = Play()
    client = asked("llama.cpp", play)
    play.nonsense = nonsense
    assert client.post(FIM, json=HOLE).json()["choices"][0]["text"].endswith("n * 2")


@pytest.mark.parametrize(
    ("name", "window", "most"), [("llama.cpp", 8192, 2), ("vllm", 16384, 2), ("ollama", 8192, 1), ("openai", 4000, 4)]
)
def test_a_text_of_many_tokens_is_cut_and_asked_again_within_the_question(
    name: str, window: int, most: int, asked: Open
) -> None:
    play = Play(window=window)
    client = asked(name, play, context_tokens=window)
    hole = {**HOLE, "prompt": "x = 1\n" * 10_000}
    before = len([path for path, _ in play.asked if path == ROUTES[name]])
    assert client.post(FIM, json=hole).json()["choices"][0]["text"] == "n * 2"
    asked_now = len([path for path, _ in play.asked if path == ROUTES[name]]) - before
    assert asked_now <= most + 1
    assert client.post(FIM, json=hole).json()["choices"][0]["text"] == "n * 2"
    assert len([path for path, _ in play.asked if path == ROUTES[name]]) == before + asked_now + 1


@pytest.mark.parametrize("mute", [False, True])
def test_a_window_that_only_a_refusal_tells_is_that_of_the_same_question(*, mute: bool, asked: Open) -> None:
    client = asked("openai", Play(window=600, mute=mute))
    assert client.post(FIM, json=HOLE | {"prompt": "x = 1\n" * 300}).json()["choices"][0]["text"] == "n * 2"


@pytest.mark.parametrize(
    ("name", "route", "told"),
    [
        ("llama.cpp", "/completion", {"grammar": 'root ::= " \\"" [^\\x00]*'}),
        ("vllm", "/v1/completions", {"structured_outputs": {"regex": ' "(.|\\n)*'}}),
    ],
)
def test_a_server_is_told_how_the_word_at_the_cursor_begins(
    name: str, route: str, told: dict[str, Any], asked: Open
) -> None:
    play = Play(
        tokens=(' "tot', "als"), log_probs=(-0.1, -0.1), models=("llama",), failing={"/infill": (501, NO_TOKENS)}
    )
    client = asked(name, play)
    before = len(play.asked)
    answer = client.post(FIM, json={**HOLE, "prompt": 'value = "'}).json()
    assert answer["choices"][0]["text"] == "totals"
    (body,) = [body for path, body in play.asked[before:] if path == route and body.get("n_predict", 9) > 1][-1:]
    assert body["prompt"] == "value ="
    assert {key: body[key] for key in told} == told


def test_a_prompt_that_nobody_counted_is_estimated_and_says_so(asked: Open) -> None:
    usage = asked("openai", Play(counts=False)).post(FIM, json=HOLE).json()["usage"]
    assert usage["prompt_tokens"] == -(-len(HOLE["prompt"]) // 3) + 1
    assert usage["estimated"] is True
    assert "estimated" not in asked("openai", Play()).post(FIM, json=HOLE).json()["usage"]


@pytest.mark.parametrize(("name", "estimated"), [("vllm", False), ("openai", True)])
def test_the_tokens_of_a_prompt_are_known_before_an_answer_is_over_where_a_server_says_them(
    name: str, *, estimated: bool, asked: Open
) -> None:
    # Of so many stop strings, the last one is not the server's to find.
    hole = {**HOLE, "stop": ["<a>", "<b>", "<c>", "<d>", "*"]}
    answer = asked(name, Play()).post(FIM, json=hole).json()
    assert answer["choices"][0]["text"].rstrip() == "n"
    assert (answer["usage"].get("estimated", False), answer["usage"]["prompt_tokens"] == 33) == (
        estimated,
        not estimated,
    )


def test_the_prompt_of_a_word_is_asked_once_while_it_is_typed(asked: Open) -> None:
    play = Play(tokens=(" total", "_price"), log_probs=(-0.1, -0.1), models=("llama",))
    client = asked("openai", play)
    texts, counts = [], []
    for prompt in ("value = t", "value = to", "value = tota", "value = tx"):
        texts.append(client.post(FIM, json={**HOLE, "prompt": prompt}).json()["choices"][0]["text"])
        counts.append(len(play.asked))
    assert texts[:3] == ["otal_price", "tal_price", "l_price"]
    assert counts[0] == counts[1] == counts[2]
    assert play.last("/v1/completions")["prompt"] == "value = tx"


@pytest.mark.parametrize("name", FORMATS)
def test_servers_of_the_users_own_read_ahead_for_one_token_what_is_asked_next(name: str, asked: Open) -> None:
    play = Play((" total",), (-0.1,), models=("llama",), path="/llama.gguf", failing={"/infill": (501, NO_TOKENS)})
    client = asked(name, play)
    parts = PromptParts((Excerpt("b.py", 0, "y = 2\n"),), path="a.py", prefix="value = tot", suffix="\n")
    request = CompleteRequest("fill", parts, max_tokens=12)
    reads = decode_info(client.get(INFO_PATH, headers=HEADERS).content).reads_ahead
    assert reads == (name in {"llama.cpp", "ollama"})
    if not reads:
        return

    assert completed(client, replace(request, ahead=True)).candidates == ()
    read = play.asked[-1][1]
    completed(client, request)
    question = play.asked[-1][1]
    assert read["prompt"] == question["prompt"]
    assert read.get("n_predict", read.get("options", {}).get("num_predict")) == 1
    count = len(play.asked)
    completed(client, replace(request, ahead=True))
    assert len(play.asked) == count


def test_nothing_is_read_ahead_beyond_networks_that_the_user_trusts(
    certificate: tuple[Path, Path], stack: ExitStack, door: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    client = door(stack.enter_context(served(played.llama_cpp(Play()), certificate=certificate)))
    assert not decode_info(client.get(INFO_PATH, headers=HEADERS).content).reads_ahead


def test_a_model_in_ollamas_cloud_reads_nothing_ahead(asked: Open) -> None:
    client = asked("ollama", Play(remote="https://ollama.com"))
    assert not decode_info(client.get(INFO_PATH, headers=HEADERS).content).reads_ahead


def test_a_schema_is_refused_with_what_to_do(asked: Open) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    refused = asked("llama.cpp", Play()).post(FIM, json={**HOLE, "response_format": schema})

    assert error_of(refused)[0] == 400
    assert "does not support schemas: remove it" in error_of(refused)[2]


@pytest.mark.parametrize(
    ("name", "given", "sent"),
    [
        ("llama.cpp", {"temperature": 0.5, "top_p": 0.9, "seed": 3}, {"temperature": 0.5, "top_p": 0.9, "seed": 3}),
        ("mercury", {"presence_penalty": 1.0, "top_p": 0.9, "seed": 3}, {"presence_penalty": 1.0, "top_p": 0.9}),
    ],
)
def test_how_tokens_are_drawn_is_passed_on(
    name: str, given: dict[str, float], sent: dict[str, float], asked: Open
) -> None:
    play = Play()
    asked(name, play).post(FIM, json={**HOLE, **given})

    body = play.last(ROUTES[name])
    assert {each: body[each] for each in (*given, "top_k") if body.get(each) is not None} == sent


def test_the_own_address_is_refused() -> None:
    with pytest.raises(StartError, match="this server's own address"):
        upstream_of(ServeSettings(upstream="http://localhost:8017", no_auth=True))


UPSTREAM = "http://127.0.0.1:8080"
WRONG: dict[str, dict[str, Any]] = {
    "upstream is not an address such as http://127.0.0.1:8080": {"upstream": "localhost:8080"},
    "upstream is not an address": {"upstream": "ftp://127.0.0.1"},
    "unencrypted to another machine: use https, or a tunnel": {"upstream": "http://192.168.1.5:8080"},
    "in upstream_key_file or CALOMEL_UPSTREAM_KEY": {"upstream": "https://me:secret@example.com"},
    "upstream and model are both set": {"upstream": UPSTREAM, "model": Path("m")},
    "offline does not allow an upstream on another machine": {"offline": True, "upstream": "https://example.com"},
    "--upstream-fim: must be one of qwen, starcoder": {"upstream": UPSTREAM, "upstream_fim": "qwem"},
    "upstream_model needs upstream": {"upstream_model": "m"},
}


@pytest.mark.parametrize(("sentence", "given"), WRONG.items(), ids=WRONG)
def test_an_upstream_that_cannot_or_must_not_be_asked_is_refused(sentence: str, given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="upstream") as refused:
        load({"no_auth": True, **given}, use_config=False)

    assert sentence in str(refused.value)


def test_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_UPSTREAM_KEY", "k-1")

    settings = load({"upstream": UPSTREAM, "no_auth": True}, use_config=False).settings

    assert settings.upstream_key == "k-1"
    assert "k-1" not in repr(settings)


def test_a_key_comes_from_a_file_that_nobody_else_can_read(tmp_path: Path, asked: Open) -> None:
    path = tmp_path / "key"
    path.write_text("k-1\n")
    path.chmod(0o644)
    with pytest.raises(StartError, match="key file"):
        asked("vllm", Play(key="k-1"), upstream_key_file=path)
    path.chmod(0o600)
    assert asked("vllm", Play(key="k-1"), upstream_key_file=path).post(FIM, json=HOLE).status_code == 200


def told(settings: dict[str, Any], ports: Sequence[tuple[str, int]] = ()) -> list[tuple[str, str, str]]:
    found = check_upstream(ServeSettings(**{"no_auth": True, **settings}), ports)
    return [(each.level, each.found, each.advice) for each in found]


def test_the_doctor_finds_servers_of_this_machine_and_says_the_line_that_uses_them(stack: ExitStack) -> None:
    many = Play(models=("nomic-embed", "qwen3:8b", "qwen2.5-coder:7b", "llama3.2"))
    apps = {"LM Studio": played.openai(Play()), "Ollama": played.ollama(many), "llama.cpp": played.llama_cpp(Play())}
    option = {"Ollama": " --upstream-model qwen2.5-coder:7b"}
    model = {"Ollama": " qwen2.5-coder:7b"}
    urls = {name: stack.enter_context(served(app)) for name, app in apps.items()}
    other = stack.enter_context(served(Starlette()))
    ports = [(name, int(url.rpartition(":")[2])) for name, url in {**urls, "vLLM": other, "none": "x:1"}.items()]

    assert told({}, ports) == [
        (
            "ok",
            f"{name} runs at {url}",
            (
                f"calomel models use --upstream {url}{model.get(name, '')}, for all editors; "
                f"calomel serve --upstream {url}{option.get(name, '')}, for others"
            ),
        )
        for name, url in urls.items()
    ]


def test_the_doctor_says_that_a_server_still_loads(stack: ExitStack) -> None:
    loading = Play(failing={"/props": (503, {"error": {"code": 503, "message": "Loading model"}})})
    url = stack.enter_context(served(played.llama_cpp(loading)))
    ((level, found, advice),) = told({}, [("llama.cpp", int(url.rpartition(":")[2]))])
    assert (level, found) == ("ok", f"llama.cpp runs at {url} and still loads its model")
    assert advice.startswith(f"calomel models use --upstream {url}, ")


def test_the_doctor_says_what_the_named_server_gives(stack: ExitStack) -> None:
    silent = stack.enter_context(served(played.ollama(Play(log_probs=None))))
    chats = stack.enter_context(served(played.openai(Play(failing={"/v1/completions": (404, {})}))))

    ((level, found, advice),) = told({"upstream": silent})
    assert (level, advice) == ("ok", "")
    assert found.startswith(
        f"ollama at {silent} with qwen2.5-coder:1.5b-base; it gives no log-probabilities, so only filters"
    )
    assert told({"upstream": chats})[0][0] == "fail"
    assert told({"upstream": "http://127.0.0.1:1"})[0][:2] == (
        "warn",
        "no server answers at http://127.0.0.1:1: start it, or correct upstream",
    )


@contextmanager
def saying(head: bytes, body: bytes, status: bytes = b"200 OK") -> Iterator[str]:
    """A server that answers each request with these bytes, as far as anybody reads them."""

    def talk(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            data = b""
            while b"\r\n\r\n" not in data and (part := connection.recv(65_536)):
                data += part
            connection.sendall(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\n" + head + b"\r\n\r\n" + body)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)


OPENAI = {"upstream_format": "openai", "upstream_model": "m", "upstream_fim": "qwen"}


def test_nothing_is_unpacked_that_was_not_asked_for(door: Open, stack: ExitStack) -> None:
    bomb = gzip.compress(gzip.compress(bytes(200_000_000), 1), 9)
    assert len(bomb) < 20_000
    url = stack.enter_context(saying(b"content-encoding: gzip, gzip", bomb))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    answer = door(url, **OPENAI).post(FIM, json=HOLE)

    assert answer.status_code == 503
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


@pytest.mark.parametrize(
    ("said", "head", "body"),
    [
        (b"200 OK", b"transfer-encoding: chunked", b"1\r\nx\r\n" * 400_000 + b"0\r\n\r\n"),
        (b"200 OK", b"content-type: text/event-stream", b"x" * 20_000_000),
        (b"200 OK", b"content-type: text/event-stream", b"data: " + b"[" * 900_000 + b"\n\n"),
        (b"200 OK", b"content-type: application/json", b"[" + b"[]," * 450_000 + b"[]]"),
        (b"400 Bad Request", b"content-type: text/plain", b"exceed_context_size_error" * 40_000),
    ],
    ids=["one byte at a time", "a line without end", "nested", "many values", "words of errors"],
)
def test_whatever_an_upstream_says_others_are_answered_meanwhile(
    said: bytes, head: bytes, body: bytes, door: Open, stack: ExitStack
) -> None:
    """The event loop is watched: no turn may take long."""
    client = door(stack.enter_context(saying(head, body, said)), **OPENAI)
    assert client.post(FIM, json=HOLE).status_code == 503
    assert client.get("/health").status_code == 200

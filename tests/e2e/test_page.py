"""The status page in a real browser, against the real server with the shipped weights.

Needs Chromium and `pip install -e '.[browser]'`; without them the tests are skipped.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.server.program import needs_weights, program

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"

playwright = pytest.importorskip("playwright.sync_api", reason="install the extra `browser`")


pytestmark = [pytest.mark.e2e, needs_weights, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]
TOKEN = "a-token-for-browsers"


@dataclass
class Opened:
    """A page, and what the browser said and asked for while it was open."""

    page: Any
    url: str
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        # Containers have no user namespaces for the sandbox; the page is our own.
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with program(tmp_path_factory.mktemp("plain"), CALOMEL_TOKEN=TOKEN) as (_, client):
        yield str(client.base_url).rstrip("/"), TOKEN


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Opened]]:
    contexts: list[Any] = []

    def open_(server: tuple[str, str], **options: Any) -> Opened:
        url, token = server
        context = browser.new_context(http_credentials={"username": "", "password": token}, **options)
        contexts.append(context)
        opened = Opened(context.new_page(), url)
        opened.page.on("console", lambda message: opened.said.append(message.text))
        opened.page.on("pageerror", lambda error: opened.said.append(str(error)))
        opened.page.on("request", lambda request: opened.asked.append(request.url))
        opened.page.goto(url + "/")
        opened.page.wait_for_selector("#state.ready", timeout=60_000)
        return opened

    yield open_
    for context in contexts:
        context.close()


def filled(opened: Opened, prefix: str, suffix: str = "") -> list[str]:
    """Fill with the keyboard; what the canvas showed, without repetitions."""
    page = opened.page
    page.fill("#prefix", prefix)
    page.fill("#suffix", suffix)
    page.fill("#least", "12")
    page.fill("#length", "12")
    page.focus("#prefix")
    page.keyboard.press("Control+Enter")
    shown = [page.inner_text("#canvas")]
    until = time.monotonic() + 60
    while page.is_disabled("#fill"):
        assert time.monotonic() < until
        text = page.inner_text("#canvas")
        if text != shown[-1]:
            shown.append(text)
        page.wait_for_timeout(20)
    return [*shown, page.inner_text("#canvas")]


def test_the_page_loads_from_its_server_alone_and_nothing_fails(plain: Any, visit: Callable[..., Opened]) -> None:
    opened = visit(plain)
    opened.page.wait_for_selector("#model:not(:empty)")
    filled(opened, "def f(n):\n    ")

    assert opened.said == []
    assert {url.rsplit("/", 1)[0] for url in opened.asked if not url.startswith((opened.url, "data:"))} == set()


def test_the_canvas_resolves_step_by_step_and_the_answer_is_what_the_server_says(
    plain: Any, visit: Callable[..., Opened]
) -> None:
    opened = visit(plain)
    states = filled(opened, "class Point:\n    def __init__(self, x, y):\n        ", "\n")

    assert len(set(states)) > 2
    assert any("\u2591" in state for state in states)
    assert "\u2591" not in states[-1]
    assert states[-1].startswith("class Point:\n    def __init__(self, x, y):\n")
    assert "12 tokens in" in opened.page.inner_text("#message")
    opened.page.wait_for_selector("#recent tr")
    assert opened.page.inner_text("#recent tr:first-child td:nth-child(5)") == "12"


def test_hostile_text_stays_text(plain: Any, visit: Callable[..., Opened]) -> None:
    opened = visit(plain)
    page = opened.page
    states = filled(opened, HOSTILE + "\n", HOSTILE)

    assert HOSTILE in states[-1]
    assert page.title() == "Calomel"
    assert page.query_selector("main script, main img") is None
    assert opened.said == []


def test_a_refusal_is_shown_in_words(plain: Any, visit: Callable[..., Opened]) -> None:
    opened = visit(plain)
    page = opened.page
    error = {"error": {"message": "Too many requests.", "type": "t", "param": None, "code": "c"}}
    page.route("**/fim/completions", lambda route: route.fulfill(status=429, json=error))
    page.click("#fill")
    page.wait_for_selector("#message.wrong")

    assert page.inner_text("#message") == "Too many requests."
    assert page.is_enabled("#fill")

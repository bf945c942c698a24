from __future__ import annotations

import base64
import hashlib
import re

from starlette.testclient import TestClient


def policy(client: TestClient) -> dict[str, str]:
    parts = client.get("/").headers["content-security-policy"].split("; ")
    return {name: value for name, _, value in (part.partition(" ") for part in parts)}


def test_the_page_is_one_file_and_loads_nothing_from_elsewhere(client: TestClient) -> None:
    text = client.get("/").text

    assert text.startswith("<!doctype html>")
    # The name of a drawing's elements is no address that anybody fetches.
    assert re.findall(r"https?://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"\bsrc=|@import|url\(|<link rel=\"stylesheet\"", text)


def test_the_policy_lets_the_pages_own_script_and_style_run_and_nothing_else(client: TestClient) -> None:
    text = client.get("/").text
    (script,), (style,) = (re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("script", "style"))

    def digest(block: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()}'"

    found = policy(client)
    assert found["default-src"] == found["frame-ancestors"] == found["base-uri"] == found["form-action"] == "'none'"
    assert (found["script-src"], found["style-src"]) == (digest(script), digest(style))
    assert found["connect-src"] == "'self'"
    assert "unsafe" not in str(found)
    assert not re.search(r"\son\w+=|\sstyle=|javascript:", text)


def test_a_browser_may_not_guess_types_keep_the_page_or_tell_where_it_was(client: TestClient) -> None:
    headers = client.get("/").headers

    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_the_page_never_makes_markup_of_text(client: TestClient) -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", client.get("/").text
    )


def test_a_browser_asks_its_user_for_the_token(client: TestClient) -> None:
    answer = client.get("/", headers={"authorization": ""})

    assert (answer.status_code, answer.headers["www-authenticate"].split()[0]) == (401, "Basic")
    with_password = {"authorization": "Basic " + base64.b64encode(b"me:test-token-0123456789").decode()}
    assert client.get("/", headers=with_password).status_code == 200

"""The folder that the user named, and what it adds to what clients show of its files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.conftest import Opener

from calomel.prompts.edit_prompt import EditPrompt
from calomel.prompts.parts import Excerpt, Hunk
from calomel.server.errors import StartError
from calomel.server.known_workspace import Around, KnownWorkspace, around
from calomel.server.run import serve
from calomel.server.settings import ServerSettings

SHAPE = (
    "from app.sizes import Size\n\n\n"
    + "".join(f"def helper_{n}(value):\n    return value * {n}\n\n\n" for n in range(30))
    + "def area(size: Size) -> float:\n    return size.width * size.height\n"
)


SIZES = "class Size:\n    def __init__(self, width: float, height: float) -> None:\n        self.width = width\n"


SECRET = "ghp_" + "a1B2" * 9


def lines(first: int, last: int) -> str:
    return "".join(SHAPE.splitlines(keepends=True)[first:last])


def prompt(path: str | None = "app/shape.py", **fields: Any) -> EditPrompt:
    """As an editor shows lines 20 to 50, of which 26 to 44 may be rewritten."""
    region = lines(26, 44).removesuffix("\n")
    return replace(EditPrompt(path, lines(20, 26), region, "\n" + lines(44, 50), 12), **fields)


def made(root: Path) -> Path:
    for name, text in {
        "app/shape.py": SHAPE,
        "app/sizes.py": SIZES,
        "app/secret.py": f"TOKEN = '{SECRET}'\n" + SHAPE,
        "hidden/shape.py": SHAPE,
        ".env": "TOKEN=1\n" + SHAPE,
        ".gitignore": "hidden/\n",
        "twice/one/same.py": SHAPE,
        "twice/two/same.py": SHAPE,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root.parent / "outside.py").write_text(SHAPE)
    (root / "link.py").symlink_to(root.parent / "outside.py")
    return root


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("workspace") / "work")


@pytest.fixture(scope="module")
def known(folder: Path) -> Iterator[KnownWorkspace]:
    with read(folder) as workspace:
        yield workspace


@contextmanager
def read(folder: Path) -> Iterator[KnownWorkspace]:
    workspace = KnownWorkspace(folder)
    workspace.start()
    assert workspace._related.indexer.wait(30)
    yield workspace
    workspace.close()


@pytest.mark.parametrize("region", [lines(26, 44).removesuffix("\n"), "typed just now"])
async def test_an_excerpt_grows_to_its_file_and_keeps_its_own_region(known: KnownWorkspace, region: str) -> None:
    shown = prompt(region=region)
    found = await known.edit(shown)

    assert (found.prefix, found.suffix) == (lines(0, 26), "\n" + lines(44, 999))
    assert (found.region, found.cursor, found.path) == (region, shown.cursor, "app/shape.py")


async def test_a_file_that_was_ignored_since_is_completed_no_more(tmp_path: Path) -> None:
    folder = made(tmp_path / "work")
    with read(folder) as workspace:
        assert await workspace.edit(prompt()) != prompt()
        (folder / ".gitignore").write_text("shape.py\n")
        assert await workspace.edit(prompt()) == prompt()


async def test_names_are_those_within_the_folder(known: KnownWorkspace) -> None:
    for path in ("work/app/shape.py", "other/app/shape.py", "work\\app\\shape.py"):
        edits = (Hunk(path, 3, "a\n", "b\n"), Hunk(path.replace("shape", "x"), 3, "a\n", "b\n"))
        found = await known.edit(prompt(path, edits=edits, related=(Excerpt("work/app/y.py", 0, "y\n"),)))
        assert found.path == "app/shape.py"
        if "\\" not in path:
            assert [edit.path for edit in found.edits] == ["app/shape.py", "app/x.py"]


async def test_related_code_of_other_files_comes_behind_what_the_client_shows(known: KnownWorkspace) -> None:
    text = SHAPE.removesuffix("\n")
    region = text[text.index("def area") :]
    start = text.index("def helper_25")
    given = (Excerpt("app/a.py", 0, "a = 1\n"),)
    found = await known.edit(EditPrompt("app/shape.py", text[start : -len(region)], region, "\n", 20, (), given))

    assert found.prefix + found.region + found.suffix == SHAPE
    assert found.related[0] == given[0]
    assert any("class Size" in each.text for each in found.related[1:])
    assert all(each.path != "app/shape.py" for each in found.related)


@pytest.mark.parametrize(
    "shown",
    [
        prompt(None),
        prompt(""),
        prompt("app/other.py"),
        prompt("shape.txt"),
        prompt(prefix="another prefix, of a file that nobody knows\n"),
        prompt(suffix="\nanother suffix, of a file that nobody knows\n"),
        prompt("twice/same.py"),
        prompt("same.py"),
        # Kept out by the rules, or no file of the folder's.
        prompt("hidden/shape.py"),
        prompt(".env"),
        prompt("link.py"),
        prompt("../outside.py"),
        prompt("app/../app/shape.py"),
        prompt("./app/shape.py"),
        prompt("app//shape.py"),
        prompt("app/shape.py/"),
        prompt("/app/shape.py"),
        prompt("/etc/passwd"),
        prompt("app/" * 2000 + "shape.py"),
        prompt("app/shape.py\0"),
    ],
)
async def test_what_does_not_match_stays_as_it_is(known: KnownWorkspace, shown: EditPrompt) -> None:
    assert await known.edit(shown) is shown


async def test_an_absolute_path_must_be_that_of_an_indexed_file(known: KnownWorkspace, folder: Path) -> None:
    inside, outside = prompt(str(folder / "app/shape.py")), prompt(str(folder.parent / "outside.py"))

    assert (await known.edit(inside)).path == "app/shape.py"
    assert await known.edit(outside) is outside


async def test_no_path_of_a_request_is_ever_opened(
    known: KnownWorkspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    for module, name in ((os, "open"), (os, "stat"), (os, "lstat")):
        real = getattr(module, name)

        def watched(path: Any, *arguments: Any, real: Callable[..., Any] = real, **named: Any) -> Any:
            opened.append(os.fspath(path) if isinstance(path, str | os.PathLike) else "")
            return real(path, *arguments, **named)

        monkeypatch.setattr(module, name, watched)
    for path in ("../outside.py", str(folder.parent / "outside.py"), "link.py", "/etc/passwd", "~/x.py"):
        await known.edit(prompt(path))

    assert not [each for each in opened if "outside" in each or "link" in each or "passwd" in each]


names = st.sampled_from(
    ["..", ".", "", "app", "shape.py", "link.py", "outside.py", "work", "~", "hidden", ".env", "\0", "%2e"]
)


@given(st.lists(names, max_size=7), st.sampled_from(["/", "\\", "//"]))
def test_only_files_of_the_index_are_found_whatever_the_path(
    known: KnownWorkspace, parts: list[str], mark: str
) -> None:
    found = known._namesakes(mark.join(parts))

    assert {place.file.name for place in found} <= {"app/shape.py"}
    assert not found or ".." not in parts


async def test_a_change_on_the_disk_is_seen(tmp_path: Path) -> None:
    folder = made(tmp_path / "work")
    changed = SHAPE.replace("def area", "def surface")
    with read(folder) as known:
        (folder / "app/shape.py").write_text(changed)
        known._related.refresh([folder / "app/shape.py"])
        for _ in range(500):
            found = await known.edit(prompt())
            if "def surface" in found.suffix:
                break
            await asyncio.sleep(0.02)

    assert found.prefix + found.region + found.suffix == changed


async def test_many_files_asked_about_do_not_pile_up(known: KnownWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calomel.server.known_workspace._DOCUMENTS", 1)
    for name in ("app/shape.py", "app/secret.py", "app/shape.py", "twice/one/same.py"):
        await known.edit(prompt(name))

    assert len(known._open) == len(known._related._answers) == 1
    assert len(known._syntax._states) == 0


def test_a_folder_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The log of this process belongs to the tests.
    monkeypatch.setattr("calomel.server.run.log_to", lambda *_: None)
    with pytest.raises(StartError, match="not a folder"):
        serve(ServerSettings(workspace=tmp_path / "nothing", no_auth=True))


def test_the_model_sees_the_whole_file_without_secrets(open_client: Opener, filler: Any, folder: Path) -> None:
    client = open_client(workspace=folder)
    known = client.app.state.door.workspace  # type: ignore[attr-defined]
    assert known._related.indexer.wait(30)
    shown = (
        "<|recently_viewed_code_snippets|>\n\n<|/recently_viewed_code_snippets|>\n\n"
        f"<|current_file_content|>\ncurrent_file_path: app/secret.py\n{lines(20, 26)}"
        f"<|code_to_edit|>\n<|cursor|>{lines(26, 44)}<|/code_to_edit|>\n{lines(44, 50)}<|/current_file_content|>\n\n"
        "<|edit_diff_history|>\n<|/edit_diff_history|>\n"
    )
    asked = {"model": "mercury-edit", "messages": [{"role": "user", "content": shown}]}
    assert client.post("/v1/edit/completions", json=asked).status_code == 200

    seen = repr([*filler.requests, *getattr(filler, "completions", [])])
    assert "*" * len(SECRET) in seen
    assert "def helper_0" in seen
    assert SECRET not in seen
    assert len(known._related.index) == 5


FILE = "".join(f"line number {number} of the file\n" for number in range(40))


LINES = FILE.splitlines(keepends=True)


def cut(first: int, last: int, behind: int) -> tuple[str, str, str]:
    """Three lines before a region, the region, and what is behind it up to a line's end."""
    prefix, region = "".join(LINES[first - 3 : first]), "".join(LINES[first:last]).removesuffix("\n")
    return prefix, region, "\n" + "".join(LINES[last : last + behind])


def test_a_client_may_end_its_excerpt_with_a_line_end_of_its_own() -> None:
    file = FILE.removesuffix("\n")
    prefix, region, suffix = "".join(LINES[30:33]), "".join(LINES[33:36]), "".join(LINES[36:])

    assert around(file, prefix, region, suffix) == Around("".join(LINES[:30]), "")
    assert around(FILE, prefix, region, suffix.removesuffix("\n")) == Around("".join(LINES[:30]), "\n")


@pytest.mark.parametrize(
    ("prefix", "region", "suffix"),
    [
        ("another line before it, of some length\n" * 2, "x", "\n" + LINES[20]),
        (LINES[9], "x", "\nanother line behind it, of some length\n"),
        # The other way round.
        (LINES[20], "x", "\n" + LINES[9]),
        # In the middle of a line.
        (LINES[8][5:] + LINES[9], LINES[10].strip() + "x", "\n" + LINES[11]),
        (LINES[8] + LINES[9], LINES[10].strip() + "x", "\n" + LINES[11][:9]),
        ("", "", ""),
        ("", "x", ""),
        ("line", "x", ""),
    ],
)
def test_what_is_not_there_is_not_found(prefix: str, region: str, suffix: str) -> None:
    assert around(FILE, prefix, region, suffix) is None


def test_a_place_that_is_there_twice_is_none() -> None:
    assert around(FILE + FILE, *cut(10, 20, 3)) is None
    prefix, _, suffix = cut(10, 20, 3)
    assert around(FILE + "".join(LINES[20:23]), prefix, "x", suffix) is None


def test_a_file_of_the_same_line_over_and_over_takes_no_time() -> None:
    assert around("x\n" * 100_000, "x\n" * 50, "y", "\n" + "x\n" * 50) is None


rows = st.lists(st.sampled_from(["a\n", "b\n", "\n", "a b\n", "a" * 50 + "\n"]), max_size=8)


@given(rows, rows, st.text(alphabet="ab\n", max_size=9), rows, st.sampled_from(["", "other\nlines"]))
def test_whatever_is_found_is_the_file_with_another_region(
    before: list[str], prefix: list[str], region: str, suffix: list[str], other: str
) -> None:
    file = "".join([*before, *prefix, other or region, "\n", *suffix])
    tail = "\n" + "".join(suffix[:3])
    found = around(file, "".join(prefix), region, tail)

    if found is not None:
        first = found.before + "".join(prefix)
        assert file.startswith(first)
        # A line end alone may be one that the client's format adds.
        assert file[len(first) :].endswith((tail if suffix else "") + found.behind)


@given(st.integers(3, 20), st.integers(1, 15), st.integers(1, 5), st.text(max_size=30))
def test_every_excerpt_of_whole_lines_is_put_back(first: int, length: int, behind: int, region: str) -> None:
    prefix, _, suffix = cut(first, first + length, behind)
    found = around(FILE, prefix, region, suffix)

    assert found == Around("".join(LINES[: first - 3]), "".join(LINES[first + length + behind :]))

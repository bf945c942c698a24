"""What the documentation says is so: commands, settings, links, tables, places, and the programs' own sentences."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import typer.main
from tests.e2e.first_hour.readme import read
from tests.house.pages import ROOT, anchors, blocks, links, messages, name, pages, places, prose, reading, spans, told

from calomel.bench.figures import Figures
from calomel.cli.app import app
from calomel.cli.config import reference_page
from calomel.cli.models import guide_table, state_table
from calomel.cli.recommend import machines_table
from calomel.families.table import FAMILIES
from calomel.infer import launch
from calomel.lsp import log
from calomel.server import tokens
from calomel.server.settings import NAMES, variable
from calomel.suggest import outcome_log
from calomel.suggest.silence import SilenceReason
from calomel.weights import folders
from calomel.workspace import settings
from calomel.workspace.settings import TABLES
from calomel.workspace.settings_reader import SERVE, types_of


def page(path: str) -> str:
    return (ROOT / "docs" / f"{path}.md").read_text(encoding="utf-8")


_END = re.compile(r"\s(?:\||&&|;|&|>|<|#)(?:\s|$)|\s\|\||\s#")


def command_lines(path: Path) -> Iterator[str]:
    """Of spans and blocks; what stands behind a pipe, or in brackets, is another one."""
    yield from (span for span in spans(path) if re.match(r"(\S*/)?calomel(\s|$)", span))
    for block in blocks(path):
        for line in block.text.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|\|\||;|\||\$\(", line):
                found = re.match(r"\s*(?:\$ )?(?:\w+=\S+ )*((?:\S*/)?calomel(?:\s.*)?)$", part)
                if found is not None and not part.lstrip().startswith("#"):
                    yield found[1]


@cache
def tree() -> Any:
    """The commands and their options."""
    return typer.main.get_command(app)


def problem(line: str) -> str | None:
    """What is wrong with a command line; None when nothing is."""
    line = _END.split(line + " ", maxsplit=1)[0]
    words = shlex.split(line.replace("…", "").replace("'", "").replace("...", ""))[1:]
    command = tree()
    while words and not words[0].startswith("-") and hasattr(command, "commands"):
        word = words.pop(0)
        if word not in command.commands:
            # A title, as in "`calomel COMMAND --help`".
            return None if word.isupper() else f"there is no command {word}"
        command = command.commands[word]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"-h", "--help"}
    wrong = [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]
    return f"{command.name} has no {wrong[0]}" if wrong else None


@pytest.mark.parametrize("path", told(), ids=name)
def test_commands_and_options_are_there(path: Path) -> None:
    found = {line: problem(line) for line in command_lines(path)}
    assert {line: wrong for line, wrong in found.items() if wrong is not None} == {}


def test_every_command_stands_on_the_page_of_the_command_line() -> None:
    assert [word for word in tree().commands if f"calomel {word}" not in page("cli")] == []


@pytest.mark.parametrize(
    ("name", "made"),
    [("machines", machines_table), ("families", lambda: state_table(FAMILIES)), ("guide", guide_table)],
)
def test_the_page_has_the_tables_that_the_program_makes(name: str, made: Callable[[], str]) -> None:
    shown = page("models").partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0]
    assert shown.strip() == made().strip(), "docs/scripts/families writes it"


def test_every_test_that_a_family_is_compared_in_is_there() -> None:
    tests = [ROOT / family.facts.parity for family in FAMILIES if family.facts.parity]
    assert [str(test) for test in tests if not test.is_file()] == []


# As much as a name of the net needs to be one; whether somebody answers there is not asked.
_HOST = re.compile(r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")


@pytest.mark.parametrize("path", pages(), ids=name)
def test_links_lead_to_a_file_and_its_heading_or_outside_by_https(path: Path) -> None:
    lost = []
    for link in links(path):
        parts = urlsplit(link)
        if parts.scheme:
            outside = parts.scheme == "https" and _HOST.fullmatch(parts.hostname or "") and parts.username is None
            assert parts.scheme == "mailto" or outside, link
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        there = target.exists() and target.is_relative_to(ROOT)
        if not there or (parts.fragment and parts.fragment not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_every_page_of_the_documentation_can_be_found_from_its_index() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "docs" / "index.md"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = [(page.parent / urlsplit(link).path).resolve() for link in links(page) if not urlsplit(link).scheme]
        todo += [target for target in targets if target.suffix == ".md" and target.exists()]
        # A link to a folder shows what lies in it.
        todo += [file for target in targets if target.is_dir() for file in target.glob("*.md")]
    wanted = [path for path in pages() if "docs" in path.parts and "decisions" not in path.parts]
    assert [name(path) for path in wanted if path not in seen] == []


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda path: path.name)
def test_pictures_load_nothing_and_suit_light_and_dark(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"' )]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in text
    assert "prefers-color-scheme:dark" in text
    assert "<title>" in text


_SECTIONS = {table: set(types_of(kind)) for table, kind in TABLES.items()}
_NAMED = re.compile(rf"(?<![\w.])({'|'.join(_SECTIONS)})\.([a-z_]+)\b(?![.(/])")
# Variables that are no settings of the server: the file that holds them, and where tests find data and editors.
_OTHER = {"CALOMEL_CONFIG", "CALOMEL_DATA", "CALOMEL_VSCODE", "CALOMEL_CLIENTS", "CALOMEL_NEOVIM"}
# `server.json` and its like are files.
_ENDINGS = {"json", "py", "log", "toml", "md", "lua", "jsonl", "lock"}


def test_page_of_all_settings_is_what_the_settings_say() -> None:
    assert reference_page() == page("reference"), "calomel config reference > docs/reference.md"


@pytest.mark.parametrize("path", told(), ids=name)
def test_settings_that_are_named_are_there(path: Path) -> None:
    wrong = [
        f"{section}.{key}"
        for span in spans(path)
        for section, key in _NAMED.findall(span)
        if key not in _SECTIONS[section] and key not in _ENDINGS
    ]
    assert wrong == []


@pytest.mark.parametrize("path", pages(), ids=name)
def test_variables_that_are_named_are_there(path: Path) -> None:
    known = set(map(variable, NAMES)) | _OTHER
    assert set(re.findall(r"\bCALOMEL_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))) - known == set()


@pytest.mark.parametrize("path", told(), ids=name)
def test_settings_in_examples_are_there(path: Path) -> None:
    for block in blocks(path):
        if block.language == "toml" or re.match(
            r"\[(?:serve|workspace|privacy|suggest|server|log)\]", block.text.lstrip("# ")
        ):
            tables: dict[str, Any] = tomllib.loads(block.text)
            for table, values in tables.items():
                known = set(NAMES) if table == SERVE else _SECTIONS.get(table)
                if known is not None:
                    assert set(values) - known == set()


CHECKS = [ROOT / "server/calomel/cli" / name for name in ("checks.py", "editor_checks.py")]
STARTS = [
    *(ROOT / "server/calomel/server" / name for name in ("cluster.py", "run.py", "tokens.py", "upstream.py")),
    *(ROOT / "lsp/calomel/infer" / name for name in ("launch.py", "remote.py")),
]


@pytest.mark.parametrize("reason", list(SilenceReason))
def test_every_silence_is_explained(reason: SilenceReason) -> None:
    assert f"| `{reason}` | {reason.message} |" in page("lsp")


def calls(path: Path, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


@pytest.mark.parametrize("path", CHECKS, ids=lambda path: path.name)
def test_every_line_of_the_doctor_is_named(path: Path) -> None:
    subjects = {
        call.args[0].value
        for call in calls(path, {"ok", "warn", "fail"})
        if call.args and isinstance(call.args[0], ast.Constant)
    }
    assert [subject for subject in sorted(map(str, subjects)) if subject not in page("troubleshooting")] == []


def fragments(call: ast.Call) -> list[str]:
    """The constant parts of the message, the longest first."""
    message = call.args[-1]
    parts = message.values if isinstance(message, ast.JoinedStr) else [message]
    texts = [str(part.value).strip(" :(),") for part in parts if isinstance(part, ast.Constant)]
    return sorted(texts, key=len, reverse=True)


@pytest.mark.parametrize("path", STARTS, ids=lambda path: path.name)
def test_every_failure_of_a_server_is_explained(path: Path) -> None:
    messages = [fragments(call) for call in calls(path, {"StartError", "CompleterError"})]
    longest = [found[0] for found in messages if found and len(found[0]) > len("cannot be")]
    shown = " ".join(page("troubleshooting").split())
    assert [text for text in longest if not any(text[:length] in shown for length in (len(text), 24))] == []


MB = 1_000_000


@pytest.fixture
def _plain_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without folders elsewhere."""
    monkeypatch.setenv("HOME", "/home/ann")
    for kind in ("STATE", "CONFIG", "DATA", "CACHE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)


def row(path: Path) -> str:
    """The line of the table about a file."""
    start = f"| `~/{path.relative_to('/home/ann').as_posix()}"
    (found,) = (line for line in page("privacy").splitlines() if line.startswith(start))
    return found


@pytest.mark.usefixtures("_plain_home")
def test_logs_are_as_large_as_the_page_says() -> None:
    outcomes = outcome_log.outcome_log_path()
    assert f"{outcome_log.KEPT_FILES} files of {outcome_log.MAX_BYTES // MB} MB" in row(outcomes)
    # Beside the newest, so many older ones.
    assert f"{log.KEPT_FILES + 1} files of {log.MAX_BYTES // MB} MB" in row(log.log_path())
    places = launch.log_path(), tokens.default_path(), settings.user_settings_path(), folders.models_folder()
    assert all(map(row, places))


def found_in_the_browser(site: Path, word: str) -> str:
    """What the search finds on a page that is opened as a file; without a browser, what it would look in."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        return (site / "search" / "search_index.js").read_text(encoding="utf-8")
    page = f"{(site / 'index.html').as_uri()}?q={word}"
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=20000",
        f"--user-data-dir={site}.user",
    ]
    done = subprocess.run([browser, *options, "--dump-dom", page], capture_output=True, text=True, check=False)
    shown = done.stdout.partition('id="mkdocs-search-results"')[2].partition("modal-footer")[0]
    assert "<article>" in shown
    return shown


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="install Calomel's extra docs")
def test_site_builds_without_a_warning_and_needs_nobody(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "vscode" in found_in_the_browser(tmp_path, "snooze")
    built = list(tmp_path.rglob("*.html"))
    assert {"index.html", "privacy.html", "troubleshooting.html"} <= {path.name for path in built}
    loaded = re.compile(
        r"<(?:script|img|iframe|source)[^>]*\ssrc=\"((?:https?:)?//[^\"]+)|<link[^>]*href=\"((?:https?:)?//[^\"]+)"
    )
    assert [found for path in built for found in loaded.findall(path.read_text(encoding="utf-8"))] == []
    styles = [style.read_text(encoding="utf-8", errors="replace") for style in tmp_path.rglob("*.css")]
    assert not [
        style for style in styles if re.search(r"@import\s+(url\()?[\"']?(https?:)?//|url\([\"']?(https?:)?//", style)
    ]


@pytest.mark.parametrize("name", ["llama-server", "xllamacpp", "--threads", "--ctx-size", "Q8_0", "Q4_1"])
def test_who_starts_a_llama_cpp_finds_where_it_comes_from_and_what_makes_it_slow(name: str) -> None:
    assert name in page("upstream")


def test_no_file_is_recommended_that_llama_cpp_reads_slowly() -> None:
    recommending = ("models", "upstream", "own-server", "gpu", "laptop")
    pages = [*map(page, recommending), (ROOT / "README.md").read_text(encoding="utf-8")]
    named = re.findall(r"[\w./-]+:(?:I?Q\d\w*)", "\n".join(pages))
    assert len(named) > 4
    assert [each for each in named if each.endswith("Q4_1")] == []


def test_the_first_hour_names_its_commands_its_editors_and_an_edit() -> None:
    hour = read(ROOT / "README.md")
    assert hour.first[0] == "make try"
    assert set(hour.editors) == {"Neovim", "VS Code"}
    assert {name: len(lines) for name, lines in hour.ways.items()} == {"A GGUF file": 1, "A server that you run": 1}
    assert hour.text.splitlines()[0].count(hour.old) == 1
    # More than one Tab is to be pressed.
    assert hour.done.count(hour.new) > 2
    assert hour.typed not in {hour.text, hour.done}


# Every figure of quality and speed on a page is one that a bench wrote.
RESULTS = ROOT / "docs" / "results"
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{page}.md" for page in ("quality", "comparison", "faq", "models"))]
CARD = ROOT / "model/calomel/weights/nano/MODEL_CARD.md"
_TABLE = re.compile(r"<!-- (\w+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)
_FIGURE = re.compile(r"\d+(?:\.\d+)? (?:%|ms)|(?<![\w.])(?<!\*\* )0\.\d\d+|\b\d+ of \d+\b")


@pytest.mark.parametrize("page", [*PAGES, CARD, ROOT / "docs/developers/benchmarks.md"], ids=name)
def test_the_tables_are_those_of_the_results(page: Path) -> None:
    figures = Figures(RESULTS)
    tables = {title: text for title, text in _TABLE.findall(page.read_text(encoding="utf-8")) if title in figures.names}
    for title, text in tables.items():
        assert text.strip() == figures.table(title, page.parent), f"calomel bench report docs/results {name(page)}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_figures_outside_of_the_tables_are_in_them(page: Path) -> None:
    figures = Figures(RESULTS)
    known = "\n".join(figures.table(title, ROOT) for title in figures.names)
    assert [found for found in _FIGURE.findall(_TABLE.sub("", prose(page))) if found not in known] == []


def test_a_result_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "tables.toml").write_text(
        '[t]\ncolumns = ["q"]\nrows = [{ of = "bench-x", cells = ["{bench-x a .0f}"] }]\n'
    )
    with pytest.raises(ValueError, match=r"bench-x\.json is missing: run its bench"):
        Figures(tmp_path).table("t", tmp_path)
    (tmp_path / "bench-x.json").write_text('{"date": "2026-01-01", "b": 1}')
    with pytest.raises(ValueError, match=r"has no a: run its bench again"):
        Figures(tmp_path).table("t", tmp_path)


# Pages and messages read like a native developer's: phrases of a translation get fewer, never more.
ALLOWED = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("kind", "texts"), [("pages", reading), ("messages", messages)])
def test_phrases_of_a_translation_get_fewer(kind: str, texts: Callable[[], Iterator[tuple[str, str]]]) -> None:
    found = places(texts())
    more = {name: where for name, where in found.items() if len(where) > ALLOWED[kind].get(name, 0)}
    assert more == {}, "say it in ordinary words"
    counts = {name: len(where) for name, where in found.items() if where}
    assert counts == ALLOWED[kind], "fewer than tests/house/words.toml allows: lower its numbers"

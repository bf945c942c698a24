"""Whatever a whole text hides is hidden in each of its parts that leaves, and no answer changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.server._upstreams import Play, llama_cpp, served
from tests.suggest.editor import NOW, Elsewhere, ScriptedModel, editing, region
from tests.suggest.test_stateless import liking, rewritten
from tests.workspace.folder import Folder
from tests.workspace.secret_kinds import below, kinds, mask

from calomel.context.builder import ContextBuilder
from calomel.context.window import EstimateCounter
from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest, Draft, FillRequest
from calomel.infer.door import Door
from calomel.infer.upstream.completer import UpstreamCompleter
from calomel.infer.upstream.exchange import Target
from calomel.prompts.edit_prompt import EditPrompt
from calomel.prompts.parts import EditRegion, Excerpt, FileText, Hunk, PromptParts, text_hunks
from calomel.suggest.silence import Silence
from calomel.suggest.snapshot import Trigger
from calomel.workspace.documents import Document, Position, RangeChange
from calomel.workspace.privacy import Privacy
from calomel.workspace.secrets import spans
from calomel.workspace.settings import PrivacySettings
from calomel.workspace.workspace import Workspace

KINDS = below()
TOP = "".join(f"total_{number} = count(items)\n" for number in range(30))


def hidden(*texts: str) -> set[str]:
    """What masking the texts as a whole hides, in pieces: a part of a secret is a secret."""
    found = {text[start:end] for text in texts for start, end, _ in spans(text) if end - start > 5}
    secrets = {each for each in found if "PRIVATE KEY" not in each}
    return {secret[at : at + 10] for secret in secrets for at in range(max(1, len(secret) - 9))}


def told(shown: str, *texts: str) -> list[str]:
    return sorted(piece for piece in hidden(*texts) if piece in shown)


@st.composite
def changed(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> tuple[str, str]:
    """A text, and the same after an edit of one of its lines: typed, changed, cut or pasted twice."""
    text = draw(texts)
    lines = text.splitlines(keepends=True)
    at = draw(st.integers(0, len(lines) - 1))
    column = draw(st.integers(0, len(lines[at]) - 1))
    how = draw(st.sampled_from(["line", "rest", "letter", "two"]))
    before = list(lines)
    if how == "line":
        del before[at]
    elif how == "two":
        del before[at : at + 2]
    elif how == "rest":
        before[at] = lines[at][:column] + "\n"
    else:
        before[at] = lines[at][:column] + "q7" + lines[at][column:]
    return "".join(before), text


TEXTS = st.sampled_from([f"{TOP}{kind.text}{TOP}" for kind in KINDS])


KEYS = f'{TOP}"api_keys": [\n  "w2s4KKY0E2G6yG0v9mr39506z7qBRXIW",\n  "j4LTcHckTep08qdRXtG3kRCkUepKztxS"\n]\n{TOP}'
# Half of a key, which looks like none.
HALF_TYPED = KEYS.replace('G6yG0v9mr39506z7qBRXIW",', ""), KEYS


def place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset), offset - text.rfind("\n", 0, offset) - 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(edit=changed(TEXTS), closes=st.booleans())
@example(edit=HALF_TYPED, closes=True)
def test_an_edit_in_a_secret_is_hidden_from_a_question_in_another_file(
    tmp_path: Path,
    edit: tuple[str, str],
    closes: bool,  # noqa: FBT001
) -> None:
    old, new = edit
    folder = Folder(tmp_path, {"keys.py": old, "main.py": "total = count(items)\n\n"})
    keys, main = folder.open("keys.py"), folder.open("main.py")
    workspace = folder.workspace
    door = Door(workspace)
    workspace.change(keys, 2, [next(iter(_changes(old, new)))])
    assert workspace.documents[keys].text == new
    shown = [] if closes else [sent(door, workspace, keys, len(TOP))]
    workspace.focus(main)
    if closes:
        workspace.close(keys)
    shown += [sent(door, workspace, main, 0)]
    assert told("\n".join(shown), old, new) == []


def sent(door: Door, workspace: Workspace, uri: str, offset: int) -> str:
    """A request at a place as it leaves, with every edit."""
    situation = workspace.situation(uri, offset)
    assert situation is not None
    parts = ContextBuilder(EstimateCounter()).build(situation, 4096).parts
    parts = replace(parts, edits=(*parts.edits, *workspace.history.open_edit()))
    file = FileText(situation.text, offset - len(parts.prefix))
    return repr(replace(door.sent(CompleteRequest("fill", parts, file=file)).request, file=None))


def _changes(old: str, new: str) -> Iterator[RangeChange]:
    start = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    (first, head), (last, tail) = place(old, start), place(old, len(old) - end)
    yield RangeChange(Position(first, head), Position(last, tail), new[start : len(new) - end])


@pytest.mark.parametrize("opens", [True, False], ids=["open", "on disk"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_excerpt_that_begins_below_the_line_that_announces_a_secret_hides_it(
    tmp_path: Path,
    kind: Any,
    opens: bool,  # noqa: FBT001
) -> None:
    text = f"{TOP}{kind.text}def charge_customer(items):\n    return count(items)\n"
    asked = "from keys import charge_customer\n\n\ncharge_customer(items)\n"
    with Folder(tmp_path, {"keys.py": text, "main.py": asked}) as folder:
        if opens:
            folder.open("keys.py")
            for row in range(28, text.count("\n"), 5):
                folder.type("keys.py", row, 0, "")
        folder.open("main.py")
        found = folder.ask("main.py", "charge_customer(")
        lines = text.splitlines(keepends=True)
        pieces = (Excerpt("keys.py", row, "".join(lines[row : row + 6])) for row in range(len(lines)))
        door, parts = Door(folder.workspace), PromptParts(path="main.py", prefix="x = ")
        requests = (CompleteRequest("fill", replace(parts, related=(each,))) for each in (*found, *pieces))
        shown = [repr(door.sent(each).request) for each in requests]
        assert any("charge_customer" in each for each in shown)
        assert told("\n\n".join(shown), text) == []


@settings(deadline=None, max_examples=150)
@given(edit=changed(TEXTS))
@example(edit=HALF_TYPED)
async def test_a_diff_that_a_client_sends_is_cut_from_masked_text(edit: tuple[str, str]) -> None:
    old, new = edit
    region = "total_0 = count(items)\n"
    model = liking()
    asked = EditPrompt("keys.py", "", region, new.removeprefix(region), None, text_hunks("keys.py", old, new))

    await rewritten(Elsewhere(model, Door()), asked)

    assert told(repr([replace(each, file=None) for each in model.requests]), old, new) == []


@pytest.mark.parametrize("kind", [each for each in KINDS if "\n" not in each.parts[0]], ids=lambda kind: kind.name)
def test_the_first_lines_of_what_a_client_sends_may_go_on_with_a_secret(kind: Any) -> None:
    at = kind.text.rindex("\n", 0, kind.text.index(kind.parts[-1])) + 1
    cut = kind.text[at:] + TOP
    if mask(kind.text) == kind.text or len(kind.parts[-1]) < 20:
        pytest.skip("no generated value")
    beside = PromptParts(prefix="x = ", suffix="\n", related=(Excerpt("keys.py", 0, cut),))
    for parts in (beside, PromptParts(prefix=cut, suffix="\n")):
        shown = Door().sent(FillRequest("fill", parts)).request
        assert told(repr(shown), kind.text) == []


async def test_an_edit_of_a_file_of_secrets_that_a_client_sends_is_left_out() -> None:
    model = liking()
    edits = text_hunks(".env", "COLOUR=red\n", "COLOUR=abracadabra\n") + text_hunks("b.py", "x = 1\n", "y = 1\n")

    await rewritten(model, EditPrompt("a.py", "", "z = x\n", "", 4, edits))

    assert model.requests
    assert "abracadabra" not in repr(model.requests)


VALUE = "hunter2" + "Q7zP1mX9kL2v"
LINES = f'name = "one"\npassword = "{VALUE}"\nport = 80\n'
MASKED = mask(LINES).splitlines(keepends=True)
# What a model elsewhere makes of the region: of its lines, the second of which it saw masked.
HOSTILE: dict[str, Callable[[list[str]], list[str]]] = {
    "echoes it": lambda lines: lines,
    "shifts it down": lambda lines: [lines[0], lines[2], lines[1]],
    "shifts it up": lambda lines: [lines[1], lines[0], *lines[2:]],
    "doubles it": lambda lines: [lines[0], lines[1], lines[1], *lines[2:]],
    "indents it": lambda lines: [lines[0], "    " + lines[1], *lines[2:]],
    "deletes it": lambda lines: [lines[0], *lines[2:]],
    "renames it": lambda lines: [lines[0], lines[1].replace("password", "secret"), *lines[2:]],
    "unmasks it": lambda lines: [lines[0], lines[1].replace("*", "x"), *lines[2:]],
    "shortens it": lambda lines: [lines[0], lines[1].replace("****", ""), *lines[2:]],
    "quotes it elsewhere": lambda lines: [*lines, lines[1].replace("password", "again")],
    "joins it": lambda lines: [lines[0].rstrip("\n") + "; " + lines[1], *lines[2:]],
}


@pytest.mark.parametrize("does", HOSTILE)
async def test_what_a_model_elsewhere_does_to_a_masked_line_leaves_the_secret_as_it_is(does: str) -> None:
    def reply(request: CompleteRequest) -> str:
        if request.parts.region is None:
            return ""
        text = region(request)
        assert VALUE not in text
        front, seen, rest = text.partition("".join(MASKED))
        assert seen
        lines = HOSTILE[does](seen.splitlines(keepends=True))
        return front + "".join(lines).replace("port = 80", "port = 81") + rest

    answer = await rewritten(Elsewhere(ScriptedModel(reply, log_prob=-0.01), Door()), of_client(LINES))

    assert answer.text.count(f'"{VALUE}"\n') == 1
    assert "*" not in answer.text
    async with editing(f"|{LINES}", reply, settings=NOW, privacy=Privacy()) as editor:
        editor.type("# a\n")
        after = editor.after(await editor.next_edit(Trigger.EXPLICIT)) or editor.document.text
    assert after.count(f'"{VALUE}"\n') == 1
    assert "*" not in after


def of_client(text: str) -> EditPrompt:
    return EditPrompt("a.py", "", text, "", 0, (Hunk("a.py", 2, "port = 70\n", "port = 80\n"),))


async def test_an_edit_beside_a_masked_line_is_offered() -> None:
    def reply(request: CompleteRequest) -> str:
        return region(request).replace("port = 80", "port = 81")

    answer = await rewritten(Elsewhere(ScriptedModel(reply, log_prob=-0.01), Door()), of_client(LINES))

    assert answer.text == LINES.replace("port = 80", "port = 81")


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (f'password = "{VALUE}', '"\n', "x"),  # beside it
        (f'password = "{VALUE[:9]}', f'{VALUE[9:]}"\n', "x"),  # within
        (f'password = "{VALUE}"\n', "\n", f'again = "{"*" * len(VALUE)}"'),  # its mask
        (f'password = "{VALUE}"\n', "\n", 'again = "********"'),
        (f'password = "{VALUE}"\n', "\n", f'again = "{VALUE}"'),  # the value, guessed
        ("aws = ", "\n", '"AKIA' + 'IOSFODNN7REALKEY"'),  # one that its shape gives away
        ("password = ", "\n", "'tr0ub4dor&3xyz'"),  # one that its line gives away
    ],
)
async def test_a_text_that_writes_a_secret_or_its_mask_is_not_offered(before: str, after: str, text: str) -> None:
    async with editing(f"{before}|{after}", text, settings=NOW, privacy=Privacy()) as editor:
        answer = await editor.inline(Trigger.EXPLICIT)
        assert isinstance(answer, Silence)
        assert VALUE not in repr([replace(each, file=None) for each in editor.model.requests])


async def test_a_model_of_our_own_sees_the_text_and_writes_its_secrets_nowhere_else() -> None:
    text, again = f'password = "{VALUE}"\n|\n', f'again = "{VALUE}"'
    async with editing(text, again, settings=NOW, privacy=Privacy(), own=True) as editor:
        assert isinstance(await editor.inline(Trigger.EXPLICIT), Silence)
        assert VALUE in repr([each.parts for each in editor.model.requests])


def test_a_secret_in_the_name_of_a_file_is_hidden() -> None:
    name = f"of-{'gh' + 'p_' + 'x1Y2' * 9}.py"
    edit, excerpt = Hunk(name, 0, "x\n", "y\n"), Excerpt(name, 0, "y\n")
    shown = Door().sent(CompleteRequest("fill", PromptParts(path=name, related=(excerpt,), edits=(edit,)))).request
    assert "x1Y2" not in repr(shown)
    assert len(shown.parts.related) == len(shown.parts.edits) == 1


def test_masking_can_be_turned_off_by_the_user_alone(tmp_path: Path) -> None:
    for wanted in (True, False):
        workspace = Workspace([], lambda: 0.0, privacy=Privacy([], PrivacySettings(mask_secrets=wanted)))
        workspace.open("file:///a.py", "python", 1, LINES)
        request = CompleteRequest("fill", PromptParts(path="a.py", prefix=LINES), file=FileText(LINES, 0))
        assert (VALUE in repr(replace(Door(workspace).sent(request).request, file=None))) is not wanted


@pytest.mark.parametrize("stream", [False, True])
async def test_an_upstream_of_http_clients_sees_no_secret_and_changes_none(*, stream: bool) -> None:
    play = Play(tokens=("again = ", '"', "*" * len(VALUE), '"'), log_probs=None)
    with served(llama_cpp(play)) as url:
        completer = UpstreamCompleter(Target(url))
        request = FillRequest("fill", PromptParts(path="a.py", prefix=LINES, suffix="\n"), max_tokens=32)
        items = [each async for each in completer.stream(request)] if stream else [await completer.afill(request)]
        drafts = CompleteRequest("edit", region_of(LINES), drafts=(Draft(LINES.replace("80", "81"), "rename"),))
        answer = await completer.complete(drafts)
        await completer.aclose()
    assert "*" not in "".join(each if isinstance(each, str) else each.text for each in items)
    assert VALUE not in repr(play.asked)
    assert answer.candidates[-1].text == LINES.replace("80", "81")


def region_of(text: str) -> PromptParts:
    return PromptParts(path="a.py", region=EditRegion(text, 0))


HALVES = [kind for kind in kinds() if "\n" not in kind.text.rstrip("\n") and len(kind.parts) == 1]


@pytest.mark.parametrize("kind", HALVES, ids=lambda kind: kind.name)
def test_what_is_typed_before_and_behind_a_pause_is_hidden_once_the_whole_is(tmp_path: Path, kind: Any) -> None:
    value = kind.parts[0]
    head, _, tail = kind.text.partition(value)
    if value[2:8] in mask(kind.text):
        pytest.skip("it is not found as a whole")
    for half in (min(8, len(value) - 1), len(value) // 2, len(value) - 2):
        desk = Desk(tmp_path)
        desk.type(head)
        desk.type(value[:half], pause=2.0)
        desk.type(value[half:], pause=2.0)
        desk.type(tail)
        shown = desk.shown()
        desk.elsewhere()
        shown += desk.shown()
        assert not [at for at in range(max(1, half - 5)) if value[at : at + min(6, half)] in shown]


@pytest.mark.parametrize("now", ["", "# said before\n"])
def test_a_value_whose_name_comes_later_is_hidden_in_the_edits_before(tmp_path: Path, now: str) -> None:
    desk = Desk(tmp_path)
    desk.type(f'thing = "{VALUE[:8]}"\n')
    desk.type("count = 1\n", pause=2.0)
    at = desk.document.text.index("thing")
    desk.change(at, at + len("thing"), "password", pause=2.0)
    assert mask(desk.document.text) != desk.document.text
    desk.change(0, 0, now, pause=2.0)
    assert VALUE[:8] not in desk.shown()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
@given(st.randoms(use_true_random=False), st.integers(3, 10))
def test_nothing_hidden_leaves_in_any_order_of_edits(tmp_path: Path, random: Random, steps: int) -> None:
    """Secrets typed with pauses, lines moved, doubled, indented and typed again, in two files."""
    desk, values = Desk(tmp_path), list[str]()
    for step in range(steps):
        desk.uri = random.choice(desk.uris)
        start, end = desk.line(random.randrange(desk.document.line_count - 1))
        line, pause = desk.document.text[start:end], random.choice([0.1, 1.5])
        deed = random.choice(["secret", "name later", "move", "double", "indent", "again"])
        if deed in {"secret", "name later"}:
            values.append("Zp9" + sha256(b"%d %d" % (step, random.getrandbits(16))).hexdigest()[:24])
            half = random.randrange(1, len(values[-1]))
            desk.at = start
            desk.type("password = '" if deed == "secret" else "thing = '")
            for piece in (values[-1][:half], values[-1][half:], "'\n"):
                desk.type(piece, pause=random.choice([0.1, 2.0]))
            if deed == "name later":
                desk.change(start, start + len("thing"), "password", pause)
        elif deed in {"move", "double"}:
            desk.change(start, end if deed == "move" else start, "", pause)
            desk.change(0, 0, line, pause)
        elif deed == "indent":
            desk.change(start, start, "    ", pause)
        elif values and (at := desk.document.text.find(values[-1])) >= 0:
            desk.change(at + 5, at + len(values[-1]), "", pause)
            desk.change(at + 5, at + 5, values[-1][5:], pause)
        known = set(desk.workspace.values())
        for uri in desk.uris:
            shown = sent(desk.door, desk.workspace, uri, 5)
            for value in known.intersection(values):
                assert not [at for at in range(len(value) - 7) if value[at : at + 8] in shown]


@pytest.mark.parametrize("path", ["a.py", "b.py"])
def test_an_excerpt_of_an_earlier_version_hides_what_the_newest_does(tmp_path: Path, path: str) -> None:
    lines = [f"total_{number} = count(items)\n" for number in range(40)]
    old, new = f'    thing = "{VALUE[:9]}"\n', f'    password = "{VALUE}"  # of the shop\n'
    workspace = Workspace([tmp_path], lambda: 0.0, privacy=Privacy([tmp_path]))
    for name in ("a.py", "b.py"):
        workspace.open((tmp_path / name).as_uri(), "python", 1, "".join([*lines[:20], new, *lines[20:]]))
    text = workspace.documents[(tmp_path / "a.py").as_uri()].text
    excerpt = Excerpt(path, 10, "".join([*lines[10:20], old, *lines[22:30]]))
    far, related = ((excerpt,), ()) if path == "a.py" else ((), (excerpt,))
    parts = PromptParts(related=related, far=far, path="a.py", prefix=text)
    request = CompleteRequest("fill", parts, file=FileText(text, 0))
    shown = Door(workspace).sent(request).request
    assert "total_15" in repr((shown.parts.far, shown.parts.related))
    assert VALUE[:9] not in repr(shown.parts)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (f"x = {VALUE}\n", True),
        (f"x = '{VALUE}', 1\n", True),
        (f"x = {VALUE[:10]}\n", True),  # half of it, at the end of a token
        (f"x = {VALUE[:10]}more\n", False),
        (f"x = {VALUE[:7]}\n", False),
        (f"x = {VALUE[:10]}\ny = {VALUE[:10]}\n", False),  # a word of the project
    ],
)
def test_a_known_secret_is_hidden_elsewhere_and_so_is_its_beginning(tmp_path: Path, text: str, *, hidden: bool) -> None:
    workspace = Workspace([tmp_path], lambda: 0.0, privacy=Privacy([tmp_path]))
    for name, content in (("a.py", text), ("b.py", LINES)):
        workspace.open((tmp_path / name).as_uri(), "python", 1, content)
    request = CompleteRequest("fill", PromptParts(path="a.py", prefix=text), file=FileText(text, 0))
    assert (Door(workspace).sent(request).request.parts.prefix != text) is hidden


async def test_the_mask_of_another_file_is_not_offered() -> None:
    beside = PromptParts(path="a.py", prefix="x = ", related=(Excerpt("b.py", 0, LINES),))
    sent = Door().sent(CompleteRequest("fill", beside))
    texts = (f'"{"*" * len(VALUE)}"', '"fine"')
    answer = sent.read(CompleteAnswer(tuple(map(Candidate, texts))))
    assert [each.text for each in answer.candidates] == ['"fine"']


class Desk:
    """One document that somebody types into, another one, and a door."""

    def __init__(self, root: Path) -> None:
        self.now, self.version = 0.0, 1
        privacy = Privacy([root])
        self.workspace = Workspace([root], lambda: self.now, privacy=privacy)
        self.uris = [(root / name).as_uri() for name in ("a.py", "b.py")]
        for uri in self.uris:
            self.workspace.open(uri, "python", 1, TOP)
        self.at, self.uri = len(TOP) // 2, self.uris[0]
        self.at = TOP.index("\n", self.at) + 1
        self.door = Door(self.workspace)

    @property
    def document(self) -> Document:
        return self.workspace.documents[self.uri]

    def line(self, row: int) -> tuple[int, int]:
        return self.document.line_start(row), self.document.line_start(row + 1)

    def type(self, text: str, pause: float = 0.1) -> None:
        self.now += pause
        for letter in text:
            self.change(self.at, self.at, letter, pause=0.1)
            self.at += 1

    def change(self, start: int, end: int, text: str, pause: float) -> None:
        self.now += pause
        self.version += 1
        first, last = (self.document.position_at(each) for each in (start, end))
        self.workspace.change(self.uri, self.version, [RangeChange(first, last, text)])

    def elsewhere(self) -> None:
        self.workspace.focus(self.uris[1])
        self.uri = self.uris[1]

    def shown(self) -> str:
        return sent(self.door, self.workspace, self.uri, 5)

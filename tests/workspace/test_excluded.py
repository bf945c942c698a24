"""What is kept from models stays so, whatever happens in which order."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from calomel.context.builder import ContextBuilder
from calomel.context.counter import EstimateCounter
from calomel.workspace.documents import RangeChange
from calomel.workspace.longest_match import LongestMatch
from calomel.workspace.privacy import Privacy
from calomel.workspace.related import Related
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.workspace import Workspace

ASKED = "a.py"
SECRET = ".env"
NAMES = ("b.py", "c.py", SECRET)
NAME = st.sampled_from(NAMES)


class Desk(RuleBasedStateMachine):
    """One person, the tools that run beside, and rules that change; each line that is typed has a word of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        # The temporary folder may be reached over a link.
        self.root = Path(os.path.realpath(self._folder.name))
        self.now = 0.0
        self.ignored: set[str] = set()
        self.lines: dict[str, list[str]] = {name: [] for name in (ASKED, *NAMES)}
        self.removed: dict[str, list[str]] = {name: [] for name in self.lines}
        self.never: set[str] = set()
        self.words = 0
        privacy, syntax = Privacy([self.root]), SyntaxTrees()
        related = Related(syntax, privacy, clock=lambda: self.now, watch=False)
        self.workspace = Workspace([self.root], lambda: self.now, privacy=privacy, syntax=syntax, related=related)
        self.matches = LongestMatch()
        self.workspace.listeners += [syntax, related, self.matches]
        self.builder = ContextBuilder(EstimateCounter())
        self.versions = 0
        for name in self.lines:
            (self.root / name).touch()
        self.open(ASKED)
        self.edit(ASKED)

    def teardown(self) -> None:
        self._folder.cleanup()

    def excluded(self, name: str) -> bool:
        path = self.root / name
        names = {name, Path(os.path.realpath(path)).name}
        return SECRET in names or bool(names & self.ignored)

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def open(self, name: str) -> None:
        if self.workspace.documents.get(self.uri(name)) is None:
            self.versions += 1
            self.workspace.open(self.uri(name), "python", self.versions, "".join(self.lines[name]))

    @rule(name=NAME)
    def open_one(self, name: str) -> None:
        self.open(name)

    @rule(name=NAME)
    def close(self, name: str) -> None:
        self.workspace.close(self.uri(name))

    @rule(name=st.sampled_from((ASKED, *NAMES)))
    def edit(self, name: str) -> None:
        self.open(name)
        self.words += 1
        line = f"amount = charge(customer, word{self.words}end)\n"
        self.replace(name, len(self.lines[name]), len(self.lines[name]), line)
        self.lines[name].append(line)

    @rule(name=NAME)
    def delete(self, name: str) -> None:
        self.open(name)
        if self.lines[name]:
            line = self.lines[name].pop(0)
            self.replace(name, 0, 1, "")
            self.removed[name].append(line)
            if self.excluded(name):
                self.never.add(line)

    def replace(self, name: str, first: int, end: int, text: str) -> None:
        document = self.workspace.documents.get(self.uri(name))
        assert document is not None
        self.versions += 1
        self.now += 2.0
        start, stop = (document.position_at(document.line_start(line)) for line in (first, end))
        self.workspace.change(self.uri(name), self.versions, [RangeChange(start, stop, text)])

    @rule(name=st.sampled_from(("b.py", "c.py")))
    def ignore_or_not(self, name: str) -> None:
        self.ignored ^= {name}
        (self.root / ".gitignore").write_text("".join(f"/{each}\n" for each in sorted(self.ignored)))

    @rule(name=st.sampled_from(("b.py", "c.py")), to=st.sampled_from(("", "b.py", SECRET)))
    def link_or_not(self, name: str, to: str) -> None:
        path = self.root / name
        if to != name:
            path.unlink()
            if to:
                path.symlink_to(to)
            else:
                path.touch()

    @rule(name=NAME, new=NAME)
    def rename(self, name: str, new: str) -> None:
        if name != new:
            self.workspace.close(self.uri(name))
            self.workspace.close(self.uri(new))
            (self.root / name).replace(self.root / new)
            for kept in (self.lines, self.removed):
                kept[new], kept[name] = kept[name], []
            self.open(new)
            (self.root / name).touch()

    @rule()
    def look_elsewhere(self) -> None:
        self.workspace.focus(self.uri("b.py"))
        self.workspace.focus(self.uri(ASKED))

    @invariant()
    def nothing_of_an_excluded_file_is_shown(self) -> None:
        document = self.workspace.documents.get(self.uri(ASKED))
        assert document is not None
        situation = self.workspace.situation(self.uri(ASKED), len(document))
        assert situation is not None
        history = self.workspace.history
        shown = repr(
            (situation, self.builder.build(situation, 4096), history.settled(), history.open_edit(), self.foretold())
        )
        secret = set(self.never)
        for name in NAMES:
            if self.excluded(name):
                secret.update(self.lines[name], self.removed[name])
        assert not [line for line in secret if line.split()[-1].rstrip(")") in shown]

    def foretold(self) -> str:
        """What goes on behind the same words in another document."""
        document = self.workspace.documents.get(self.uri(ASKED))
        assert document is not None
        found = self.matches.find(document, document.text.rindex("word"))
        return "" if found is None else found.text


def test_nothing_of_an_excluded_file_reaches_a_prompt_in_any_order_of_events() -> None:
    run_state_machine_as_test(Desk, settings=settings(max_examples=40, stateful_step_count=20, deadline=None))

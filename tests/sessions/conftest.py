"""Counts what was offered over all scenarios, and says it at the end of a run."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest
from tests.sessions.scenario import Verdict

_TALLY: Final = pytest.StashKey[dict[str, Counter[str]]]()


def count(config: pytest.Config, editor: str, verdict: Verdict) -> None:
    """One scenario was played in an editor."""
    tally = config.stash.setdefault(_TALLY, {}).setdefault(editor, Counter())
    tally += Counter(scenarios=1, right=not verdict.wrong, offers=verdict.offers)
    tally += Counter(must=len(verdict.must), may=len(verdict.may), must_not=len(verdict.must_not))
    tally += Counter(unlisted=len(verdict.unlisted))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for editor, tally in config.stash.get(_TALLY, {}).items():
        terminalreporter.write_line(
            f"{editor}: {tally['right']} of {tally['scenarios']} scenarios as they should be; {tally['offers']} offers;"
            f" lines that must be offered {tally['must']}, may {tally['may']}, must not {tally['must_not']},"
            f" listed nowhere {tally['unlisted']}"
        )

from __future__ import annotations

import pytest

from calomel.suggest.apply.snippet import is_bare, is_marker


@pytest.mark.parametrize(
    "line",
    [
        "# ... existing code ...",
        "    // ... existing code ...",
        "/* ... existing code ... */",
        "<!-- ... existing code ... -->",
        "{/* ... existing code ... */}",
        "-- ... existing code ...",
        "// ... rest of the function",
        "// ... rest of the function ...",
        "# ... (rest of the code remains unchanged)",
        "// … existing imports …",
        "# rest of the code remains the same",
        "// existing code",
        "// ... other methods ...",
        "; ... existing code ...",
        "% ... existing code ...",
        "// ...",
        "# …",
        "{# ... existing code ... #}",
        "// ... keep everything else the same ...",
        "# [... existing code ...]",
        "// Existing code...",
        "# ... previous code ...",
        "// (unchanged)...",
        "// snip ...",
    ],
)
def test_a_comment_for_what_stays_is_a_marker(line: str) -> None:
    assert is_marker(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x = [...]",
        "...",
        "foo(...args)",
        "# wait for it...",
        "// TODO: handle the other cases",
        "# keep the connection open",
        "# the rest of the arguments are passed on to the parent",
        "# existing users are migrated first",
        "return  # ... existing code ...",
        "# ... and then some",
        "#include <stdio.h>",
        "print('... existing code ...')",
    ],
)
def test_other_lines_are_none(line: str) -> None:
    assert not is_marker(line)


def test_an_ellipsis_without_a_comment_is_bare() -> None:
    assert all(map(is_bare, ["...", "    …", "......"]))
    assert not any(map(is_bare, ["x", "...args", "f(...)", ""]))

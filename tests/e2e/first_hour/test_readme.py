from __future__ import annotations

from pathlib import Path

from tests.e2e.first_hour.readme import read

README = Path(__file__).parents[3] / "README.md"


def test_the_first_hour_names_its_commands_its_editors_and_an_edit() -> None:
    hour = read(README)
    assert hour.first[0] == "make try"
    assert set(hour.editors) == {"Neovim", "VS Code"}
    assert all(any("calomel editor setup" in line for line in lines) for lines in hour.editors.values())
    assert hour.text.splitlines()[0].count(hour.old) == 1
    # More than one Tab is to be pressed.
    assert hour.done.count(hour.new) > 2
    assert hour.typed not in {hour.text, hour.done}

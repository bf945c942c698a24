from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.first_hour.readme import read
from tests.e2e.first_hour.shell import CommandFailedError, Shell

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


def test_a_readme_without_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# A\n\n## The first hour\n\nNothing.\n")
    with pytest.raises(ValueError, match="lacks its commands"):
        read(path)


def test_what_a_command_exports_stays_and_questions_are_answered(tmp_path: Path) -> None:
    with Shell(tmp_path, {"PATH": "/usr/bin:/bin"}) as shell:
        shell.run("export A=found", 20)
        shell.run('test "$A" = found && [ -t 0 ] && [ -t 1 ]', 20)
        shell.run("read -p 'Write this? [y/N]: ' answer && test \"$answer\" = y", 20)
        with pytest.raises(CommandFailedError, match=r"false: exit status 1"):
            shell.run("false", 20)
        with pytest.raises(CommandFailedError, match=r"not done after 0 seconds"):
            shell.run("sleep 30", 0.05)

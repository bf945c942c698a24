"""The next steps on this machine, each with its command."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from calomel.cli.output import say

if TYPE_CHECKING:
    from calomel.cli.checks import Finding
    from calomel.server.settings import ServeSettings
    from calomel.workspace.settings import BackendSettings


class Step(NamedTuple):
    """What was found, and the command that comes next."""

    found: str
    command: str


# The editors' programs, and their names in `calomel editor setup`.
_PROGRAMS: Final = {
    "code": "vscode", "codium": "vscode", "cursor": "vscode", "nvim": "neovim", "zed": "zed", "zeditor": "zed",
    "hx": "helix", "emacs": "emacs", "subl": "sublime",
}  # fmt: skip
_NAMES: Final = {
    "vscode": "VS Code", "neovim": "Neovim", "zed": "Zed", "helix": "Helix", "emacs": "Emacs",
    "sublime": "Sublime Text",
}  # fmt: skip


def show_steps() -> None:
    """Print the steps. Raises SettingsError for settings that cannot be read."""
    from calomel.server.settings import load

    settings = load({}, None).settings
    say("Calomel suggests what to type or change next, with a model on this machine.\n")
    for number, step in enumerate(steps(settings), 1):
        say(f"{number}. {step.found}\n   {step.command}")
    say("\ncalomel --help lists every command.")


def steps(settings: ServeSettings) -> Iterator[Step]:
    """Steps for the editor, for the model, and to look at the result."""
    from calomel.cli import choice
    from calomel.cli.checks import check_upstream
    from calomel.cli.editor import here
    from calomel.cli.editor_checks import check_editors
    from calomel.infer.extras import has_engine

    editors = [each for each in check_editors(here(settings)) if each.subject in _NAMES.values()]
    ready = [each for each in editors if each.level == "ok"]
    if not ready and (has_engine() or not _is_usual(choice.choice())):
        yield Step("Try it on sample files:", "calomel try")
    yield _editor(editors, ready)
    yield _model(next(check_upstream(settings), None))
    if ready:
        yield Step("If no suggestion appears, find out why:", "calomel doctor")


def _editor(editors: list[Finding], ready: list[Finding]) -> Step:
    if ready:
        return Step(f"{ready[0].subject} is {ready[0].found}.", "Open a source file and type.")
    installed = [name for program, name in _PROGRAMS.items() if shutil.which(program)]
    configured = [name for name, title in _NAMES.items() for each in editors if each.subject == title]
    names = list(dict.fromkeys((*configured, *installed)))
    if names:
        there = " and ".join(filter(None, (", ".join(_NAMES[name] for name in names[:-1]), _NAMES[names[-1]])))
        verb, which = ("is", "it") if len(names) == 1 else ("are", "the ones you use")
        commands = "\n   ".join(f"calomel editor setup {name}" for name in names)
        return Step(f"{there} {verb} on this machine. Connect {which} to Calomel:", commands)
    return Step("Calomel found no editor. See which ones it can set up:", "calomel editor setup --help")


def _model(served: Finding | None) -> Step:
    from calomel.cli import choice
    from calomel.infer.extras import has_engine, installing_engine
    from calomel.storage.machine import gpu

    chosen = choice.choice()
    if not _is_usual(chosen):
        return Step(f"Your editors ask {choice.described(chosen)}. See what else fits this machine:", _RECOMMEND)
    if served is not None and served.level == "ok":
        # The finding's advice starts with the command for all editors.
        return Step(f"{served.found}. Use its model, for better suggestions:", served.advice.partition(",")[0])
    if not has_engine():
        return Step(
            "No model is installed. Choose one, or install the engine for the small one that is built in, `nano`:",
            f"{_RECOMMEND}\n   {installing_engine()}",
        )
    card = gpu()
    if card is not None:
        return Step(f"This machine has {_WITH_ARTICLE[card.maker]} GPU. See which larger models fit it:", _RECOMMEND)
    return Step("Calomel uses its small model `nano`. See which larger ones fit:", _RECOMMEND)


def _is_usual(server: BackendSettings) -> bool:
    """Whether the user has chosen no model."""
    from calomel.cli import choice
    from calomel.workspace.settings import BackendSettings as Usual

    return choice.is_same(server, Usual())


_RECOMMEND: Final = "calomel models recommend"
_WITH_ARTICLE: Final = {"NVIDIA": "an NVIDIA", "AMD": "an AMD", "Apple": "an Apple"}

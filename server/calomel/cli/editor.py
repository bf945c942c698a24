"""`calomel editor`: what each editor needs for Calomel, and where it belongs.

Settings files of editors (JSON with comments) are read and never changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from calomel.cli.output import Config, InputError, say
from calomel.storage import open_regular

if TYPE_CHECKING:
    from calomel.server.settings import ServeSettings

_LARGEST: Final = 1024 * 1024
# Strings first: what looks like a comment or a comma inside one is none.
_STRING: Final = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT: Final = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMA: Final = re.compile(_STRING + r"|[{\[]\s*,|,(?=\s*[}\]])")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text for the user to put somewhere: what, and where."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What one editor needs.

    Attributes:
        snippets: text that the user adds.
        notes: sentences about further steps.
        file: a file of Calomel's own and its text, written if it does not exist.
    """

    snippets: tuple[Snippet, ...] = ()
    notes: tuple[str, ...] = ()
    file: tuple[Path, str] | None = None


def read(path: Path) -> str | None:
    """The text with its own line ends; None when there is no such file. Raises InputError."""
    try:
        with open_regular(path) as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror})") from error
    if len(data) > _LARGEST:
        raise InputError(f"{path} is larger than {_LARGEST // 1024} KB, too large for a settings file")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8") from error


def settings_of(path: Path) -> Mapping[str, Any] | None:
    """The content of a settings file, empty if it does not exist; None when it cannot be read as an object."""
    try:
        settings = _loads(read(path) or "{}")
    except (ValueError, RecursionError, InputError):
        return None
    return settings if isinstance(settings, Mapping) else None


def _loads(text: str) -> Any:
    """The value of JSON with comments and trailing commas. Raises ValueError."""
    bare = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", text.removeprefix("\ufeff"))
    return json.loads(_COMMA.sub(lambda match: " " if match[0] == "," else match[0], bare))


# The folders of the plugins: of an installed wheel, and of a source checkout.
_PLUGINS: Final = (Path(__file__).parents[1] / "editors", Path(__file__).parents[3] / "editors")
# Where clients on this machine find a server that listens everywhere.
_HERE: Final = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104


@dataclass(frozen=True, slots=True)
class Here:
    """This machine.

    Attributes:
        home: the user's folder.
        config: where programs keep settings (`~/.config`).
        mac: it is a Mac; Linux otherwise.
        program: `calomel`, as an absolute path if it is known: editors started from a menu have another PATH.
        url: of the server, without a path; None when none runs and its port would be a random one.
        token: the file with the token; None when the server requires none, or it is in the environment.
        plugins: the folder `editors` of the installed package, or of a source checkout; None if there is none.
    """

    home: Path
    config: Path
    mac: bool
    program: str
    url: str | None
    token: Path | None
    plugins: Path | None

    @property
    def support(self) -> Path:
        """Where graphical programs keep settings."""
        return self.home / "Library" / "Application Support" if self.mac else self.config


def here(settings: ServeSettings, environment: Mapping[str, str] = os.environ) -> Here:
    """This machine, for the server that these settings describe or that is already running."""
    home = Path(environment.get("HOME") or Path.home())
    return Here(
        home=home,
        config=Path(environment.get("XDG_CONFIG_HOME") or home / ".config"),
        mac=sys.platform == "darwin",
        program=_program(),
        url=_running(settings) or configured(settings),
        token=_token(settings),
        plugins=next((each for each in _PLUGINS if (each / "neovim").is_dir()), None),
    )


def configured(settings: ServeSettings) -> str | None:
    """The address that clients on this machine use."""
    if settings.port == 0:
        return None
    return _reached(settings, "http" if settings.tls_cert is None else "https", settings.host, settings.port)


def _running(settings: ServeSettings) -> str | None:
    from calomel.infer.runtime_file import default_path, live, socket_in

    record = live(settings.runtime_file or default_path())
    if record is None or socket_in(record.url) is not None:
        return None
    parts = urlsplit(record.url)
    return _reached(settings, parts.scheme, parts.hostname or "", parts.port or 0)


def _reached(settings: ServeSettings, scheme: str, host: str, port: int) -> str:
    if host in _HERE:
        # An encrypted server has a certificate for its name.
        host = settings.allowed_hosts[0] if scheme == "https" and settings.allowed_hosts else _HERE[host]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _token(settings: ServeSettings) -> Path | None:
    from calomel.server import tokens

    if settings.no_auth or settings.token is not None:
        return None
    return settings.token_file or tokens.default_path()


def _program() -> str:
    beside = Path(sys.executable).with_name("calomel")
    path = str(beside) if beside.is_file() else shutil.which("calomel")
    return os.path.abspath(path) if path else "calomel"  # noqa: PTH100 (a link in ~/.local/bin outlives its target)


@dataclass(frozen=True, slots=True)
class VsCode:
    """VS Code or a relative: its name, the folder of its settings, its program, and the folder of its extensions."""

    name: str
    folder: str
    command: str
    extensions: str

    def settings(self, here: Here) -> Path:
        """Where the user's settings are."""
        return here.support / self.folder / "User" / "settings.json"


VS_CODES: Final = (
    VsCode("VS Code", "Code", "code", ".vscode"),
    VsCode("VS Code Insiders", "Code - Insiders", "code-insiders", ".vscode-insiders"),
    VsCode("VSCodium", "VSCodium", "codium", ".vscode-oss"),
    VsCode("Cursor", "Cursor", "cursor", ".cursor"),
    VsCode("Windsurf", "Windsurf", "windsurf", ".windsurf"),
)


def vscode(here: Here, only: str = "") -> Plan:
    """The extension starts `calomel lsp` itself; it needs the program's path if the program is not on the PATH.

    `only` is the command of the one that the user named; otherwise it is for all that are here.
    """
    named = [each for each in VS_CODES if each.command == only]
    editors = named or [each for each in VS_CODES if (here.support / each.folder).is_dir()] or VS_CODES[:1]
    # Editors that are started from a menu have another PATH than a shell.
    setting = json.dumps({"calomel.path": here.program}, indent=4)
    snippets = tuple(
        Snippet(f"in {path}, the settings of {each.name}", setting)
        for each in editors
        if (settings_of(path := each.settings(here)) or {}).get("calomel.path") != here.program
    )
    packed = None if here.plugins is None else here.plugins / "calomel.vsix"
    file_or_built = packed if packed is not None and packed.is_file() else "dist/calomel.vsix"
    commands = "\n".join(
        f"    {each.command} --install-extension {file_or_built}"
        for each in editors
        if not any((here.home / each.extensions / "extensions").glob("calomel.calomel-*/package.json"))
    )
    how = "The extension:" if file_or_built == packed else "The extension (after `make vsix` in the clone):"
    notes = (f"{how}\n{commands}",) if commands else ()
    return Plan(snippets, notes)


_NEOVIM: Final = """-- Calomel. Written by `calomel editor setup neovim`; yours to change.
local folder = {folder}
vim.opt.runtimepath:append(folder)
vim.cmd.source(folder .. "/plugin/calomel.lua")
require("calomel").setup({{ cmd = {{ {program}, "lsp" }} }})
"""
_LAZY: Final = """{{ dir = {folder}, name = "calomel", event = "VeryLazy", opts = {{ cmd = {{ {program}, "lsp" }} }} }}
"""
_NOWHERE: Final = "/path/to/calomel/editors/neovim"
_MOST_FILES: Final = 500


def neovim(here: Here) -> Plan:
    """The plugin, loaded by a file of our own in the folder `plugin`, which no plugin manager touches.

    Nothing is written if the configuration already mentions Calomel.
    """
    folder = here.config / "nvim"
    path = folder / "plugin" / "calomel-setup.lua"
    plugin = _NOWHERE if here.plugins is None else str(here.plugins / "neovim")
    names = {"folder": json.dumps(plugin), "program": json.dumps(here.program)}
    lazy = Snippet("to your plugins if you use lazy.nvim, in place of the file below", _LAZY.format(**names))
    if here.plugins is None:
        return Plan((lazy,), ("The plugin is the folder editors/neovim of Calomel's source: clone it first.",))
    if place := mentioned(folder, path):
        return Plan((lazy,), (f"{place} already sets up Calomel; nothing to write.",))
    return Plan((lazy,), (":checkhealth calomel lists what is missing.",), (path, _NEOVIM.format(**names)))


def mentioned(folder: Path, own: Path | None = None) -> Path | None:
    """A file of Neovim's configuration, other than our own, that loads the plugin."""
    files = sorted(each for kind in ("*.lua", "*.vim") for each in folder.rglob(kind)) if folder.is_dir() else []
    for each in files[:_MOST_FILES]:
        # Skip a file that cannot be read.
        with contextlib.suppress(InputError):
            if each != own and "calomel" in (read(each) or ""):
                return each
    return None


_VARIABLE: Final = "ZED_OPEN_AI_COMPATIBLE_EDIT_PREDICTION_API_KEY"


def zed_settings(here: Here) -> Path:
    """The path of the user's settings: the same on Linux and on a Mac."""
    return (here.home / ".config" if here.mac else here.config) / "zed" / "settings.json"


def zed(here: Here) -> Plan:
    """Edit predictions over HTTP, from `calomel serve`. Raises InputError."""
    if here.url is None:
        raise InputError("no server is running, and no fixed port is set", "--url http://127.0.0.1:PORT")
    path = zed_settings(here)
    wanted = {
        "edit_predictions": {
            "provider": "open_ai_compatible_api",
            "open_ai_compatible_api": {
                "api_url": here.url.rstrip("/") + "/v1/completions",
                # Older versions infer the same format from this name.
                "model": "zeta2.1",
                "prompt_format": "zeta2_1",
                # Zed asks for four times as many tokens; a region has some 350.
                "max_output_tokens": 512,
            },
        }
    }
    notes = []
    if here.token is not None:
        notes.append(
            f"Zed reads the token from its environment. Start it with:\n"
            f'    export {_VARIABLE}="$(cat {here.token})"\n'
            "or type it in Zed's settings for the provider. Do not put it in settings.json."
        )
    else:
        notes.append(f"If your server requires a token, Zed reads it from {_VARIABLE}.")
    if (settings_of(path) or {}).get("show_edit_predictions") is False:
        notes.append("show_edit_predictions is false in your settings: turn it on to see predictions.")
    notes.append("Keep the server running: calomel serve. See docs/zed.md.")
    return Plan((Snippet(f"in {path}", json.dumps(wanted, indent=2)),), tuple(notes))


_HELIX: Final = """[language-server.calomel]
command = {program}
args = ["lsp"]
config = {{ completion_item = true }}

# For each language: first the servers that `hx --health LANGUAGE` shows, then calomel.
[[language]]
name = "python"
language-servers = ["pylsp", "calomel"]
"""


def helix(here: Here) -> Plan:
    """The lines for languages.toml, which names all servers of a language: only the user knows the others."""
    path = (here.home / ".config" if here.mac else here.config) / "helix" / "languages.toml"
    note = (
        "Helix does not show inline completions yet: suggestions are completions, and next edits are the code action "
        '"Apply next edit" (space a).'
    )
    return Plan((Snippet(f"in {path}", _HELIX.format(program=json.dumps(here.program))),), (note,))


_LSP_MODE: Final = """(with-eval-after-load 'lsp-mode
  (lsp-register-client
   (make-lsp-client
    :new-connection (lsp-stdio-connection '({program} "lsp"))
    :activation-fn (lambda (&rest _) t)
    :add-on? t
    :server-id 'calomel)))
(add-hook 'lsp-managed-mode-hook #'lsp-inline-completion-mode)
"""
# Under all modes that eglot has servers for, so that it reports their languages: `prog-mode` would make them all one.
_EGLOT: Final = """(with-eval-after-load 'eglot
  (push (cons (seq-mapcat (lambda (entry)
                            (let ((modes (car entry)))
                              (if (or (symbolp modes) (keywordp (cadr modes))) (list modes) modes)))
                          eglot-server-programs)
              '({program} "lsp" :initializationOptions (:completion_item t)))
        eglot-server-programs))
"""


def emacs(here: Here) -> Plan:
    """The lines for the init file, which is a program and cannot be merged safely."""
    old, new = here.home / ".emacs.d" / "init.el", here.config / "emacs" / "init.el"
    path = old if old.exists() or not new.exists() else new
    program = json.dumps(here.program)
    snippets = (
        Snippet(f"in {path}, with lsp-mode 10 (ghost text)", _LSP_MODE.format(program=program)),
        Snippet(f"in {path}, with eglot (completions, and next edits as code actions)", _EGLOT.format(program=program)),
    )
    note = "eglot runs one server in each buffer, so Calomel replaces your usual one. lsp-mode runs several."
    return Plan(snippets, (note,))


def sublime(here: Here) -> Plan:
    """A client of the package LSP, which shows text at the cursor among the completions."""
    packages = here.support / ("Sublime Text" if here.mac else "sublime-text") / "Packages"
    client = {
        "enabled": True,
        "command": [here.program, "lsp"],
        "selector": "source | text",
        "initializationOptions": {"completion_item": True},
    }
    notes = (
        "Install the package LSP first (Package Control: Install Package, LSP).",
        "Sublime Text does not show inline completions: suggestions are completions.",
        'Next edits are the code action "Apply next edit".',
    )
    path = packages / "User" / "LSP.sublime-settings"
    return Plan((Snippet(f"in {path}", json.dumps({"clients": {"calomel": client}}, indent="\t")),), notes)


# By the names in `calomel editor setup`.
PLANS: Final[Mapping[str, Callable[[Here], Plan]]] = {
    "vscode": vscode,
    "neovim": neovim,
    "zed": zed,
    "helix": helix,
    "emacs": emacs,
    "sublime": sublime,
}


editor = typer.Typer(help="Set up an editor.", no_args_is_help=True, rich_markup_mode=None)


@editor.callback()
def _group() -> None:
    """Set up an editor."""


_NAMES: Final = "vscode, cursor, vscodium, windsurf, neovim, zed, helix, emacs or sublime"


@editor.command()
def setup(
    name: Annotated[
        str,
        typer.Argument(
            metavar="EDITOR",
            help=f"{_NAMES}.",
            show_default=False,
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Server address for Zed's settings. Default: this machine's.")
    ] = None,
    config: Config = None,
) -> None:
    """Print the settings an editor needs, and where they belong.

    For Neovim, also write its own file, if you agree. Exit status 1 if that was not written.
    """
    from calomel.storage import write_whole

    wanted, machine = _editor(name), _here(config, url)
    plan = vscode(machine, _RELATIVES.get(name.lower(), "")) if wanted == "vscode" else PLANS[wanted](machine)
    for snippet in plan.snippets:
        say(f"Add this {snippet.where}:\n\n{indent(snippet.text, '    ')}\n")
    refused = False
    if plan.file is not None:
        path, text = plan.file
        if path.exists():
            say(f"{path} exists already. Calomel leaves it as it is.")
        else:
            say(f"{path}, which Calomel writes for you:\n\n{indent(text, '    ')}")
            refused = not _agreed(yes=yes)
            if not refused:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, text)
                say(f"Wrote {path}\nTo undo: rm {path}")
    for note in plan.notes:
        say(note)
    if refused:
        raise typer.Exit(1)


def _editor(name: str) -> str:
    """The editor that is meant. Raises InputError."""
    key = _SAME.get(name.lower(), name.lower())
    if key in PLANS:
        return key
    if key in _WITHOUT:
        raise InputError(f"Calomel has no plugin for {name}", _WITHOUT[key])
    raise InputError(f"{name} is not a known editor", f"{_NAMES}; for others start `calomel lsp`")


# By the names of VS Code's relatives, their commands.
_RELATIVES: Final = {
    "cursor": "cursor",
    "codium": "codium",
    "vscodium": "codium",
    "windsurf": "windsurf",
    "insiders": "code-insiders",
}
_SAME: Final = {
    **dict.fromkeys(("code", "vs-code", *_RELATIVES), "vscode"),
    **dict.fromkeys(("nvim", "lazyvim", "astronvim"), "neovim"),
    **dict.fromkeys(("hx",), "helix"),
    **dict.fromkeys(("spacemacs", "doom"), "emacs"),
    **dict.fromkeys(("subl", "sublimetext", "sublime-text"), "sublime"),
}
_JETBRAINS: Final = "Continue has one that can use `calomel serve`, untested"
_WITHOUT: Final = {
    **dict.fromkeys(("jetbrains", "intellij", "idea", "pycharm", "webstorm", "goland", "rustrover"), _JETBRAINS),
    "vim": "llama.vim can use `calomel serve`; Neovim has a plugin (neovim)",
    "visualstudio": "VS Code has one (vscode)",
}


def _here(config: Path | None, url: str | None) -> Here:
    from calomel.server.settings import load

    settings = here(load({}, config).settings)
    if url is None:
        return settings
    try:
        parts = urlsplit(url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or parts.path.rstrip("/") or parts.query or parts.username:
        raise InputError(
            "--url is not the address of a server", "an address without a path, such as http://127.0.0.1:8017"
        )
    return replace(settings, url=url)


def _agreed(*, yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        say("Nothing written. Add --yes to write it.")
        return False
    return typer.confirm("Write this?")

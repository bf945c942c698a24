from __future__ import annotations

import re

import pytest
from tests.cli.hub import hub_with
from tests.editors.neovim.neovim import PLUGIN, Neovim
from tests.editors.programs import REPOSITORY
from tests.server._upstreams import Play, llama_cpp, served

from calomel.infer.completer import version

HELP = (PLUGIN / "doc" / "calomel.txt").read_text(encoding="utf-8")


def statusline(neovim: Neovim) -> str:
    return str(neovim.lua("return require('calomel').statusline()"))


def test_status(neovim: Neovim) -> None:
    neovim.offered()
    model, buffer, session, speed = neovim.status().split("\n")
    assert model == "scripted is ready. It runs on this machine's CPU."
    assert buffer == "This buffer: a suggestion is shown."
    counts = r"This session: \d+ shown, 0 accepted, 0 dismissed; nothing to show \d+ times\."
    assert re.fullmatch(counts, session)
    assert re.fullmatch(r"Speed: the model answers half of the requests within \d+ ms, 95% within \d+ ms\.", speed)


def test_status_before_the_first_request(bare: Neovim) -> None:
    bare.setup()
    bare.open("first = 1\n")
    lines = bare.status().split("\n")
    assert (lines[1], lines[3]) == ("This buffer: no request yet.", "Speed: the model has not answered yet.")


@pytest.mark.parametrize(
    ("off", "on", "said", "why"),
    [
        ("toggle", "toggle", " off", "Suggestions are off."),
        ("toggle language", "toggle language", " off", "Suggestions are off for this language."),
        ("toggle file", "toggle file", " off", "Suggestions are off for this file."),
        ("snooze 5", "snooze 0", "Calomel: quiet for 5 minutes", "You snoozed suggestions."),
    ],
)
def test_suggestions_are_turned_off_and_on(neovim: Neovim, off: str, on: str, said: str, why: str) -> None:
    neovim.offered()
    neovim.command(f"Calomel {off}")
    assert neovim.marks() == []
    assert neovim.messages()[-1].endswith(said)
    neovim.type("<BS> ")
    neovim.settle()
    assert neovim.marks() == []
    neovim.until(lambda: f"Nothing shown: {why}" in neovim.status(), "the reason")
    if "snoozed" in why:
        assert statusline(neovim) == "Calomel: off"
    neovim.command(f"Calomel {on}")
    neovim.type("<BS> ")
    neovim.until_ghost("value_of(x)")


def test_log_and_context_are_shown(neovim: Neovim) -> None:
    neovim.open("def add(a, b):\n    \n")
    neovim.type("j$")
    neovim.command("Calomel context")
    assert "def add(a, b):" in neovim.text()
    assert " tokens. " in neovim.text()
    assert neovim.lua("return vim.bo.buftype") == "nofile"
    neovim.command("Calomel log")
    assert neovim.lua("return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(0), ':t')").endswith(".log")
    assert neovim.lua("return vim.bo.readonly") is True


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Calomel dance", "Calomel: unknown subcommand dance"),
        ("Calomel toggle moon", "Calomel: toggle takes file, global, language"),
        ("Calomel snooze long", "Calomel: snooze takes minutes; 0 ends it"),
    ],
)
def test_a_wrong_argument_is_said(neovim: Neovim, line: str, said: str) -> None:
    neovim.open("\n")
    neovim.command(line)
    assert neovim.messages() == [said]


def test_a_wrong_setting_is_named(bare: Neovim) -> None:
    for options, said in (
        ("{ colour = 1 }", 'calomel: unknown option "colour"'),
        ("{ keys = { eat = 'x' } }", 'calomel: unknown key "eat"'),
        ("{ keys = { accept = 1 } }", "keys.accept: expected key, or false for none"),
        ("{ cmd = {} }", "cmd: expected list of strings"),
        ("{ ghost_text = 'mine' }", "ghost_text: expected"),
        ("{ next_edit = 'yes' }", "next_edit: expected boolean"),
    ):
        code = "vim.opt.runtimepath:prepend(...) return select(2, pcall(require('calomel').setup, %s))"
        assert said in bare.lua(code % options, bare.plugin)


def test_a_missing_program_is_said_once_and_in_the_report(bare: Neovim) -> None:
    bare.setup(command=["calomel-that-is-not-there", "lsp"])
    assert bare.messages() == ['calomel: "calomel-that-is-not-there" was not found; see :checkhealth calomel']
    bare.open("\n", served=False)
    bare.type("ix = <Esc>")
    assert bare.lua("return #vim.lsp.get_clients()") == 0
    assert bare.status().startswith("No server is running.")
    said = bare.health()
    assert 'ERROR "calomel-that-is-not-there" was not found' in said
    assert "setup({ cmd =" in said


def test_the_report_says_that_all_is_well_or_which_key_was_taken(neovim: Neovim) -> None:
    neovim.open("\n")
    buffer = neovim.lua("return vim.api.nvim_get_current_buf()")
    said = neovim.health()
    assert "ERROR" not in said
    assert "WARNING" not in said
    assert "model: scripted, ready. scripted is ready." in said
    assert f": version {version()}, " in said
    assert "positions in utf-16" in said
    assert "accept: <Tab>" in said
    neovim.lua("vim.keymap.set('i', '<Tab>', 'x', { buffer = ... })", buffer)
    assert f"another mapping of buffer {buffer} took <Tab>" in neovim.health()


def test_before_setup_the_report_says_what_to_call(bare: Neovim) -> None:
    bare.lua("vim.opt.runtimepath:prepend(...)", bare.plugin)
    assert "Call require('calomel').setup() in your init.lua." in bare.health()


@pytest.mark.e2e
def test_a_model_that_does_not_load_is_an_error_of_the_report(bare: Neovim) -> None:
    bare.script(broken="failed")
    bare.setup()
    bare.open("\n", served=False)
    bare.until(lambda: statusline(bare) == "Calomel: error", "it is said")
    assert "The weights are damaged." in bare.health()


def test_help_tells_of_every_option_key_command_and_function(bare: Neovim) -> None:
    bare.lua("vim.opt.runtimepath:prepend(...)", bare.plugin)
    names = bare.lua("""
    local config = require("calomel.config")
    return {
        options = vim.list_extend(vim.tbl_keys(config.defaults), { "filetypes" }),
        keys = config.defaults.keys,
        commands = require("calomel.command").complete("", "Calomel "),
        functions = vim.tbl_filter(function(name)
            return type(require("calomel")[name]) == "function"
        end, vim.tbl_keys(require("calomel"))),
    }
    """)
    wanted = [f"*calomel-opt-{option}*" for option in names["options"]]
    wanted += [f"`{name}`" for pair in names["keys"].items() for name in pair]
    wanted += [f"*:Calomel-{command}*" for command in names["commands"]]
    wanted += [f"*calomel.{function}()*" for function in names["functions"]]
    assert [each for each in wanted if each not in HELP] == []
    page = (REPOSITORY / "docs" / "neovim.md").read_text(encoding="utf-8")
    assert [key for key in names["keys"].values() if f"`{key}`" not in page] == []


def choose(neovim: Neovim, label: str) -> None:
    """Pick a model from the list."""
    code = """
    vim.ui.select = function(items, options, done)
        if options.kind == "lsp_message" then
            _G.asked = options.prompt
            return done(items[1])
        end
        _G.listed = vim.tbl_map(options.format_item, items)
        done(vim.iter(items):find(function(item) return item.label == _G.wanted end))
    end
    _G.wanted = ...
    vim.cmd("CalomelModel")
    """
    neovim.lua(code, label)


def test_another_model_is_chosen_of_those_that_run_here_and_is_kept(bare: Neovim) -> None:
    def chosen(neovim: Neovim) -> str:
        neovim.settle()
        return neovim.status().split("\n")[0]

    with served(llama_cpp(Play(tokens=("value_of", "(x)")))) as url:
        bare.script(fill=None, ports=[["llama.cpp", int(url.rpartition(":")[2])]])
        bare.widen()
        bare.setup()
        bare.open("\n")
        choose(bare, "Qwen2.5-Coder-1.5B-Q8_0")
        through = f"Qwen2.5-Coder-1.5B-Q8_0 is ready. It answers through llama.cpp at {url}."
        bare.until(lambda: f"Calomel: {through}" in bare.messages(), "the model answers")
        assert bare.lua("return _G.listed")[:2] == [
            "* nano (comes with Calomel, runs on this machine's CPU)",
            f"Qwen2.5-Coder-1.5B-Q8_0 (llama.cpp at {url})",
        ]
        bare.type("ix = ")
        bare.until_ghost("value_of(x)")
        # The next server of this Neovim asks it, too, and so does the next Neovim.
        bare.type("<Esc>")
        bare.command("Calomel restart")
        bare.until(lambda: bare.is_served() and through in chosen(bare), "the choice is kept")
        bare.setup()
        assert bare.lua("return require('calomel.config').current.settings.backend.upstream") == url
        # Whoever writes another one down is right.
        bare.setup(server={"backend": {"idle_minutes": 5.0}})
        assert bare.lua("return require('calomel.config').current.settings.backend.upstream") is None


def test_a_model_that_does_not_answer_is_told_and_the_old_one_stays(bare: Neovim) -> None:
    bare.widen()
    bare.setup()
    bare.open("\n")
    bare.command("CalomelModel localhost:9")
    wanted = "Calomel: scripted stays in use: no server answers at http://localhost:9: start it"
    bare.until(lambda: any(each.startswith(wanted) for each in bare.messages()), "the reason")
    assert bare.status().startswith("scripted is ready.")
    bare.lua("vim.o.columns = 80")
    bare.command("CalomelModel localhost:9")
    bare.until(lambda: bare.messages()[-1].endswith("… (:Calomel status)"), "it is one line")
    assert bare.status().endswith(f"Last message: {wanted.removeprefix('Calomel: ')}, or correct upstream.")
    bare.command("CalomelModel nowhere")
    wanted = "Calomel: unknown model nowhere; :CalomelModel lists the known ones"
    bare.until(lambda: wanted in bare.messages(), "the name is unknown")


def test_a_server_that_dies_is_told_nano_answers_meanwhile_and_it_is_back_by_itself(bare: Neovim) -> None:
    def told(*parts: str) -> None:
        bare.until(lambda: any(all(part in each for part in parts) for each in bare.messages()), " ".join(parts))

    llama = llama_cpp(Play(tokens=("of_llama", "(x)")))
    with served(llama) as url:
        address = f"localhost:{url.rpartition(':')[2]}"
        bare.setup()
        bare.script(fill="of_nano(x)")
        bare.open("\n")
        bare.command(f"CalomelModel {address}")
        # Whole, it would wait for Enter and take the next keys.
        told("Qwen2.5-Coder-1.5B-Q8_0 is ready. It answers", "… (:Calomel status)")
        assert f"is ready. It answers through llama.cpp at http://{address}." in bare.status()
        bare.type("ix = ")
        bare.until_ghost("of_llama(x)")
    bare.type("<CR>y = ")
    # One line, as more would take the keys that are being typed.
    told("llama.cpp is away. :CalomelModel meanwhile uses nano")
    bare.type("<Esc>")
    assert f"llama.cpp at http://{address} stopped answering: start it again" in bare.status()
    assert "or use nano meanwhile. Until it answers, :CalomelModel meanwhile uses nano.\n" in bare.status()
    bare.until(lambda: "\nThis buffer: Nothing shown: the model is away.\n" in bare.status(), "said once")
    assert "No completion" not in bare.status()
    assert "Speed" not in bare.status()
    bare.command("CalomelModel meanwhile")
    told("scripted answers until llama.cpp at")
    bare.type("oz = ")
    bare.until_ghost("of_nano(x)")
    with served(llama, int(address.rpartition(":")[2])):
        bare.until(lambda: bare.status().startswith("Qwen2.5-Coder-1.5B-Q8_0 is ready."), "it is back")
        bare.type("<CR>v = ")
        bare.until_ghost("of_llama(x)")
        bare.type("<Esc>")
        bare.lua("_G.messages = {}")
    # Each outage is told, where "-- INSERT --" does not take its place.
    shows = "return vim.o.showmode"
    assert bare.lua(shows)
    bare.type("ow = ")
    told("llama.cpp is away. :CalomelModel meanwhile uses nano")
    assert not bare.lua(shows)
    bare.type("<Esc>")
    assert bare.lua(shows)


def test_a_server_that_does_not_run_yet_is_told_in_one_line_and_found(bare: Neovim) -> None:
    llama = llama_cpp(Play(tokens=("of_llama", "(x)")))
    with served(llama) as url:
        pass
    bare.setup(server={"backend": {"upstream": url}})
    bare.open("\n", served=False)
    wanted = "Calomel: The server is away. :CalomelModel meanwhile uses nano"
    bare.until(lambda: wanted in bare.messages(), "it is told")
    assert bare.status().startswith(f"No server answers at {url}: start it, or correct upstream. Until")
    with served(llama, int(url.rpartition(":")[2])):
        bare.until(lambda: bare.status().startswith("Qwen2.5-Coder-1.5B-Q8_0 is ready."), "it is found")
    room = bare.lua("return vim.v.echospace")
    assert [each for each in bare.messages() if len(each) > room] == []


def test_a_model_that_is_not_here_is_downloaded_once_the_user_agrees(bare: Neovim) -> None:
    with hub_with({"small-Q8_0.gguf": b"GGUF" + bytes(5_000_000)}) as hub:
        bare.script(hub=f"http://127.0.0.1:{hub.server_port}")
        bare.setup()
        bare.open("\n")
        choose(bare, "Small")
        offered = "Small (download, 0.5 GB, MIT; for completions)"
        bare.until(lambda: offered in (bare.lua("return _G.listed") or ()), "it is offered")
        bare.until(lambda: bare.lua("return _G.asked") is not None, "it is asked about")
        asked = "Download small-Q8_0.gguf from the Hugging Face hub (0.01 GB, licence mit)? "
        assert bare.lua("return _G.asked").startswith(asked)
        bare.until(
            lambda: "Calomel: scripted is ready. It runs on this machine's CPU." in bare.messages(), "it answers"
        )
        assert bare.lua("return require('calomel.config').current.settings.backend.model") == "me/small"
        assert (bare.folder / "xdg_data_home" / "calomel" / "models" / "me--small" / "small-Q8_0.gguf").exists()

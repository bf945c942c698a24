"""`calomel models use`: one choice of a model for all editors, in the user's own file."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Runner, configured
from tests.server._upstreams import Play, llama_cpp, ollama, served

from calomel.weights import nano_path
from calomel.weights.folders import models_folder
from calomel.workspace.settings import load_settings

NOBODY = "http://127.0.0.1:9"
FILE = """# mine\r
[suggest]
aggressiveness = "quiet" # shh

[backend] # where it runs
device = "cuda"
\tmodel = 'other'   # the best one
upstream_key_file = "/k"
# threads
threads = 3
url = "http://127.0.0.1:1"

[privacy]
ignore = ["*.sql"]"""


@pytest.fixture(autouse=True)
def _machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE", "NVIM_APPNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home)


@pytest.fixture
def mine(home: Path) -> str:
    """The name of a model in the models folder."""
    (models_folder()).mkdir(parents=True)
    shutil.copytree(nano_path(), models_folder() / "mine")
    return "mine"


def text(home: Path) -> str:
    return (home / ".config/calomel/calomel.toml").read_bytes().decode()


def packed(file: Path) -> Path:
    """What begins like a GGUF file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"GGUF\3\0\0\0" + bytes(16))
    return file


def test_the_choice_is_all_that_changes_in_the_file(run: Runner, home: Path, mine: str) -> None:
    path = configured(home, "calomel/calomel.toml")
    path.write_bytes(FILE.encode())
    path.chmod(0o640)
    done = run("models", "use", mine)
    assert (done.status, done.err) == (0, "")
    gone = ('upstream_key_file = "/k"\n', 'url = "http://127.0.0.1:1"\n')
    expected = FILE.replace("'other'", '"mine"').replace('ignore = ["*.sql"]', 'ignore = ["*.sql"]\r\n')
    for line in gone:
        expected = expected.replace(line, "")
    assert text(home) == expected
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [each.name for each in path.parent.iterdir()] == ["calomel.toml"]
    again = run("models", "use", mine)
    assert text(home) == expected
    assert "Before" in done.out
    assert "Before" not in again.out


def test_a_file_that_is_not_there_is_written_for_its_owner_alone(run: Runner, home: Path) -> None:
    done = run("models", "use", "nano")
    path = home / ".config/calomel/calomel.toml"
    assert text(home) == '[backend]\nmodel = "nano"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"nano is the model for all editors, in {path}." in done.out


@pytest.mark.parametrize(
    "written",
    [
        'backend.model = "x"\n',
        'server = { model = "x" }\n',
        '[backend]\nmodel = """\nx"""\n',
        '[backend]\n"mod\\u0065l" = "x"\n',
    ],
)
def test_a_file_in_another_form_is_left_and_the_line_is_told(run: Runner, home: Path, written: str) -> None:
    configured(home, "calomel/calomel.toml", written)
    done = run("models", "use", "nano")
    assert (done.status, text(home)) == (2, written)
    assert 'try: write this there, under [backend]: model = "nano"' in done.err


def test_a_file_with_a_mistake_is_left(run: Runner, home: Path) -> None:
    configured(home, "calomel/calomel.toml", "[server\n")
    assert "is not valid TOML" in run("models", "use", "nano").err
    assert text(home) == "[server\n"


def test_a_path_becomes_a_whole_one_and_a_name_stays(
    run: Runner, home: Path, mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(nano_path(), home / "here")
    for given, written in ((mine, mine), ("./here", str(home / "here")), ("here", str(home / "here"))):
        assert run("models", "use", given).status == 0
        assert load_settings(user_toml=home / ".config/calomel/calomel.toml")[0].backend.model == Path(written)


def test_gguf_files_of_others_are_chosen_by_their_names(
    run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    blob = packed(home / ".ollama/models/blobs/sha256-1")
    manifest = home / ".ollama/models/manifests/registry.ollama.ai/library/coder/1b"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:1"}
    manifest.write_text(json.dumps({"layers": [layer]}))
    packed(home / ".lmstudio/models/me/small/small.gguf")
    for name in ("coder:1b", "me/small", str(blob)):
        done = run("models", "use", name)
        assert done.status == 0, done.err
        assert text(home) == f'[backend]\nmodel = "{name}"\n'
    with monkeypatch.context() as patched:
        patched.setattr("calomel.cli.choice.unpacks", lambda: False)
        told = run("models", "info", str(blob)).out
    assert (str(blob) in told, "llama.cpp" in told) == (True, True)
    cut = home / "cut.gguf"
    cut.write_bytes(b"GGUF" + bytes(100))
    refused = run("models", "use", str(cut))
    assert (refused.status, "try: fetch it again" in refused.err) == (2, True)
    configured(home, "calomel/calomel.toml", f'[backend]\nmodel = "{cut}"\n')
    assert f"fail  editors' model: {cut} is damaged, or cut short" in run("doctor").out
    refused = run("models", "use", "nobody")
    assert (refused.status, refused.err) == (
        2, "error: found no model nobody\ntry: one of nano, coder:1b, me/small, or a path\n",
    )  # fmt: skip


def test_a_folder_without_a_model_is_not_chosen(run: Runner, home: Path) -> None:
    configured(home, "calomel/calomel.toml", "# mine\n")
    (home / "empty").mkdir()
    (home / "broken").mkdir()
    for name in ("config.json", "model.safetensors"):
        (home / "broken" / name).write_text("{}")
    for name in ("empty", "./broken", "../x", "a\nb"):
        assert run("models", "use", name).status == 2
    assert run("models", "use").status == 2
    assert text(home) == "# mine\n"


def test_a_server_is_chosen_with_one_of_its_models(run: Runner, home: Path) -> None:
    models = ("qwen2.5-coder:1.5b-base", "mine:7b")
    with served(ollama(Play(models=models, capabilities=("completion",)))) as url:
        wrong = run("models", "use", "--upstream", url, "other:1b")
        assert wrong.status == 2
        assert "mine:7b" in wrong.err
        assert not (home / ".config/calomel").exists()
        done = run("models", "use", "--upstream", url, "mine:7b")
    assert text(home) == f'[backend]\nupstream = "{url}"\nupstream_model = "mine:7b"\n'
    assert f"mine:7b at {url} is the model for all editors" in done.out


def test_the_key_of_a_server_stays_as_long_as_its_address(run: Runner, home: Path) -> None:
    (home / "key").write_text("k")
    (home / "key").chmod(0o600)
    key = f'upstream_key_file = "{home / "key"}"\n'
    with served(llama_cpp(Play(tokens=("a",)))) as url:
        configured(home, "calomel/calomel.toml", f'[backend]\nupstream = "{url}"\n{key}upstream_fim = "qwen"\n')
        done = run("models", "use", "--upstream", url)
        named = not done.out.startswith("The model at")
        assert (done.status, f" at {url} is the model for all editors" in done.out, named) == (
            0, True, True,
        )  # fmt: skip
        assert text(home) == f'[backend]\nupstream = "{url}"\n{key}'
    play = Play(tokens=("a",), key="k")
    with served(llama_cpp(play)) as url:
        assert run("models", "use", "--upstream", url).status == 2
        for _ in range(2):
            assert run("models", "use", "--upstream", url, "--upstream-key-file", "key").status == 0
        assert text(home) == f'[backend]\nupstream = "{url}"\n{key}'
    silent = run("models", "use", "--upstream", NOBODY)
    assert text(home) == f'[backend]\nupstream = "{NOBODY}"\n'
    assert "It does not answer now: " in silent.out
    far = run("models", "use", "--upstream", "https://192.0.2.1:9").out
    assert "no server answers at https://192.0.2.1:9: check the network and the address\n" in far
    assert run("models", "use", "--upstream", "http://u:s3cret@127.0.0.1:9").status == 2
    assert "s3cret" not in text(home)


def test_a_table_by_its_earlier_name_is_renamed(run: Runner, home: Path) -> None:
    configured(home, "calomel/calomel.toml", '[server]  # mine\nthreads = 2\nmodel = "x"\n')
    assert run("models", "use", "nano").status == 0
    assert text(home) == '[backend]  # mine\nthreads = 2\nmodel = "nano"\n'


def in_vs_code(home: Path, **settings: str) -> Path:
    return configured(home, "Code/User/settings.json", json.dumps({f"calomel.{k}": v for k, v in settings.items()}))


def asks(done: Run) -> list[str]:
    return [line for line in done.out.splitlines() if "does not follow" in line]


def test_editors_whose_own_settings_win_are_named(run: Runner, home: Path) -> None:
    path = configured(
        home,
        "Code/User/settings.json",
        f"""{{
        // mine
        "calomel.backend.upstream": "{NOBODY}", "calomel.backend.upstreamModel": "m", "calomel.backend.threads": 2,
    }}""",
    )
    configured(home, "Cursor/User/settings.json", '{"calomel.suggest.enabled": true}')
    kept = home / ".data/nvim/calomel/model.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"said": {}, "choice": {"model": "other", "url": None}}))
    lua = configured(home, "nvim/init.lua", 'require("calomel").setup({ settings = { server = { model = "x" } } })\n')
    configured(home, "zed/settings.json", '{"edit_predictions": {"provider": "open_ai_compatible_api"}}')
    told = asks(run("models", "use", "nano"))
    assert told == [
        (
            f"VS Code does not follow (it asks m at {NOBODY}): remove calomel.backend.upstream, "
            f"calomel.backend.upstreamModel from {path}"
        ),
        f"Neovim does not follow (it asks other): that was chosen with :CalomelModel; to undo it: rm {kept}",
        f"Neovim does not follow: remove the model from settings.backend in {lua}, unless it is the same",
        (
            f"Zed does not follow: it asks `calomel serve`: set model under [serve] in "
            f"{home}/.config/calomel/calomel.toml, or use --model"
        ),
    ]


def test_the_list_marks_the_choice_and_says_what_runs_each(run: Runner, home: Path, mine: str) -> None:
    pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    packed(home / ".lmstudio/models/me/small/small.gguf")
    packed(models_folder() / "brought" / "a.gguf")
    in_vs_code(home, **{"backend.model": "elsewhere"})
    assert run("models", "use", mine).status == 0
    lines = run("models", "list").out.splitlines()
    rows = [line.split("  ") for line in lines[:4]]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["nano", "12 MiB", "calomel", "own engine", "shipped"],
        ["brought", "0 MiB", "GGUF", "llama.cpp", "models folder"],
        ["*", "mine", "12 MiB", "calomel", "own engine", "models folder"],
        ["me/small", "0 MiB", "GGUF", "llama.cpp", "LM Studio"],
    ]
    assert lines[-1].startswith("VS Code does not follow (it asks elsewhere): remove calomel.backend.model from ")
    assert run("models", "use", "--upstream", NOBODY).status == 0
    assert f"*  the model at {NOBODY}" in run("models", "list").out


def test_a_model_for_next_edits_leaves_the_one_for_text_alone(run: Runner, home: Path, mine: str) -> None:
    configured(home, "calomel/calomel.toml", '[backend]\nupstream = "http://127.0.0.1:9"\nupstream_key_file = "/k"\n')
    done = run("models", "use", mine, "--edits")
    assert done.status == 0
    assert f"The model at {NOBODY}, and mine for next edits, are the models for all editors" in done.out
    written = f'[backend]\nedit_model = "mine"\nupstream = "{NOBODY}"\nupstream_key_file = "/k"\n'
    assert text(home) == written
    listed = run("models", "list").out
    assert [line.split()[0] for line in listed.splitlines() if " mine " in line] == ["e"]
    assert "e: asked by editors for next edits." in listed
    with served(ollama(Play(models=("a:1b", "b:1b")))) as url:
        run("models", "use", "b:1b", "--upstream", url, "--edits")
        edits = f'edit_upstream = "{url}"\nedit_upstream_model = "b:1b"\n'
        assert text(home) == written.replace('edit_model = "mine"\n', edits)
    assert "is the model for all editors" in run("models", "use", "nano").out
    assert text(home) == '[backend]\nmodel = "nano"\n'


def test_the_model_for_next_edits_is_not_removed(run: Runner, home: Path) -> None:
    shutil.copytree(nano_path(), folder := models_folder() / "got")
    (folder / "calomel-source.json").write_text("{}")
    run("models", "use", "got", "--edits")
    assert "got is the model for all editors" in run("models", "remove", "got", "--yes").err
    assert folder.is_dir()

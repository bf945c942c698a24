"""`calomel doctor` under every wrong setting: all of them are named with their place, and nothing breaks."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_origin

import pytest
import torch
from tests.cli.conftest import Run, Runner, configured
from tests.server._upstreams import Play, ollama, served

from calomel.cli.checks import Pace
from calomel.server.settings import ServeSettings, variable
from calomel.workspace.settings import TABLES
from calomel.workspace.settings_reader import allowed, types_of

SCHEMAS: Mapping[str, type] = {"serve": ServeSettings, **TABLES}


@pytest.fixture(autouse=True)
def _machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calomel.cli.checks.measured", lambda _: Pace(0.3, 0.05, 2048))
    (home / "project").mkdir()
    (home / "project" / "a.py").write_text("x = 1\n")


@pytest.fixture
def doctor(run: Runner, home: Path) -> Callable[[], Run]:
    """It ends by itself, has no fault of its own, and names the command after each fault."""

    def ask() -> Run:
        done = run("doctor", home / "project" / "a.py")
        assert done.err == ""
        assert "could not be checked" not in done.out
        printed = done.out.splitlines()
        for line, after in zip(printed, [*printed[1:], ""], strict=True):
            assert not line.startswith(("warn", "fail")) or after.startswith("      → "), line
        return done

    return ask


def of_another_type(kind: Any) -> Any:
    return 7 if get_origin(kind) is tuple or kind in {Path, Path | None} else [1]


def out_of_range(kind: Any) -> Any:
    _, number, _, high = allowed(kind)
    return None if number is None or get_origin(kind) is Mapping else number(high + 1)


def no_such_word(kind: Any) -> Any:
    return "bogus" if allowed(kind).words and get_origin(kind) is not Mapping else None


def wrong(kind: Any, value: Callable[[Any], Any]) -> dict[str, Any]:
    """The settings of a table for which there is such a value."""
    found = {name: value(each) for name, each in types_of(kind).items() if name in {f.name for f in fields(kind)}}
    return {name: each for name, each in found.items() if each is not None}


def toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    return "\n".join(
        f"[{table}]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
        for table, values in tables.items()
    )


VALUES = [of_another_type, out_of_range, no_such_word]


@pytest.mark.parametrize("value", VALUES)
def test_every_wrong_value_of_the_users_file_is_named(doctor: Callable[[], Run], home: Path, value: Any) -> None:
    tables = {table: wrong(kind, value) for table, kind in SCHEMAS.items()}
    file = configured(home, "calomel/calomel.toml", toml(tables))
    file.chmod(0o600)
    done = doctor()
    for table, values in tables.items():
        source = str(file) if table == "serve" else "calomel.toml"
        assert [name for name in values if f"{source}: {table}.{name}: must be " not in done.out] == []
    assert done.status == 1


@pytest.mark.parametrize("value", VALUES)
def test_every_wrong_value_of_a_workspace_is_named(doctor: Callable[[], Run], home: Path, value: Any) -> None:
    tables = {table: wrong(kind, value) for table, kind in TABLES.items()}
    (home / "project" / "calomel.toml").write_text(toml(tables))
    done = doctor()
    for table, values in tables.items():
        there = f"the workspace's calomel.toml: {table}."
        assert [name for name in values if f"{there}{name}: must be " not in done.out] == []
    assert done.status == 0


def test_every_wrong_variable_is_named(doctor: Callable[[], Run], monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = types_of(ServeSettings)
    words = {str, str | None}
    free = {name for name, kind in kinds.items() if kind in words or get_origin(kind) is tuple}
    names = [each.name for each in fields(ServeSettings) if each.name not in free]
    for name in names:
        monkeypatch.setenv(variable(name), "")  # no path, and neither a number nor a word
    done = doctor()
    assert [name for name in names if f"fail  settings: {variable(name)}: must be " not in done.out] == []


def test_every_unknown_name_is_said_with_the_one_it_resembles(
    doctor: Callable[[], Run], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {table: {f"{each.name}x": 1 for each in fields(kind)} for table, kind in SCHEMAS.items()}
    configured(home, "calomel/calomel.toml", toml({**tables, "bakcend": {"url": "x"}}))
    (home / "project" / "calomel.toml").write_text(toml({**{name: tables[name] for name in TABLES}, "serve": {}}))
    monkeypatch.setenv("CALOMEL_PROT", "1")
    done = doctor()
    for table, values in tables.items():
        assert [name for name in values if f": {table}.{name}: unknown; did you mean " not in done.out] == []
    assert "calomel.toml: bakcend: unknown; did you mean backend?" in done.out
    assert "the workspace's calomel.toml: serve: belongs in your own calomel.toml" in done.out


MISSING = {
    "tls_cert": "tls-cert: cannot read /nowhere/tls_cert (No such file or directory)",
    "token_file": "the first `calomel serve` creates /nowhere/token_file",
    "upstream_key_file": "the key file /nowhere/upstream_key_file does not exist: create it",
    "model": "model: ",
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_file_of_the_server_is_named(
    doctor: Callable[[], Run], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(variable(name), f"/nowhere/{name}")
    if name == "tls_cert":
        monkeypatch.setenv(variable("tls_key"), "/nowhere/tls_key")
    if name == "upstream_key_file":
        monkeypatch.setenv(variable("upstream"), "http://127.0.0.1:9")
    assert MISSING[name] in doctor().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('url = "http://127.0.0.1:9"\ntoken_file = "/nowhere/t"', "backend.token_file /nowhere/t does not exist"),
        ('upstream = "http://127.0.0.1:9"\nupstream_key_file = "/nowhere/k"', "the key file /nowhere/k does not exist"),
        ('model = "/nowhere/m"', "/nowhere/m/config.json does not exist"),
        ('model = "nobody/has-it"', "found no model nobody/has-it"),
        ('model = "m.gguf"', "m.gguf"),
        ('upstream = "http://127.0.0.1:9"\nmodel = "x"', "backend.model and backend.upstream are both set"),
        ('url = "http://example.com"', "would send your code unencrypted"),
        ('url = "no address"', "backend.url is not an address such as"),
        ('upstream = "ftp://127.0.0.1"', "backend.upstream is not an address such as"),
        ('url = "http://127.0.0.1:9"', "no server answers at http://127.0.0.1:9 (backend.url in calomel.toml)"),
        ('upstream = "http://127.0.0.1:9"', "no server answers at http://127.0.0.1:9"),
        ('upstream = "http://[::1"', "backend.upstream is not an address such as"),
    ],
)
def test_a_model_that_editors_cannot_ask_fails(doctor: Callable[[], Run], home: Path, text: str, told: str) -> None:
    configured(home, "calomel/calomel.toml", f"[backend]\n{text}\n")
    done = doctor()
    assert done.status == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("fail  editors' model: ")]
    assert told in line


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"[", b"a" * 100_000, b"[serve]\nport = 1e999999\n", b"x = " + b"[" * 5000, b"\0"]
)
@pytest.mark.parametrize("where", [".config/calomel/calomel.toml", "project/calomel.toml"])
def test_a_file_that_is_no_settings_file_is_named(
    doctor: Callable[[], Run], home: Path, where: str, content: bytes
) -> None:
    (home / where).parent.mkdir(parents=True, exist_ok=True)
    (home / where).write_bytes(content)
    assert "calomel.toml: " in "".join(line for line in doctor().out.splitlines() if line[:4] in {"warn", "fail"})


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "device"])
def test_something_else_in_the_place_of_a_file_is_named(doctor: Callable[[], Run], home: Path, kind: str) -> None:
    path = configured(home, "calomel/calomel.toml")
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path if kind == "loop" else "/dev/zero")
    done = doctor()
    assert done.status == 1
    assert f"fail  settings: {path}: not readable" in done.out


def test_no_secret_is_printed(doctor: Callable[[], Run], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = toml(
        {
            "serve": {"token": "s3cret-1\n", "upstream": "http://u:s3cret-2@127.0.0.1:9", "upstream_key": "s3cret-3"},
            "backend": {"url": "http://u:s3cret-4@127.0.0.1:9/?key=s3cret-5", "token": "s3cret-6"},
        }
    )
    configured(home, "calomel/calomel.toml", text).chmod(0o600)
    monkeypatch.setenv("CALOMEL_UPSTREAM_KEY", "s3cret-7 é")
    configured(home, "Code/User/settings.json", '{"calomel.backend.url": "http://u:s3cret-8@127.0.0.1:9"}')
    done = doctor()
    assert done.status == 1
    assert "s3cret" not in done.out


def test_an_upstream_that_lists_a_model_and_has_no_answer_fails(
    doctor: Callable[[], Run], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME"):
        monkeypatch.setenv(name, str(home / name))
    play = Play()
    with served(ollama(play)) as url:
        path = home / "XDG_CONFIG_HOME" / "calomel" / "calomel.toml"
        path.parent.mkdir(parents=True)
        path.write_text(f'[backend]\nupstream = "{url}"\n')
        assert "fail" not in doctor().out
        play.failing = dict.fromkeys(("/api/generate", "/api/chat"), (500, {}))
        done = doctor()
    assert done.status == 1
    assert f"the server at {url} answered with an error (500): see its log" in done.out


SMI = "| NVIDIA-SMI 999.1   Driver Version: 999.1   CUDA Version: {} |"


@pytest.mark.parametrize(
    ("version", "built", "gpus", "driver", "device", "found", "advice"),
    [
        ("2.13.0+cpu", None, 0, "13.0", "cuda", "was built without CUDA", "{pip} torch==2.13.0+cu130 {index}cu130"),
        ("2.13.0+cpu", None, 0, "12.4", "cuda", "was built without CUDA", "{pip} torch==2.13.0+cu126 {index}cu126"),
        ("2.13.0+cpu", None, 0, "11.8", "cuda", "was built without CUDA", "install a newer NVIDIA driver, or use cpu"),
        ("2.13.0+cpu", None, 0, None, "cuda:9", "`nvidia-smi` shows no GPU", "use cpu; with an NVIDIA GPU, install"),
        ("2.13.0+cu130", "13.0", 0, None, "cuda", "driver is missing or does not work", "install or repair the driver"),
        ("2.13.0+cu130", "13.0", 0, "12.8", "cuda", "supports CUDA 12.8, not 13.0", "{pip} torch==2.13.0+cu126 "),
        ("2.13.0+cu130", "13.0", 0, "13.2", "cuda", "sees no GPU", "CUDA_VISIBLE_DEVICES"),
        ("2.13.0+cu130", "13.0", 1, "13.0", "cuda:9", "sees 1 GPU", "use cuda:0"),
        ("2.13.0+cu130", "13.0", 2, "13.0", "cuda:2", "sees 2 GPUs", "use cuda:0 to cuda:1"),
        ("2.13.0+cu126", "12.6", 1, "13.0", "cuda", "no kernel image", "{pip} torch==2.13.0+cu130 {index}cu130"),
        ("2.13.0+cu130", "13.0", 1, "13.0", "cuda", "no kernel image", "use cpu"),
        ("2.13.0+cpu", None, 0, None, "mps", "sees no Apple GPU", "use cpu"),
        ("2.13.0+cpu", None, 0, "13.0", "mps", "sees no Apple GPU", "use cuda, for the NVIDIA GPU"),
    ],
)
def test_a_device_that_does_not_work_is_named_with_the_command_that_mends_it(
    doctor: Callable[[], Run],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    built: str | None,
    gpus: int,
    driver: str | None,
    device: str,
    found: str,
    advice: str,
) -> None:
    def broken(*_: Any, **options: Any) -> Any:
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device\nmore")

    programs = home / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    if driver is not None:
        (programs / "nvidia-smi").write_text(f"#!/bin/sh\necho '{SMI.format(driver)}'\n")
        (programs / "nvidia-smi").chmod(0o755)
    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.setattr(torch.version, "cuda", built)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch, "zeros", broken)
    configured(home, "calomel/calomel.toml", toml({"serve": {"device": device}, "backend": {"device": device}}))
    done = doctor()
    command = advice.format(
        pip=f"{sys.executable} -m pip install", index="--index-url https://download.pytorch.org/whl/"
    )
    printed = done.out.splitlines()
    for subject in ("device", "editors' device"):
        (at,) = [at for at, line in enumerate(printed) if line.startswith(f"fail  {subject}: {device}: ")]
        assert found in printed[at]
        assert command in printed[at + 1]
    assert done.status == 1

from __future__ import annotations

import json
import os
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest

from calomel.workspace.settings import TABLES, BackendSettings, Settings, load_settings
from calomel.workspace.settings_reader import allowed, types_of


def problems(**sources: Any) -> list[str]:
    return [str(problem) for problem in load_settings(**sources)[1]]


def options(section: str, **values: Any) -> Settings:
    settings, found = load_settings(initialization_options={section: values})
    assert found == []
    return settings


def test_later_sources_win(tmp_path: Path) -> None:
    user, workspace = tmp_path / "user.toml", tmp_path / "workspace.toml"
    user.write_text('[suggest]\naggressiveness = "eager"\nmax_tokens = 32\nin_comments = false\n')
    workspace.write_text('[suggest]\naggressiveness = "quiet"\nmax_tokens = 16\n')
    settings, found = load_settings(
        user_toml=user,
        workspace_toml=workspace,
        initialization_options={"suggest": {"max_tokens": 24}},
        configuration={"suggest": {"max_tokens": None, "next_edit": False}},
    )
    assert found == []
    suggest = settings.suggest
    assert (suggest.aggressiveness, suggest.max_tokens) == ("quiet", 24)
    assert (suggest.in_comments, suggest.next_edit) == (False, False)


@pytest.mark.parametrize(
    ("section", "key", "value", "allowed"),
    [
        ("suggest", "aggressiveness", "loud", "quiet, balanced, eager or a number from 0.0 to 1.0"),
        ("suggest", "aggressiveness_by_language", "quiet", "a table of names, each quiet, balanced, eager or a number"),
        ("suggest", "aggressiveness_by_language", {"go": "loud"}, "quiet, balanced, eager or a number from 0.0 to 1.0"),
        ("suggest", "max_tokens", 0, "a whole number from 1 to 1024"),
        ("suggest", "debounce_seconds", float("nan"), "a number from 0.0 to 10.0"),
        ("suggest", "enabled", "yes", "true or false"),
        ("privacy", "ignore", "*.secret", "a list of strings"),
        ("backend", "upstream_format", "grpc", "auto, llama.cpp, ollama, vllm, openai, mercury"),
        ("backend", "upstream_fim", "gwen", "qwen, starcoder"),
        ("backend", "upstream_edit", "zeta", "zeta2, zeta2.1, sweep, sweep-v2"),
        ("log", "level", 3, "debug, info, warning, error"),
    ],
)
def test_a_wrong_value_is_said_by_name_and_left_at_its_default(
    section: str, key: str, value: Any, allowed: str
) -> None:
    settings, found = load_settings(initialization_options={section: {key: value}})
    assert settings == Settings()
    assert [problem.name for problem in found] == [f"{section}.{key}"]
    assert allowed in str(found[0])


def test_unknown_names_are_said_with_one_that_was_meant() -> None:
    given = {"sugest": {}, "suggest": {"enable": True, "x": 1}, "max_tokens": 3, "serve": {}}
    assert problems(configuration=given) == [
        "the editor's settings: sugest: unknown; did you mean suggest?",
        "the editor's settings: max_tokens: belongs in the table [suggest]",
        "the editor's settings: serve: belongs in your own calomel.toml",
        "the editor's settings: suggest.enable: unknown; did you mean enabled?",
        "the editor's settings: suggest.x: unknown; `calomel config reference` lists all settings",
    ]


def test_problems_never_repeat_a_value() -> None:
    secret = "s3cr3t-value"
    found = problems(initialization_options={"backend": {"token": [secret], "idle_minutes": secret}, "log": secret})
    assert len(found) == 3
    assert not any(secret in each for each in found)


def _other_value(kind: Any, default: Any) -> Any:
    """Something else than the default that the setting takes."""
    words, number, low, _ = allowed(kind)
    if isinstance(default, bool):
        return not default
    if isinstance(default, tuple):
        return ["192.168.1.5"]
    text = "cuda" if default == "cpu" else "http://127.0.0.1:9"
    return next(word for word in words if word != default) if words else text if number is None else low


@pytest.mark.parametrize(
    "line",
    [
        "[privacy]\nmask_secrets = false",
        "[privacy]\ngitignore = false",
        '[privacy]\nignore = ["!.env"]',
        "[suggest]\nmax_tokens = 512",
        "[workspace]\nindex_files = 100000",
        '[backend]\nmodel = "~nobody-of-this-name/model"',
    ],
)
def test_a_workspace_can_not_weaken_the_users_settings(tmp_path: Path, line: str) -> None:
    file = tmp_path / "calomel.toml"
    file.write_text(line)
    settings, found = load_settings(workspace_toml=file)
    assert settings == Settings()
    assert len(found) == 1
    assert load_settings(user_toml=file)[1] == []


@pytest.mark.parametrize(
    ("table", "name", "value"),
    [
        *((table, each.name, value)
          for table, kind in TABLES.items() for each in fields(kind) if each.metadata["user"]
          for value in [_other_value(types_of(kind)[each.name], each.default)]),
        ("privacy", "ignore", ["!.env"]), ("suggest", "max_tokens", 512), ("workspace", "index_files", 100_000),
    ],
)  # fmt: skip
def test_what_an_editor_answers_counts_as_a_workspaces_unless_the_editor_filters_it(
    table: str, name: str, value: Any
) -> None:
    settings, found = load_settings(configuration={table: {name: value}})
    assert (settings, [problem.name for problem in found]) == (Settings(), [f"{table}.{name}"])
    settings, found = load_settings(configuration={table: {name: value}}, filtered=True)
    assert settings != Settings()
    assert found == []
    # Helix and others send what the user configured a second time.
    own = {table: {name: value}}
    assert load_settings(initialization_options=own, configuration=own) == (settings, [])


@pytest.mark.parametrize("each", fields(BackendSettings), ids=lambda each: each.name)
def test_a_workspace_says_nothing_of_the_model_that_answers(tmp_path: Path, each: Field[Any]) -> None:
    file = tmp_path / "calomel.toml"
    value = _other_value(types_of(BackendSettings)[each.name], each.default)
    file.write_text(f"[backend]\n{each.name} = {json.dumps(value)}\n")
    file.chmod(0o600)
    assert load_settings(user_toml=file)[1] == []
    settings, found = load_settings(workspace_toml=file)
    assert (settings, [problem.name for problem in found]) == (Settings(), [f"backend.{each.name}"])
    assert found[0].message == "is ignored here, because a repository could set it: set it in your own calomel.toml"


def test_a_workspace_can_lower_limits_and_add_patterns(tmp_path: Path) -> None:
    user, workspace = tmp_path / "user.toml", tmp_path / "workspace.toml"
    user.write_text('[privacy]\nignore = ["*.a"]\n')
    workspace.write_text('[privacy]\nignore = ["*.b"]\n[suggest]\nmax_tokens = 8\ncontext_tokens = 1024\n')
    settings, found = load_settings(user_toml=user, workspace_toml=workspace)
    assert found == []
    assert settings.privacy.ignore == ("*.a", "*.b")
    assert (settings.suggest.max_tokens, settings.suggest.context_tokens) == (8, 1024)


@pytest.mark.parametrize("content", [b"not = = toml", b"\xff\xfe", b"x" * 300_000])
def test_a_broken_file_is_said_and_the_rest_goes_on(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "calomel.toml"
    file.write_bytes(content)
    settings, found = load_settings(user_toml=file, configuration={"suggest": {"enabled": False}})
    assert len(found) == 1
    assert not settings.suggest.enabled


def test_languages_have_settings_of_their_own() -> None:
    only = options("suggest", languages={"*": False, "python": True}).suggest
    assert (only.language_enabled("python"), only.language_enabled("go")) == (True, False)
    given = {"python": 1, "go": 0.25, "*": "eager"}
    assert options("suggest", aggressiveness_by_language=given).suggest.aggressiveness_by_language == given


def _link(file: Path, target: str) -> None:
    file.symlink_to(target)


def _deep(file: Path) -> None:
    file.write_text("a = " + "[" * 5_000)


def _deep_tables(file: Path) -> None:
    file.write_text("a = " + "{a=" * 5_000)


def _loop(file: Path) -> None:
    file.symlink_to(file)


@pytest.mark.parametrize(
    "make",
    [
        lambda file: _link(file, "/dev/zero"),
        lambda file: _link(file, "/dev/tty"),
        lambda file: _link(file, "/etc/passwd"),
        lambda file: _link(file, "../other.toml"),
        _loop,
        os.mkfifo,
        Path.mkdir,
        _deep,
        _deep_tables,
        lambda file: file.write_text("#" * 70_000),
        lambda file: file.write_text("[privacy]\nignore = [" + '"a",' * 5_000 + "]"),
    ],
    ids=["device", "terminal", "system", "outside", "loop", "pipe", "folder", "deep", "deep tables", "large", "many"],
)
def test_whatever_a_repository_calls_its_settings_the_others_are_read(tmp_path: Path, make: Any) -> None:
    (tmp_path / "other.toml").write_text("[suggest]\nenabled = false\n")
    folder = tmp_path / "repository"
    folder.mkdir()
    make(folder / "calomel.toml")
    settings, found = load_settings(workspace_toml=folder / "calomel.toml", configuration={"log": {"level": "debug"}})
    assert (settings.log.level, settings.suggest.enabled) == ("debug", True)
    assert len(found) == 1


def test_a_link_within_the_repository_is_followed(tmp_path: Path) -> None:
    (tmp_path / "shared.toml").write_text("[suggest]\nenabled = false\n")
    (tmp_path / "calomel.toml").symlink_to("shared.toml")
    settings, found = load_settings(workspace_toml=tmp_path / "calomel.toml")
    assert (settings.suggest.enabled, found) == (False, [])


def test_of_a_file_that_everybody_may_write_only_what_hides_more_counts(tmp_path: Path) -> None:
    file = tmp_path / "calomel.toml"
    file.write_text('[privacy]\nignore = ["*.a"]\n[suggest]\nenabled = false\n')
    file.chmod(0o666)
    settings, found = load_settings(workspace_toml=file)
    assert (settings.privacy.ignore, settings.suggest.enabled) == (("*.a",), True)
    assert "chmod" in str(found[0])
    settings, found = load_settings(user_toml=file)
    assert settings == Settings()
    assert "chmod" in str(found[0])


def test_a_token_that_others_can_read_is_not_used_and_the_rest_is(tmp_path: Path) -> None:
    file = tmp_path / "calomel.toml"
    file.write_text('[privacy]\nignore = ["*.a"]\n[backend]\nurl = "https://example.com"\ntoken = "t"\n')
    file.chmod(0o644)
    settings, found = load_settings(user_toml=file)
    assert (settings.privacy.ignore, settings.backend) == (("*.a",), BackendSettings())
    assert "use `chmod 600` or backend.token_file" in str(found[0])
    file.chmod(0o600)
    settings, found = load_settings(user_toml=file)
    assert (settings.backend.token, found) == ("t", [])


def test_a_table_by_its_earlier_name_is_read_with_one_message(tmp_path: Path) -> None:
    file = tmp_path / "calomel.toml"
    file.write_text('[server]\nmodel = "mine"\nthreads = 2\n[backend]\nthreads = 3\n')
    settings, found = load_settings(user_toml=file, initialization_options={"server": {"idle_minutes": 2.0}})
    assert (settings.backend.model, settings.backend.threads, settings.backend.idle_minutes) == (Path("mine"), 3, 2.0)
    message = "server: is now called backend: rename the table"
    assert [str(each) for each in found] == [f"calomel.toml: {message}", f"initializationOptions: {message}"]
    file.write_text('[server]\ntoken = "t"\n')
    file.chmod(0o644)
    settings, found = load_settings(user_toml=file)
    assert (settings.backend.token, len(found)) == (None, 2)


def test_a_thousand_mistakes_are_told_in_a_few_messages() -> None:
    assert len(problems(configuration={f"x{number}": {} for number in range(1_000)})) <= 20

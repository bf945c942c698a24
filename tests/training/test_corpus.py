"""A corpus out of packages and repositories: what comes in, what stays out, and what is said of it."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tests.training.sources import GPL, MIT, Forge, Registry, python_source

from calomel.training.corpus import packages as archives
from calomel.training.corpus.build import CorpusConfig, build_corpus
from calomel.training.corpus.cleaning import (
    MAX_BYTES,
    MeasuringData,
    is_test,
    path_fault,
    read_measuring_data,
    text_fault,
)
from calomel.training.corpus.licenses import choose, header_fault, read_license
from calomel.training.corpus.packages import (
    ArchiveError,
    LicenseError,
    Member,
    PackageListError,
    load_packages,
    read_members,
)
from calomel.training.corpus.repositories import DEFAULT_REPOSITORIES, fetch_clone, git, load_repositories
from calomel.training.corpus.shards import SourceFile, read_shard

MakeConfig = Callable[..., CorpusConfig]


def paths(config: CorpusConfig) -> set[str]:
    return {file.path for file in train(config)}


def test_a_refused_license_leaves_the_package_out_and_says_why(registry: Registry, config: MakeConfig) -> None:
    registry.wheel("copyleft", {"a.py": python_source("a")}, "GPL-3.0-only")
    registry.tgz("unknown", {"b.js": python_source("b")}, license_=None)
    registry.wheel(
        "fine", {"c.py": python_source("c"), "d.py": "# SPDX-License-Identifier: LGPL-2.1\n" + python_source("d")}
    )
    made = config()
    summary = build_corpus(made)
    assert paths(made) == {"c.py"}
    assert set(summary.refused) == {"pypi/copyleft@1", "npm/unknown@1"}
    assert summary.dropped["license"] == 1
    assert "copyleft" not in (made.out / "NOTICE").read_text()


def test_a_failed_download_is_named_and_the_rest_goes_on(registry: Registry, forge: Forge, config: MakeConfig) -> None:
    registry.entries.append('[[package]]\necosystem = "pypi"\nname = "gone"\nversion = "1"\n')
    registry.wheel("here", {"a.py": python_source("a")})
    forge.commit("o/moved", {"LICENSE": MIT})
    forge.entry("o/moved", "0" * 40)
    forge.entry("o/gone", "1" * 40)
    made = config(repositories=forge.list)
    failed = build_corpus(made).failed
    assert failed["pypi/gone@1"] == "gone==1: no such package"
    assert {key.partition("@")[0] for key in failed} == {"pypi/gone", "git/o/moved", "git/o/gone"}
    assert paths(made) == {"a.py"}


def test_copies_and_near_copies_are_kept_once(registry: Registry, forge: Forge, config: MakeConfig) -> None:
    text = python_source("a")
    near = text + "extra_line = something_else(1)\n"
    registry.wheel("first", {"a.py": text})
    registry.wheel("second", {"b.py": text.replace("    ", "\t"), "c.py": near})
    forge.entry(
        "o/released", forge.commit("o/released", {"LICENSE": MIT, "d.py": near, "own.py": python_source("own")})
    )
    made = config(repositories=forge.list)
    summary = build_corpus(made)
    assert paths(made) == {"a.py", "own.py"}
    # The file of the repository is a copy of what was dropped, or near to what was kept.
    assert summary.dropped["exact duplicate"] + summary.dropped["near duplicate"] == 3


def test_the_same_config_gives_the_same_bytes_and_another_seed_another_order(
    registry: Registry, config: MakeConfig, tmp_path: Path
) -> None:
    registry.wheel("many", {f"m{i}.py": python_source(f"m{i}") for i in range(12)})
    shards = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        build_corpus(config(out=tmp_path / name, seed=seed))
        shards.append((tmp_path / name / "train.jsonl.zst").read_bytes())
    assert shards[0] == shards[1]
    assert shards[0] != shards[2]


def test_a_second_build_downloads_nothing_and_a_changed_archive_is_refused(
    registry: Registry, config: MakeConfig
) -> None:
    registry.wheel("pinned", {"a.py": python_source("a")})
    made = config()
    build_corpus(made)
    build_corpus(made)
    assert registry.downloads == ["pinned==1"]
    cached = made.cache / "pypi" / "pinned-1.whl"
    cached.write_bytes(cached.read_bytes() + b"tampered")
    assert "cached" in build_corpus(made).failed["pypi/pinned@1"]


# The sources of the measuring data.
MEASURED = {
    *("reactivex/rxjs", "microsoft/vscode", "microsoft/vscode-copilot-chat", "josephg/editing-traces"),
    *("openai/human-eval", "openai/human-eval-infilling"),
}


def test_files_are_those_of_the_commit_in_every_language_and_credited(forge: Forge, config: MakeConfig) -> None:
    pinned = forge.commit(
        "o/tool",
        {"LICENSE": MIT, "a.py": python_source("a"), "b/c.go": python_source("c"), "x.txt": python_source("x")},
    )
    forge.commit("o/tool", {"later.py": python_source("later")})
    forge.entry("o/tool", pinned)
    made = config(repositories=forge.list)
    summary = build_corpus(made)
    found = {(file.ecosystem, file.package, file.language, file.path, file.license) for file in train(made)}
    assert found == {("git", "o/tool", "python", "a.py", "MIT"), ("git", "o/tool", "go", "b/c.go", "MIT")}
    notice = (made.out / "NOTICE").read_text()
    assert "https://example.com/o/tool.git" in notice
    assert pinned in notice
    assert summary.train["by_source"]["git/o/tool"]["files"] == 2


def test_links_and_what_a_repository_did_not_write_are_left_out(forge: Forge, config: MakeConfig) -> None:
    forge.commit("o/tool", {"LICENSE": MIT})
    (forge.folder / "o/tool.git/link.py").symlink_to("/etc/passwd")
    files = {"a.py": python_source("a"), "vendor/b.go": python_source("b"), "web/dist/c.js": python_source("c")}
    forge.entry("o/tool", forge.commit("o/tool", files))
    made = config(repositories=forge.list, packages=None)
    summary = build_corpus(made)
    assert paths(made) == {"a.py"}
    assert (summary.dropped["vendored"], summary.dropped["build output"]) == (1, 1)


def test_a_repository_is_cloned_once_with_its_history(forge: Forge, tmp_path: Path) -> None:
    first = forge.commit("o/tool", {"LICENSE": MIT})
    forge.entry("o/tool", forge.commit("o/tool", {"a.py": "a = 1\n"}))
    (repository,) = load_repositories(forge.list)
    clone = fetch_clone(tmp_path / "cache", repository)
    shutil.rmtree(forge.folder / "o")
    assert fetch_clone(tmp_path / "cache", repository) == clone
    assert first in git(clone, "rev-list", repository.commit).decode()
    assert not (clone / "hooks").exists()


def test_the_checked_in_license_decides(forge: Forge, config: MakeConfig) -> None:
    text = {"a.py": python_source("a")}
    forge.entry("o/copyleft", forge.commit("o/copyleft", text | {"COPYING": GPL}))
    forge.entry("o/other", forge.commit("o/other", text | {"LICENSE": MIT}), "Apache-2.0")
    forge.entry("o/none", forge.commit("o/none", text))
    forge.entry(
        "o/parts",
        forge.commit(
            "o/parts",
            {"LICENSE-MIT": MIT, "b.py": python_source("b"), "ee/LICENSE": "Ask us.\n", "ee/c.py": python_source("c")},
        ),
    )
    made = config(repositories=forge.list)
    summary = build_corpus(made)
    assert {key.partition("@")[0] for key in summary.refused} == {"git/o/copyleft", "git/o/other", "git/o/none"}
    assert [file.path for file in train(made)] == ["b.py"]
    assert summary.dropped["license"] == 1


def test_held_out_repositories_and_their_near_copies_stay_out_of_training(
    forge: Forge, registry: Registry, config: MakeConfig
) -> None:
    text = python_source("measured", functions=10)
    half = python_source("measured", functions=6) + python_source("other", functions=6)
    registry.wheel("trainer", {"copy.py": text, "own.py": python_source("own")})
    forge.entry("o/trainer", forge.commit("o/trainer", {"LICENSE": MIT, "half.py": half}))
    forge.entry("o/measured", forge.commit("o/measured", {"LICENSE": MIT, "m.py": text}), held_out=True)
    made = config(repositories=forge.list)
    summary = build_corpus(made)
    assert [file.path for file in train(made)] == ["own.py"]
    assert [file.path for file in read_shard(made.out / "heldout.jsonl.zst")] == ["m.py"]
    assert summary.dropped["held-out duplicate"] == 2
    notice = (made.out / "NOTICE.heldout").read_text()
    assert "o/measured" in notice
    assert "trainer" not in notice


def test_what_is_trained_on_measured_on_and_fitted_on_is_kept_apart() -> None:
    listed = load_repositories()
    assert sum(repository.held_out for repository in listed) == 8
    names = {repository.name.lower() for repository in listed}
    assert not names & MEASURED
    fitted_on = load_repositories(DEFAULT_REPOSITORIES.with_name("calibration.toml"))
    assert len(fitted_on) == 12
    assert not names & {repository.name.lower() for repository in fitted_on}


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    folder = tmp_path / "registry"
    folder.mkdir()
    made = Registry(folder)
    monkeypatch.setattr("calomel.training.corpus.packages.run_client", made.run)
    return made


@pytest.fixture
def config(tmp_path: Path, registry: Registry) -> MakeConfig:
    def make(**changes: object) -> CorpusConfig:
        packages = tmp_path / "packages.toml"
        packages.write_text("\n".join(registry.entries))
        data = tmp_path / "data"
        data.mkdir(exist_ok=True)
        places = {"out": tmp_path / "out", "cache": tmp_path / "cache", "data": data}
        settings = places | {"packages": packages, "repositories": None, "lock": tmp_path / "lock.json"} | changes
        return CorpusConfig(**settings)  # type: ignore[arg-type]

    return make


def train(config: CorpusConfig) -> list[SourceFile]:
    return list(read_shard(config.out / "train.jsonl.zst"))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('[[package]]\necosystem = "pypi"\nname = "--index-url"\nversion = "1"', "name"),
        ('[[package]]\necosystem = "cpan"\nname = "x"\nversion = "1"', "cpan"),
        ('[[repository]]\nurl = "https://e.com/--upload-pack/x.git"\ncommit = "{0}"\nlicense = "MIT"', "url"),
        ('[[repository]]\nurl = "https://e.com/o/x.git"\ncommit = "main"\nlicense = "MIT"', "commit"),
        ('[[repository]]\nurl = "https://e.com/o/x.git"\ncommit = "{0}"\nlicense = "GPL-3.0-only"', "not allowed"),
    ],
)
def test_a_bad_entry_of_a_list_is_an_error(tmp_path: Path, entry: str, message: str) -> None:
    path = tmp_path / "list.toml"
    path.write_text(entry.format("0" * 40) + "\n")
    with pytest.raises(PackageListError, match=message):
        (load_packages if "[[package]]" in entry else load_repositories)(path)


GOOD = "".join(f"value_{chr(97 + i)} = compute(first, second)\n" for i in range(20))


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("pip/_vendor/six.py", "vendored"),
        ("a/node_modules/b.js", "vendored"),
        ("dist/x.min.js", "bundled"),
        ("api/service.pb.go", "generated"),
    ],
)
def test_paths_that_rule_a_file_out(path: str, fault: str) -> None:
    assert path_fault("pkg/module.py") is None
    assert path_fault(path) == fault


@pytest.mark.parametrize(
    ("path", "content", "fault"),
    [
        ("a.py", b"# padding\n" * MAX_BYTES, "too large"),
        ("a.py", b"# caf\xe9\n" + GOOD.encode(), "not UTF-8"),
        ("a.go", b"// Code generated by stringer. DO NOT EDIT.\n" + GOOD.encode(), "generated"),
        ("a.js", b"let a=b;" * 50, "minified"),
        ("a.js", GOOD.encode() + b"x" * 1001, "minified"),
        ("a.py", "значение = 'текст'\n".encode() * 20, "not ASCII"),
        ("a.py", GOOD.encode() + b"-----BEGIN RSA " + b"PRIVATE KEY-----\n", "secret"),
        ("a.py", GOOD.encode() + b"key = 'AKIA" + b"ABCDEFGHIJKLMNOP'\n", "secret"),
    ],
)
def test_content_that_rules_a_file_out(path: str, content: bytes, fault: str) -> None:
    assert text_fault("pkg/module.py", GOOD.encode()) is None
    assert text_fault(path, content) == fault


@pytest.mark.parametrize("path", ["tests/a.py", "pkg/test_a.py", "a_test.go", "a.spec.ts", "conftest.py"])
def test_tests_are_told_by_their_path(path: str) -> None:
    assert is_test(path)
    assert not is_test("pkg/contest.py")


LINES = [f"let reading_{word} = sensor.measure_everything_about({word});" for word in ("one", "two", "three", "four")]


@pytest.fixture(params=["trace.json.gz", "trace.jsonl.zst"])
def measuring(tmp_path: Path, request: pytest.FixtureRequest) -> MeasuringData:
    packed = gzip.compress if request.param.endswith(".gz") else zstandard.compress
    (tmp_path / request.param).write_bytes(packed(json.dumps({"endContent": "\n".join(LINES)}).encode()))
    task = {
        "prompt": "def has_close_elements(numbers: List[float], threshold: float) -> bool:\n",
        "canonical_solution": "",
    }
    (tmp_path / "HumanEval.jsonl.gz").write_bytes(gzip.compress(json.dumps(task).encode() + b"\n"))
    assert read_measuring_data(tmp_path / "absent") is None
    read = read_measuring_data(tmp_path)
    assert read is not None
    return read


def test_three_shared_lines_are_too_many(measuring: MeasuringData) -> None:
    reindented = "\n".join(f"        {line}" for line in LINES)
    assert measuring.fault(reindented) == "contaminated"
    assert measuring.fault("\n".join(LINES[:2])) is measuring.fault("\n".join(LINES[:1] * 5)) is None


def test_a_benchmark_function_is_known_by_its_signature_whatever_its_types(measuring: MeasuringData) -> None:
    assert measuring.fault("def has_close_elements(numbers, threshold=0.1):\n    pass\n") == "contaminated"
    assert measuring.fault("def has_close_elements(self, numbers):\n    pass\n") is None


BSD3 = (
    "Redistribution and use in source and binary forms, with or without modification, are permitted.\n"
    "Neither the name of the holder nor the names of its contributors may be used.\n"
)


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("MIT", "MIT"),
        ("MIT OR GPL-3.0-only", "MIT"),
        ("(GPL-2.0-only OR Apache-2.0) AND ISC", "Apache-2.0 AND ISC"),
    ],
)
def test_an_expression_passes_by_its_allowed_side(expression: str, chosen: str) -> None:
    assert choose(expression) == chosen


@pytest.mark.parametrize(
    "expression",
    ["", "GPL-3.0-only", "MIT AND GPL-2.0-only", "MPL-2.0", "UNLICENSED", "SEE LICENSE IN x", "BSD", "(MIT", "MIT OR"],
)
def test_an_expression_that_is_not_known_to_be_allowed_is_refused(expression: str) -> None:
    with pytest.raises(LicenseError):
        choose(expression)


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        ("# SPDX-License-Identifier: GPL-3.0-or-later\n", "license"),
        ("# This file is free software under the GNU General Public License.\n", "license"),
        ("// Licensed under the MPL, version 2.0\n", "license"),
        ("# SPDX-License-Identifier: MIT\n", None),
        ("// Copyright 2020. All rights reserved. Use is governed by a BSD-style license.\n", None),
    ],
)
def test_a_file_header_under_another_license_is_refused(header: str, fault: str | None) -> None:
    assert header_fault(header) == fault


def write_tgz(path: Path, *entries: tarfile.TarInfo) -> Path:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for entry in entries:
            tar.addfile(entry, io.BytesIO(b"x" * entry.size))
    path.write_bytes(gzip.compress(raw.getvalue()))
    return path


def regular(name: str, size: int = 3) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    return info


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil.py", "a/../../evil.py", "..\\evil.py", "C:/evil.py"])
def test_a_path_that_leaves_the_archive_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArchiveError, match="unsafe path"):
        list(read_members(write_tgz(tmp_path / "x.tgz", regular(name))))
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr(name, "text")
    with pytest.raises(ArchiveError, match="unsafe path"):
        list(read_members(tmp_path / "x.whl"))


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_TAR_BYTES", 15)
    with pytest.raises(ArchiveError, match="unpacks to more"):
        list(read_members(write_tgz(tmp_path / "x.tgz", regular("a.js", 10), regular("b.js", 10))))


@pytest.mark.parametrize("suffix", [".whl", ".tgz"])
def test_damaged_archives_are_reported_by_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(b"not an archive at all")
    with pytest.raises(ArchiveError):
        list(read_members(path))


@pytest.mark.parametrize(
    ("metadata", "license_file"),
    [
        ("Classifier: License :: OSI Approved :: BSD License\n", ""),
        ("", BSD3),
        ("License-Expression: MIT\n", "GNU GENERAL PUBLIC LICENSE\nVersion 3\n"),
        (
            "".join(
                f"Classifier: License :: OSI Approved :: {name}\n"
                for name in ("MIT License", "GNU General Public License v3 (GPLv3)")
            ),
            "",
        ),
    ],
    ids=["a vague classifier", "nothing declared", "a copyleft file", "one of two classifiers"],
)
def test_a_package_that_is_not_known_to_be_allowed_is_refused(metadata: str, license_file: str) -> None:
    members = [Member("x-1.dist-info/METADATA", f"Name: x\n{metadata}".encode())]
    if license_file:
        members.append(Member("x-1.dist-info/licenses/LICENSE", license_file.encode()))

    with pytest.raises(LicenseError):
        read_license("pypi", members)


def test_links_are_not_followed(tmp_path: Path) -> None:
    link = tarfile.TarInfo("package/passwd.js")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    archive = write_tgz(tmp_path / "x.tgz", link, regular("package/a.js"))
    assert [member.path for member in read_members(archive)] == ["package/a.js"]
    info = zipfile.ZipInfo("link.py")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr(info, "/etc/passwd")
    assert list(read_members(tmp_path / "x.whl")) == []

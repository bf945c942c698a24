from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from calomel.training.corpus.build import CorpusConfig, build_corpus
from calomel.training.corpus.packages import DEFAULT_LIST, MAX_PACKAGES, PackageListError, load_packages
from calomel.training.corpus.shards import SourceFile, read_shard

if TYPE_CHECKING:
    from tests.training.corpus.conftest import Registry

    MakeConfig = Callable[..., CorpusConfig]
    MakeSource = Callable[..., str]


def shard(config: CorpusConfig, name: str) -> list[SourceFile]:
    return list(read_shard(config.out / name))


def paths(config: CorpusConfig, name: str = "train.jsonl.zst") -> set[str]:
    return {file.path for file in shard(config, name)}


def test_each_ecosystem_gives_its_own_languages(registry: Registry, config: MakeConfig, source: MakeSource) -> None:
    script = source("script").replace("def ", "function ")
    registry.wheel("wheel", {"pkg/a.py": source("a"), "pkg/static/app.js": script})
    registry.tgz("tarball", {"lib/b.js": script, "tool.py": source("tool")})
    made = config()
    summary = build_corpus(made)
    found = {(file.language, file.path, file.license) for file in shard(made, "train.jsonl.zst")}
    assert found == {
        ("python", "pkg/a.py", "MIT"),
        ("javascript", "lib/b.js", "MIT"),
    }
    assert summary.train["total"]["files"] == 2
    assert summary.train["by_language"]["python"]["bytes"] == len(source("a"))


def test_a_refused_license_leaves_the_package_out_and_says_why(
    registry: Registry, config: MakeConfig, source: MakeSource
) -> None:
    registry.wheel("copyleft", {"a.py": source("a")}, "GPL-3.0-only")
    registry.tgz("unknown", {"b.js": source("b")}, license_=None)
    registry.wheel("fine", {"c.py": source("c"), "d.py": "# SPDX-License-Identifier: LGPL-2.1\n" + source("d")})
    made = config()
    summary = build_corpus(made)
    assert paths(made) == {"c.py"}
    assert set(summary.refused) == {"pypi/copyleft@1", "npm/unknown@1"}
    assert summary.dropped["license"] == 1
    assert "copyleft" not in (made.out / "NOTICE").read_text()


def test_a_failed_download_is_named_and_the_rest_goes_on(
    registry: Registry, config: MakeConfig, source: MakeSource
) -> None:
    registry.missing("gone")
    registry.wheel("here", {"a.py": source("a")})
    made = config()
    summary = build_corpus(made)
    assert summary.failed == {"pypi/gone@1": "gone==1: no such package"}
    assert paths(made) == {"a.py"}


def test_copies_and_near_copies_are_kept_once(registry: Registry, config: MakeConfig, source: MakeSource) -> None:
    text = source("a")
    registry.wheel("first", {"a.py": text})
    registry.wheel("second", {"b.py": text.replace("    ", "\t"), "c.py": text + "extra_line = something_else(1)\n"})
    made = config()
    summary = build_corpus(made)
    assert paths(made) == {"a.py"}
    assert (summary.dropped["exact duplicate"], summary.dropped["near duplicate"]) == (1, 1)


def test_no_source_exceeds_its_share_of_a_language_unless_it_is_small(
    registry: Registry, config: MakeConfig, source: MakeSource
) -> None:
    registry.wheel("large", {f"large{i}.py": source(f"large{i}") for i in range(9)} | {"test_x.py": source("tests")})
    registry.wheel("small", {"small.py": source("small")})
    script = {f"js{i}.js": source(f"js{i}") for i in range(4)}
    registry.tgz("script", script)
    size = len(source("large0"))
    made = config(source_share=0.5, source_bytes=size * 2, test_share=0.15)
    summary = build_corpus(made)
    kept = paths(made)
    assert summary.train["by_source"]["pypi/large"]["bytes"] <= 0.5 * 11 * size
    assert len([path for path in kept if path.startswith("large")]) == 5
    assert "small.py" in kept
    assert "test_x.py" not in kept
    assert len(kept & script.keys()) == 2
    assert summary.dropped["over source share"] == 7


def test_tests_and_declarations_have_their_share_of_a_source(
    registry: Registry, config: MakeConfig, source: MakeSource
) -> None:
    modules = {f"m{i}.py": source(f"m{i}") for i in range(10)}
    registry.wheel("tested", modules | {f"tests/t{i}.py": source(f"t{i}") for i in range(10)})
    made = config(test_share=0.2)
    summary = build_corpus(made)
    kept = paths(made)
    assert modules.keys() <= kept
    assert len(kept) == 14
    assert summary.dropped["over test share"] == 6


def test_the_same_config_gives_the_same_bytes_and_another_seed_another_order(
    registry: Registry, config: MakeConfig, source: MakeSource, tmp_path: Path
) -> None:
    registry.wheel("many", {f"m{i}.py": source(f"m{i}") for i in range(12)})
    shards = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        build_corpus(config(out=tmp_path / name, seed=seed))
        shards.append((tmp_path / name / "train.jsonl.zst").read_bytes())
    assert shards[0] == shards[1]
    assert shards[0] != shards[2]


def test_a_second_build_downloads_nothing_and_a_changed_archive_is_refused(
    registry: Registry, config: MakeConfig, source: MakeSource
) -> None:
    registry.wheel("pinned", {"a.py": source("a")})
    made = config()
    build_corpus(made)
    build_corpus(made)
    assert registry.downloads == ["pinned==1"]
    cached = made.cache / "pypi" / "pinned-1.whl"
    cached.write_bytes(cached.read_bytes() + b"tampered")
    assert "cached" in build_corpus(made).failed["pypi/pinned@1"]


def test_absent_measuring_data_is_a_warning_in_the_summary(
    registry: Registry, config: MakeConfig, source: MakeSource, tmp_path: Path
) -> None:
    registry.wheel("any", {"a.py": source("a")})
    told: list[str] = []
    made = config(data=tmp_path / "absent")
    build_corpus(made, report=told.append)
    written = json.loads((made.out / "summary.json").read_text())
    assert written["decontaminated"] is False
    assert "NOT DECONTAMINATED" in written["warnings"][0]
    assert told[0].startswith("WARNING")


def test_build_output_is_dropped_where_the_sources_are_shipped(
    registry: Registry, config: MakeConfig, source: MakeSource
) -> None:
    sources = {f"src/{i}.ts": source(f"s{i}") for i in range(3)}
    registry.tgz("typed", sources | {"dist/index.js": source("built"), "_esm/index.js": source("built2")})
    made = config()
    build_corpus(made)
    assert paths(made) == set(sources)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('ecosystem = "pypi"\nname = "--index-url"\nversion = "1"', "name"),
        ('ecosystem = "pypi"\nname = "x"', "version"),
        ('ecosystem = "cpan"\nname = "x"\nversion = "1"', "cpan"),
    ],
)
def test_a_bad_entry_of_the_list_is_an_error(tmp_path: Path, entry: str, message: str) -> None:
    path = tmp_path / "packages.toml"
    path.write_text(f"[[package]]\n{entry}\n")
    with pytest.raises(PackageListError, match=message):
        load_packages(path)


def test_the_list_that_ships_is_short_and_pinned() -> None:
    packages = load_packages(DEFAULT_LIST)
    assert len(packages) <= MAX_PACKAGES
    assert {package.ecosystem for package in packages} == {"pypi", "npm"}

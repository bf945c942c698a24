from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calomel.training.corpus import build
from calomel.training.corpus.build import CorpusConfig
from calomel.training.corpus.packages import PackageListError

Run = Callable[..., Any]


def test_options_reach_the_builder_and_the_rest_keeps_its_default(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[CorpusConfig] = []
    monkeypatch.setattr(build, "build_corpus", lambda config, report: calls.append(config))
    assert run("corpus", "--out", tmp_path, "--cache", "kept").status == 0
    assert [CorpusConfig(out=tmp_path, cache=Path("kept"))] == calls


def test_wrong_package_list_becomes_one_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: CorpusConfig, report: object) -> None:
        raise PackageListError("entry 3 has no field 'license'")

    monkeypatch.setattr(build, "build_corpus", refuse)
    result = run("corpus", "--out", tmp_path)
    assert (result.status, result.err) == (1, "calomel: entry 3 has no field 'license'\n")

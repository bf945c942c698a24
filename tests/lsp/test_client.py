from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from calomel.lsp.client import local_path, own_options, read_client


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b.py", "/a/b.py"),
        ("file://localhost/a", "/a"),
        ("file:///a%20b/%C3%A9", "/a b/é"),
        ("file:///a?x#y", "/a"),
        ("file://server/share", None),
        ("file:///a%00b", None),
        ("file://", None),
        ("untitled:Untitled-1", None),
        ("http://a/b", None),
        (None, None),
        (5, None),
    ],
)
def test_only_uris_of_local_files_have_a_path(uri: Any, path: str | None) -> None:
    assert local_path(uri) == (None if path is None else Path(path))


def test_folders_come_from_the_newest_field_that_is_filled() -> None:
    folder = {"uri": "file:///one", "name": "one"}
    assert read_client({"workspaceFolders": [folder, folder], "rootUri": "file:///two"}).folders == (Path("/one"),)
    assert read_client({"workspaceFolders": None, "rootUri": "file:///two"}).folders == (Path("/two"),)
    assert read_client({"rootUri": None, "rootPath": "/three"}).folders == (Path("/three"),)
    assert read_client({"workspaceFolders": [], "rootUri": None, "rootPath": None}).folders == ()


def test_our_options_stand_under_our_name_or_beside_each_other() -> None:
    section = {"suggest": {"enabled": False}, "extensions": True}
    assert own_options({"calomel": section, "suggest": {}}) == section
    assert own_options({**section, "editorInfo": {}}) == section
    assert own_options({"calomel": 5}) == {}

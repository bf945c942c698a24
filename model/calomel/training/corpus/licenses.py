"""Licence expressions checked against the allow-list, and where packages declare them; anything unknown is refused.

A package's licence is in its own metadata: wheel METADATA, package.json. A repository's is in files of its own.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

from calomel.training.corpus.packages import Ecosystem, LicenseError, Member

_TABLE = tomllib.loads(Path(__file__).with_name("licenses.toml").read_text(encoding="utf-8"))
# Spellings in lower case, and the SPDX identifiers that they mean.
_SPELLINGS: dict[str, str] = {spelling: spdx for spdx, each in _TABLE["spellings"].items() for spelling in each}
ALLOWED = frozenset(_TABLE["spellings"])

# An exception only adds permissions; this is the one met in practice (Rust, LLVM).
_EXCEPTION = re.compile(r"\s+WITH\s+LLVM-exception\b", re.IGNORECASE)
_INNERMOST = re.compile(r"\(([^()]*)\)")


def canonical(name: str) -> str | None:
    """Return the SPDX identifier that a licence's name means, or None if it is not allowed."""
    name = " ".join(name.split())
    if name in ALLOWED:
        return name
    return _SPELLINGS.get(name.lower())


def choose(expression: str) -> str:
    """Return an SPDX expression with each OR replaced by its first allowed side.

    `MIT OR GPL-3.0-only` gives `MIT`. Raises LicenseError if a needed part is not allowed, or if the expression does
    not parse.
    """
    rest = _EXCEPTION.sub("", expression)
    while inner := _INNERMOST.search(rest):
        rest = f"{rest[: inner.start()]}{_first_allowed(inner[1])}{rest[inner.end() :]}"
    chosen = canonical(expression) or _first_allowed(rest)
    if chosen == _REFUSED:
        raise LicenseError(f"licence not allowed: {expression!r}")
    return chosen


# Not the name of any licence.
_REFUSED = "NONE"


def _first_allowed(expression: str) -> str:
    """Return the first side of an OR whose licences are all allowed."""
    for side in re.split(r"\s+OR\s+", expression, flags=re.IGNORECASE):
        names = [canonical(name) for name in re.split(r"\s+AND\s+", side, flags=re.IGNORECASE)]
        if None not in names:
            return " AND ".join(dict.fromkeys(name for name in names if name))
    return _REFUSED


_COPYLEFT_TITLE = re.compile(
    r"GNU (?:(?:LESSER|AFFERO|LIBRARY) )?GENERAL PUBLIC LICENSE|Mozilla Public License"
    r"|Eclipse Public License|Business Source License|Server Side Public License"
    r"|Elastic License|Creative Commons|Commons Clause|Common Development and Distribution",
    re.IGNORECASE,
)
_TITLE_CHARS = 600


def recognise_text(text: str) -> str | None:
    """Return the allowed licence that a licence file contains, or None if it is unknown.

    Raises LicenseError if the file opens with the title of a licence that is not allowed.
    """
    if title := _COPYLEFT_TITLE.search(text[:_TITLE_CHARS]):
        raise LicenseError(f"licence text is {title.group()!r}")
    flat = " ".join(text.split())
    if "Apache License" in flat and "Version 2.0" in flat:
        return "Apache-2.0"
    if "Permission is hereby granted, free of charge" in flat:
        return "MIT"
    if "Redistribution and use in source and binary forms" in flat:
        named = re.search(r"(?:Neither the names?|The names? of .{0,80} may not)", flat)
        return "BSD-3-Clause" if named else "BSD-2-Clause"
    if re.search(r"Permission to use, copy, modify, and(?:/or)? distribute this software", flat):
        return "ISC"
    return None


# Words of a file's own header that overrule its package's licence.
_FOREIGN_HEADER = re.compile(
    r"\b[AL]?GPL(?:v?\d|\b)|GNU (?:\w+ )?General Public|\bMPL\b|Mozilla Public License"
    r"|CC[- ]BY|Creative Commons|\bproprietary\b|\bconfidential\b|Commons Clause"
    r"|Business Source License|Elastic License",
    re.IGNORECASE,
)
_SPDX_LINE = re.compile(r"SPDX-License-Identifier:\s*([^\n*]+?)\s*(?:\*/|-->|$)", re.MULTILINE)
_HEADER_CHARS = 3_000


def header_fault(text: str) -> str | None:
    """Return `license` if a source file's header names a licence that is not allowed, or None."""
    header = text[:_HEADER_CHARS]
    identified = _SPDX_LINE.findall(header)
    try:
        for expression in identified:
            choose(expression)
    except LicenseError:
        return "license"
    # An identifier is exact; prose beside it ("or, at your option, the GPL") is the other option.
    return "license" if not identified and _FOREIGN_HEADER.search(header) else None


# Too vague on its own: the licence file decides which BSD it is.
_VAGUE_CLASSIFIER = "License :: OSI Approved :: BSD License"
_VAGUE_FIELDS = frozenset({"bsd", "bsd license", "apache", "apache license", ""})

# Some packages put the whole licence text into the field for its name.
_MAX_NAME_CHARS = 100

_LICENSE_FILE = re.compile(r"(?:^|/)(?:LICEN[CS]E|COPYING)[^/]*$", re.IGNORECASE)
# In a folder of a repository, which contains many other files with such names.
_LICENSE_NAME = re.compile(r"(?:un)?licen[cs]e(?:[-._](?:md|txt|rst|\w+))?|copying(?:\.\w+)?", re.IGNORECASE)
_CODE_SUFFIX = re.compile(r"\.(?:py|[cm]?[jt]sx?|go|rs|json|ya?ml|toml|html|sh|tmpl|svg|png)$", re.IGNORECASE)


def read_license(ecosystem: Ecosystem, members: Iterable[Member]) -> str:
    """Read a package's licence from its metadata files.

    Raises LicenseError if it is missing, unknown or not allowed.
    """
    texts = {m.path: m.content.decode("utf-8", errors="replace") for m in members}
    return _wheel_license(texts) if ecosystem == "pypi" else _npm_license(texts)


def is_metadata(ecosystem: Ecosystem, path: str) -> bool:
    """Tell whether `read_license` uses this member."""
    top, _, rest = path.partition("/")
    if ecosystem == "pypi":
        return top.endswith(".dist-info") and (rest == "METADATA" or bool(_LICENSE_FILE.search(path)))
    return path.count("/") == 1 and (rest == "package.json" or bool(_LICENSE_FILE.search(path)))


def _license_files(texts: dict[str, str]) -> list[str]:
    """Return the licence of each licence file, the outermost (the package's own) first."""
    paths = sorted((p for p in texts if _LICENSE_FILE.search(p)), key=lambda p: (p.count("/"), p))
    found = (recognise_text(texts[path]) for path in paths)
    return [name for name in found if name is not None]


def _wheel_license(texts: dict[str, str]) -> str:
    path = next((path for path in texts if path.endswith("/METADATA")), None)
    if path is None:
        raise LicenseError("the wheel has no METADATA")
    metadata = HeaderParser().parsestr(texts[path])
    files = _license_files(texts)
    if expression := metadata.get("License-Expression"):
        return choose(expression)
    classifiers = [c for c in metadata.get_all("Classifier", []) if c.startswith("License :: ")]
    said = {c: canonical(c) for c in classifiers if c not in (_VAGUE_CLASSIFIER, "License :: OSI Approved")}
    if unknown := [classifier for classifier, name in said.items() if name is None]:
        raise LicenseError(f"classifier not allowed: {unknown[0]!r}")
    vague = _VAGUE_CLASSIFIER in classifiers
    if said and not vague:
        return " AND ".join(dict.fromkeys(filter(None, said.values())))
    field = " ".join((metadata.get("License") or "").split())
    if len(field) < _MAX_NAME_CHARS and field.lower() not in _VAGUE_FIELDS:
        return choose(field)
    if files and (vague or field):
        return files[0]
    raise LicenseError("the wheel's metadata names no licence")


def _npm_license(texts: dict[str, str]) -> str:
    path = next((path for path in texts if path.endswith("/package.json")), None)
    if path is None:
        raise LicenseError("the tarball has no package.json")
    _license_files(texts)
    try:
        declared = json.loads(texts[path]).get("license")
    except (json.JSONDecodeError, AttributeError) as error:
        raise LicenseError(f"package.json is not readable: {error}") from error
    if isinstance(declared, dict):
        declared = declared.get("type")
    if not isinstance(declared, str):
        raise LicenseError("package.json names no licence")
    return choose(declared)


def is_license(path: str) -> bool:
    """Tell whether a file of a repository is the licence of its folder."""
    name = PurePosixPath(path).name
    return bool(_LICENSE_NAME.fullmatch(name)) and not _CODE_SUFFIX.search(name)


def folder_licenses(declared: str, members: Iterable[Member]) -> Callable[[str], str | None]:
    """Read the licence files of a repository whose list declares a licence.

    Returns a function from a file's path to its licence: that of the nearest folder above it that has one of its own;
    None if it is not allowed. Raises LicenseError if the licences at the top are not allowed, or none of them is the
    declared one.
    """
    found: dict[str, list[str | None]] = {".": []}
    for member in members:
        folder = str(PurePosixPath(member.path).parent)
        try:
            license_ = recognise_text(member.content.decode("utf-8", errors="replace"))
        except LicenseError:
            if folder == ".":
                raise
            license_ = None
        found.setdefault(folder, []).append(license_)
    if missing := set(declared.split(" AND ")) - set(found["."]):
        raise LicenseError(f"no licence file at the top is {' or '.join(sorted(missing))}")
    # One unknown licence file is enough to refuse the folder below it.
    nested = {folder: None if None in names else names[0] for folder, names in found.items()} | {".": declared}
    return lambda path: nested[next(str(above) for above in PurePosixPath(path).parents if str(above) in nested)]

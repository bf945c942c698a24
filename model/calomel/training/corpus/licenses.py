"""Licence expressions against the allow-list, and where packages say theirs; whatever is unknown is refused.

A package's licence stands in its own metadata: wheel METADATA, package.json, Debian DEP-5.
"""

from __future__ import annotations

import fnmatch
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from calomel.training.corpus.packages import Ecosystem, LicenseError, Member

_TABLE = tomllib.loads(Path(__file__).with_name("licenses.toml").read_text(encoding="utf-8"))
# Spellings in lower case, and the SPDX identifiers that they mean.
_SPELLINGS: dict[str, str] = {spelling: spdx for spdx, each in _TABLE["spellings"].items() for spelling in each}
ALLOWED = frozenset(_TABLE["spellings"])

# An exception only adds permissions; this is the one met in practice (Rust, LLVM).
_EXCEPTION = re.compile(r"\s+WITH\s+LLVM-exception\b", re.IGNORECASE)
_INNERMOST = re.compile(r"\(([^()]*)\)")


def canonical(name: str) -> str | None:
    """Return the SPDX identifier that a licence's name means, or None when it is not allowed."""
    name = " ".join(name.split())
    if name in ALLOWED:
        return name
    return _SPELLINGS.get(name.lower())


def choose(expression: str) -> str:
    """Return what remains of an SPDX expression once each OR has taken its first allowed side.

    `MIT OR GPL-3.0-only` gives `MIT`. Raises LicenseError when a needed part is not allowed, or
    when the expression does not parse.
    """
    rest = _EXCEPTION.sub("", expression)
    while inner := _INNERMOST.search(rest):
        rest = f"{rest[: inner.start()]}{_first_allowed(inner[1])}{rest[inner.end() :]}"
    chosen = canonical(expression) or _first_allowed(rest)
    if chosen == _REFUSED:
        raise LicenseError(f"licence not allowed: {expression!r}")
    return chosen


# No licence has this name.
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
    """Return the allowed licence that a licence file's text is, or None when it is not known.

    Raises LicenseError when the file opens with the title of a licence that is not allowed.
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
    """Return `license` when a source file's header names a licence that is not allowed, or None."""
    header = text[:_HEADER_CHARS]
    identified = _SPDX_LINE.findall(header)
    try:
        for expression in identified:
            choose(expression)
    except LicenseError:
        return "license"
    # An identifier is exact; prose beside it ("or, at your option, the GPL") is its other side.
    return "license" if not identified and _FOREIGN_HEADER.search(header) else None


_CLASSIFIERS: dict[str, str] = _TABLE["classifiers"]
# Too vague alone: the licence file decides which BSD it is.
_VAGUE_CLASSIFIERS = frozenset({"License :: OSI Approved :: BSD License"})
_VAGUE_FIELDS = frozenset({"bsd", "bsd license", "apache", "apache license", ""})

# Some packages put the whole licence text into the field for its name.
_MAX_NAME_CHARS = 100

_LICENSE_FILE = re.compile(r"(?:^|/)(?:LICEN[CS]E|COPYING)[^/]*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Provenance:
    """The licences of a package's files by patterns of their paths, the most general first; None where not allowed.

    Patterns count from the source's root, wherever it lies.
    """

    by_glob: Mapping[str, str | None]

    def license_of(self, path: str) -> str | None:
        """Return the licence of the file at `path`, or None when it may not be used.

        One fitting pattern that is not allowed is enough to refuse: where the source's root lies
        inside an archive is not known, so a pattern may fit more than it was written for.
        """
        fitting = [name for glob, name in self.by_glob.items() if fnmatch.fnmatchcase(f"/{path}", f"*/{glob}")]
        return None if not fitting or None in fitting else fitting[-1]


def read_provenance(ecosystem: Ecosystem, members: Iterable[Member]) -> Provenance:
    """Read a package's licence from its metadata files.

    Raises LicenseError when it is missing, unknown or not allowed.
    """
    texts = {m.path: m.content.decode("utf-8", errors="replace") for m in members}
    match ecosystem:
        case Ecosystem.PYPI:
            return Provenance({"*": _wheel_license(texts)})
        case Ecosystem.NPM:
            return Provenance({"*": _npm_license(texts)})
        case Ecosystem.DEBIAN:
            return _debian_provenance(texts)


def is_metadata(ecosystem: Ecosystem, path: str) -> bool:
    """Tell whether a member is one that `read_provenance` looks at."""
    match ecosystem:
        case Ecosystem.PYPI:
            top = path.partition("/")[0]
            return top.endswith(".dist-info") and (path == f"{top}/METADATA" or bool(_LICENSE_FILE.search(path)))
        case Ecosystem.NPM:
            return path.count("/") == 1 and (path.endswith("/package.json") or bool(_LICENSE_FILE.search(path)))
        case Ecosystem.DEBIAN:
            return re.fullmatch(r"usr/share/doc/[^/]+/copyright", path) is not None


def _license_files(texts: dict[str, str]) -> list[str]:
    """Return what each licence file is, the outermost (the package's own) first."""
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
    classifiers = [c for c in classifiers if c != "License :: OSI Approved"]
    vague = [c for c in classifiers if c in _VAGUE_CLASSIFIERS]
    for classifier in classifiers:
        if classifier not in _CLASSIFIERS and classifier not in _VAGUE_CLASSIFIERS:
            raise LicenseError(f"classifier not allowed: {classifier!r}")
    if classifiers and not vague:
        return " AND ".join(dict.fromkeys(_CLASSIFIERS[c] for c in classifiers))
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


def _debian_provenance(texts: dict[str, str]) -> Provenance:
    """Follow DEP-5: a licence for each `Files` stanza.

    https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
    """
    text = next(iter(texts.values()), "")
    stanzas = [HeaderParser().parsestr(part) for part in re.split(r"\n\s*\n", text.strip())]
    if not stanzas or "copyright-format/1" not in (stanzas[0].get("Format") or ""):
        raise LicenseError("the copyright file is not machine-readable")
    named = _dep5_texts(stanza.get("License") or "" for stanza in stanzas[1:])
    by_glob: dict[str, str | None] = {}
    refused: list[str] = []
    for stanza in stanzas[1:]:
        short = (stanza.get("License") or "").split("\n")[0].strip()
        allowed = named.get(short)
        for glob in (stanza.get("Files") or "").split():
            try:
                by_glob[glob.removeprefix("./")] = allowed or choose(_dep5_expression(short))
            except LicenseError as error:
                refused.append(str(error))
                by_glob[glob.removeprefix("./")] = None
    if not any(by_glob.values()):
        raise LicenseError(refused[0] if refused else "the copyright file has no Files stanza")
    return Provenance(by_glob)


def _dep5_texts(fields: Iterable[str]) -> dict[str, str]:
    """Return what each short name means that a package made up and spelled out in full."""
    named: dict[str, str] = {}
    for field in fields:
        short, _, body = field.partition("\n")
        if " " in short.strip() or canonical(short.strip()) or not body.strip():
            continue
        try:
            meant = recognise_text(body)
        except LicenseError:
            continue
        if meant is not None:
            named[short.strip()] = meant
    return named


def _dep5_expression(short: str) -> str:
    """Turn DEP-5 short names and operators into an SPDX expression of allowed identifiers."""
    words = re.split(r"(\s+(?:and/or|and|or)\s+|,\s*)", short, flags=re.IGNORECASE)
    parts = []
    for index, word in enumerate(words):
        if index % 2:
            parts.append("OR" if word.strip().lower() in ("or", "and/or") else "AND")
        else:
            parts.append(canonical(word) or (word.strip().replace(" ", "-") or "unknown"))
    return " ".join(parts)

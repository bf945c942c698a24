"""Licence expressions against the allow-list; whatever is unknown is refused."""

import re

from calomel.training.corpus.errors import LicenseError

# SPDX identifiers of permissive licences whose notice a NOTICE file satisfies.
ALLOWED = frozenset(
    {
        *("MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "0BSD"),
        *("Zlib", "Unlicense", "PSF-2.0"),
    }
)

# An exception only adds permissions; this is the one met in practice (Rust, LLVM).
_ALLOWED_EXCEPTIONS = frozenset({"LLVM-exception"})

# Spellings that mean one SPDX identifier and nothing else. "BSD" alone is not here: which of
# the BSD licences it is, only the licence's text can tell.
_SPELLINGS = {
    "mit": "MIT",
    "mit license": "MIT",
    "the mit license": "MIT",
    "the mit license (mit)": "MIT",
    "expat": "MIT",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "bsd 2-clause license": "BSD-2-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "new bsd": "BSD-3-Clause",
    "new bsd license": "BSD-3-Clause",
    "bsd-3-clause-google": "BSD-3-Clause",
    "apache-2.0": "Apache-2.0",
    "apache-2": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache 2.0 license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache license version 2.0": "Apache-2.0",
    "apache software license 2.0": "Apache-2.0",
    "isc": "ISC",
    "isc license": "ISC",
    "0bsd": "0BSD",
    "zlib": "Zlib",
    "unlicense": "Unlicense",
    "psf-2.0": "PSF-2.0",
}

_TOKEN = re.compile(r"\(|\)|[^\s()]+")


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
    if whole := canonical(expression):
        return whole
    tokens = _TOKEN.findall(expression)
    chosen, rest = _either(tokens)
    if rest:
        raise LicenseError(f"cannot read the licence expression {expression!r}")
    if chosen is None:
        raise LicenseError(f"licence not allowed: {expression!r}")
    return chosen


def _either(tokens: list[str]) -> tuple[str | None, list[str]]:
    chosen, rest = _both(tokens)
    while rest and rest[0].upper() == "OR":
        other, rest = _both(rest[1:])
        chosen = chosen or other
    return chosen, rest


def _both(tokens: list[str]) -> tuple[str | None, list[str]]:
    chosen, rest = _term(tokens)
    while rest and rest[0].upper() == "AND":
        other, rest = _term(rest[1:])
        if chosen is None or other is None:
            chosen = None
        elif other not in chosen.split(" AND "):
            chosen = f"{chosen} AND {other}"
    return chosen, rest


def _term(tokens: list[str]) -> tuple[str | None, list[str]]:
    if not tokens:
        raise LicenseError("a licence expression ends too early")
    if tokens[0] == "(":
        chosen, rest = _either(tokens[1:])
        if not rest or rest[0] != ")":
            raise LicenseError("a licence expression lacks a closing parenthesis")
        return chosen, rest[1:]
    chosen, rest = canonical(tokens[0]), tokens[1:]
    if rest and rest[0].upper() == "WITH":
        if not _ALLOWED_EXCEPTIONS.intersection(rest[1:2]):
            chosen = None
        rest = rest[2:]
    return chosen, rest


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


def refuse_header(text: str) -> None:
    """Raise LicenseError when a source file's header names a licence that is not allowed."""
    header = text[:_HEADER_CHARS]
    identified = _SPDX_LINE.findall(header)
    for expression in identified:
        choose(expression)
    # An identifier is exact; prose beside it ("or, at your option, the GPL") is its other side.
    if not identified and (word := _FOREIGN_HEADER.search(header)):
        raise LicenseError(f"file header says {word.group()!r}")

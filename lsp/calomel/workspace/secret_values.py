"""Secrets that are recognised by the name they are given: `password = "…"`, `API_KEY=…`, `token: …`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from calomel.workspace.randomness import looks_random
from calomel.workspace.secret_shapes import Patience

Found = tuple[int, int, str]

# Cheap to find; what stands around them decides.
_KEYWORDS: Final = ("pass", "pwd", "secret", "token", "key", "credential", "auth")

# The name up to and with the keyword, read backwards from its end.
_BEFORE: Final = 24
_PASSWORD_NAME: Final = re.compile(r"(?:passw(?:or)?d|passphrase|(?<![A-Za-z])pass|pwd)", re.IGNORECASE)
_AUTH_NAME: Final = re.compile(r"auth(?:orization)?(?![A-Za-z])", re.IGNORECASE)
_KEY_NAME: Final = re.compile(
    r"(?:api|access|private|secret|account|auth|encrypt(?:ion)?|decrypt(?:ion)?|sign(?:ing)?|signature|master|shared|"
    r"storage|service|crypto|hmac|aes|ssh|gpg|license|app|application|client|consumer|server|webhook|session|cookie|"
    r"admin|root|db|jwt|hash|bot|subscription)[ _.-]?key",
    re.IGNORECASE,
)
# Names that go on like this hold something about a secret, not the secret.
_HARMLESS_TAIL: Final = re.compile(
    r"(?:types?|names?|ur[li]s?|paths?|files?|fields?|labels?|ids?|prompts?|placeholders?|regexp?|re|patterns?|length|len|"
    r"count|size|limit|index|offset|pos|expir\w*|ttl|timeout|endpoint|header|params?|policy|dir|folder|class|kind|format|"
    r"errors?|messages?|msg|text|title|help|hint|desc\w*|version|algorithm|alg|scheme|hash(?:er|ers)?|validators?|"
    r"checksum|digest|fingerprint|column|table|prefix|suffix|separator|delimiter|arn|ref|source|provider|manager|"
    r"strategy|mode|event|action|status|state|usage|strength|page|form|input|element|selector|xpath|css|img|icon|"
    r"range|span|kinds|map|codes?|words?|char|map)$",
    re.IGNORECASE,
)
# From the end of the name to its value: the rest of the name, closing quotes, a type, and what assigns or passes.
_GIVEN: Final = re.compile(
    r"""
    (?P<tail>[\w.-]{0,48})
    ["'`\]]{0,3}
    (?:
        [ \t]{0,64}:[ \t]{0,64}[&\w][\w\[\]<>&'., |?*:]{0,40}?[ \t]{0,64}=[ \t]{0,64}  # name: type = value
      | (?:[ \t]{1,64}[*&]?[A-Za-z][\w.\[\]*&<>]{0,30})?[ \t]{0,64}
        (?P<sign>:=|===?|!==?|=>|->|[?+|]{0,2}=|\??:|\|\||\?\?)[ \t]{0,64}  # name = value, name: value
      | (?P<passed>(?<=["'`])[ \t]{0,64},[ \t]{0,64}|[ \t]{0,64}\([ \t]{0,64})  # "name", value; name(value)
      | (?P<element>>)  # <name>value<
      | [ \t]{1,64}value[ \t]{0,64}=[ \t]{0,64}  # name="…" value="…"
      | (?P<apart>[ \t]{1,64})  # #define NAME value, --name value
    )
    (?:[\[({][ \t]{0,64})?
    (?:
        (?:b|r|u|f|rb|br|@|\$|L)?(?P<quote>["'`]{1,3})(?P<quoted>(?:\\[^\r\n]|(?!(?P=quote))[^\\\r\n]){0,1000})
      | (?P<bare>[^\s"'`<>()\[\]{},;&|\\]{5,1000})
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Something that is put in later, or stands for the secret in documentation.
_TEMPLATE: Final = re.compile(
    r"\$\{|\{\{|\{[\w.!:]*\}|\[[a-zA-Z0-9]-|%\(|%[sdr]\b|\$\(|<[\w -]+>|://|\\[dwsb]|\(\?|\*{4}|x{5}|\.\.\.|…",
    re.IGNORECASE,
)
_PLACEHOLDER: Final = re.compile(
    r"(?:your|my|the|some|any|test|fake|dummy|mock|sample|example|change|replace|insert|enter|put|todo|none|null|undefined|"
    r"true|false)(?:[-_ ]?[a-z]+)*\d{0,3}",
    re.IGNORECASE,
)
_KEY_VALUE: Final = re.compile(r"[A-Za-z0-9+/_.~=:!@#$%^&*()?-]{16,}")
_SPECIAL: Final = re.compile(r"[!@#$%^&*+?~=]")
# A whole line of a settings file or a shell script: nothing but a name and its value.
_SETTING_LINE: Final = re.compile(r"[ \t]*(?:(?:export|set|setx|ENV|ARG|-e|-)[ \t]+)?[\"']?[\w.-]*$")
# `Server=…;User=…;Password=…;`, as databases and Azure take it.
_CONNECTION_PART: Final = re.compile(r"""=(?P<secret>(?!\w+\()[^;"'`\s]{5,1000})(?=;|["'`][ \t]*(?:[,;)\r\n]|$))""")
# Without a sign between name and value: in Docker, .netrc and SQL; in C only with quotes.
_STATEMENT: Final = re.compile(
    r"[ \t]*(?:(?:ENV|ARG|machine|login|(?:CREATE|ALTER)[ \t]+(?:USER|ROLE|LOGIN))|(?P<quoted>#[ \t]*define))\b",
    re.IGNORECASE,
)
# `name.of(`, `name[`
_CALL: Final = re.compile(r"[A-Za-z_][\w.]*[(\[]|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$")
_WORD: Final = re.compile(r"""[^\s"'`;|<>]{5,200}""")
_ELEMENT: Final = re.compile(r"[^\s<>]{5,200}")
_REST: Final = re.compile(r"""[^\s"'`]{5,200}(?=[ \t]*\r?(?:\n|\Z))""")
# What code would rather call a variable.
_NAMELIKE: Final = re.compile(
    r"pass|pwd|secret|token|key|arg|param|val|str|text|data|user|name|[a-z]{4}\d$|^[a-z]\d", re.IGNORECASE
)
_FARTHEST: Final = 1_000
_SHORTEST_PASSWORD: Final = 5
_SHORTEST_MIXED: Final = 8
# 64 bits in hexadecimal are a checksum, or a short id.
_SHORTEST_HEX: Final = 24
# The beginning of a generated value says what it is.
_TELLING: Final = 256
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_PART: Final = re.compile(r"[A-Za-z0-9!@#$%^&*+=]{16,}")


def find_values(text: str, lower: str) -> Iterator[Found]:
    """Everything in `text` that is given to a secret-sounding name, as (start, end, kind); may overlap.

    `lower` is `text` in lower case, of the same length.
    """
    for keyword in _KEYWORDS:
        at, patience = lower.find(keyword), Patience()
        while at >= 0:
            kind, end = _named(text, keyword, at)
            behind = end
            if kind:
                given = _GIVEN.match(text, end)
                if given:
                    yield from _judged(text, at, given, kind)
                    behind = patience.next(end, given.end())
                part = _CONNECTION_PART.match(text, end)
                if part and (is_password(part["secret"]) or is_key(part["secret"])):
                    yield (*part.span("secret"), "connection_string")
            at = lower.find(keyword, behind)


def _named(text: str, keyword: str, at: int) -> tuple[str, int]:
    """What a name with this keyword holds: `password`, `key`, or nothing; and where the keyword ends."""
    end = at + len(keyword)
    if keyword in {"pass", "pwd"}:
        found = _PASSWORD_NAME.match(text, at)
        if not found or (found.end() == end and keyword == "pass" and text[end : end + 1].isalpha()):
            return "", end
        return "password", found.end()
    if keyword == "auth":
        found = _AUTH_NAME.match(text, at)
        return ("key", found.end()) if found else ("", end)
    if keyword == "key":
        named = _KEY_NAME.search(text, max(0, at - _BEFORE), end)
        return "key" if named and named.end() == end else "", end
    return "key", end


def _judged(text: str, at: int, given: re.Match[str], kind: str) -> Iterator[Found]:
    if _HARMLESS_TAIL.search(given["tail"]) or (given["passed"] and given["tail"]):
        return
    near = max(0, at - _FARTHEST)
    # Farther away than that a name is none of its line's beginning.
    line_start = max(near, text.rfind("\n", near, at) + 1)
    option = text.startswith("--", max(line_start, text.rfind(" ", line_start, at) + 1))
    statement = _STATEMENT.match(text, line_start) if given["apart"] and not option else None
    if given["apart"] and not (option or statement):
        return
    quoted = given["quoted"]
    if quoted is not None:
        if is_password(quoted) if kind == "password" else is_key(quoted):
            yield (*given.span("quoted"), kind)
        return
    bare = given["bare"]
    if given["passed"] or (statement and statement["quoted"]):
        return
    if is_key(bare) and not _is_code(text, given):
        yield (*given.span("bare"), kind)
        return
    start = given.start("bare")
    if given["apart"] or option:
        found = _WORD.match(text, start)
    elif given["element"]:
        found = _ELEMENT.match(text, start)
    else:
        found = _bare_setting(text, line_start, at, given)
    if found and (is_password(found[0]) if kind == "password" else is_key(found[0])):
        yield (*found.span(), kind)


def _bare_setting(text: str, line_start: int, at: int, given: re.Match[str]) -> re.Match[str] | None:
    """The value of a line of settings or of a shell, which may hold what ends a value in code."""
    if given["sign"] not in {"=", ":"} or not _SETTING_LINE.fullmatch(text, line_start, at):
        return None
    found = _REST.match(text, given.start("bare"))
    if found is None:
        return None
    value = found[0]
    if value[-1] in ",;" or _CALL.match(value):
        return None
    spaced = given["sign"] == "=" and text[found.start() - 1].isspace()
    return None if spaced and value.isidentifier() and _NAMELIKE.search(value) else found


def is_password(value: str) -> bool:
    """Whether a value in quotes may be somebody's password: no prose, no word, no place for one."""
    if len(value) < _SHORTEST_PASSWORD or any(map(str.isspace, value)) or _is_placeholder(value):
        return False
    if value.isdigit():
        return True
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if letters and digits:
        # `password2` is a name; `hunter2` too, but short.
        return bool(_SPECIAL.search(value)) or len(value) <= _SHORTEST_MIXED or looks_random(value)
    return bool(letters and (_SPECIAL.search(value) or looks_random(value)) and not value.startswith(("$", "%", "@")))


def is_key(value: str) -> bool:
    """Whether a value may have been generated: long, of one word, and random."""
    value = value[:_TELLING]
    if not _KEY_VALUE.fullmatch(value) or _is_placeholder(value) or len(set(value)) < len(value) ** 0.5 + 2:
        return False
    if len(value) < _SHORTEST_HEX and _HEX.fullmatch(value):
        return False
    # `django-insecure-…`, `prod_…`: the parts that are words do not speak for the others.
    return looks_random(value) or any(looks_random(part) for part in _PART.findall(value))


def _is_placeholder(value: str) -> bool:
    return bool(_TEMPLATE.search(value) or _PLACEHOLDER.fullmatch(value))


def _is_code(text: str, given: re.Match[str]) -> bool:
    """Whether a value without quotes is called, indexed or a chain of names."""
    bare = given["bare"]
    return (
        text[given.end() : given.end() + 1] in {"(", "[", "{"} or "." in bare or bare.startswith(("$", "%", "@", "*"))
    )

"""Secrets that are recognised by the name they are given: `password = "…"`, `API_KEY=…`, `token: …`.

The value may be put together of several texts in quotes, or stand on lines below its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from calomel.workspace.secret_shapes import JOINT, TABLES, Patience, looks_random

Found = tuple[int, int, str]


def _any_of(name: str) -> str:
    """An expression that matches one of the words of a table."""
    return "|".join(TABLES["names"][name].split())


# Cheap to find; what stands around them decides.
_KEYWORDS: Final = ("pass", "pwd", "secret", "token", "key", "credential", "auth", "phrase", "mnemonic")

# The name up to and with the keyword, read backwards from its end.
_BEFORE: Final = 24
_PASSWORD_NAME: Final = re.compile(r"(?:passw(?:or)?d|passphrase|(?<![A-Za-z])pass|pwd)", re.IGNORECASE)
_PHRASE_NAME: Final = re.compile(r"(?:pass|seed|recovery|backup|wallet|secret)[ _-]?phrase|mnemonic", re.IGNORECASE)
_PHRASE: Final = re.compile(r"[a-z]{2,12}(?:[ _.-][a-z]{2,12}){3,23}")
_PHRASE_LINE: Final = re.compile(_PHRASE.pattern + r"(?=[ \t]*\r?(?:\n|\Z))")
_FEWEST_WORDS: Final = 4
_AUTH_NAME: Final = re.compile(r"auth(?:orization)?(?![A-Za-z])", re.IGNORECASE)
_KEY_NAME: Final = re.compile(rf"(?:{_any_of('keys')})[ _.-]?key", re.IGNORECASE)
# Names that go on like this hold something about a secret, not the secret.
_HARMLESS_TAIL: Final = re.compile(rf"(?:{_any_of('harmless_tails')})$", re.IGNORECASE)
# Their keys have no shape of their own.
_SERVICES: Final = tuple(TABLES["names"]["services"].split())
_SERVICE: Final = re.compile(
    rf"""(?:{"|".join(_SERVICES)})[\w .-]{{0,24}}["'\]]{{0,2}}[ \t]{{0,3}}(?::=|=>|[=:,(>])[ \t"'`=(]{{0,5}}$""",
    re.IGNORECASE,
)
_GENERATED: Final = re.compile(r"(?<![\w/+-])[\w=-]{20,200}(?![\w/+-])", re.ASCII)
_NEAR: Final = 64
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
# From the end of a name to that of its line, where the value stands below: a text over lines, a block of YAML, a list,
# a text in quotes that goes on; or a name that is a value itself, such as `name: DB_PASSWORD`.
_ANNOUNCES: Final = re.compile(
    r"""
    (?P<tail>[\w.-]{0,48})["'`\]]{0,3}
    (?:
        (?:[ \t]{0,16}:[ \t]{0,16}[\w\[\]. |]{1,40}?)?[ \t]{0,16}(?::=|=>|=|:)[ \t]{0,16}
        (?:[rbf]?(?:\"{3}|'{3}|`)|[|>][+-]?|[(\[{]|\\|[(\[{]?[rbf]?["'`][^"'`\r\n]{8,200}["'`][ \t]{0,16}[+.&\\]?)
      | (?P<named>,?|[ \t]{0,16}\{|</name>)
    )
    [ \t]{0,64}\r?$
    """,
    re.VERBOSE | re.MULTILINE,
)
_NAMING: Final = re.compile(
    r"""(?:\bname["']?[ \t]*[:=][ \t]*["']?|\bvariable[ \t]+["']|<name>)[\w.-]*$""", re.IGNORECASE
)
# A line below that holds nothing but a value, and one behind which there is none.
_BELOW: Final = re.compile(
    r"""[ \t]{0,64}(?:(?P<only>["']?(?:default|value)["']?[ \t]{0,16}[:=][ \t]{0,16}|<value>)|[+.&][ \t]{0,16})?"""
    r"""[rbf]?["'`]{0,3}(?P<secret>[^\s"'`<>{}()\[\],;]{5,1000}|[a-z]{2,12}(?:[ ][a-z]{2,12}){3,23})["'`]{0,3}"""
    r"""(?:</value>)?[ \t]{0,16}[,;)+.&\\]{0,3}[ \t]{0,16}\r?"""
)
_OVER: Final = re.compile(r"""[ \t]*(?:[-*][ \t]|["']?name["']?[ \t]*[:=]|[}\])]|["'`]{3}|`)""")
_FARTHEST_BELOW: Final = 12
_QUOTED: Final = re.compile(r"""[^"'`\r\n]{1,1000}""")
_MOST_PARTS: Final = 8
# Something that is put in later, or stands for the secret in documentation.
_TEMPLATE: Final = re.compile(
    r"\$\{|\{\{|\{[\w.!:]*\}|\[[a-zA-Z0-9]-|%\(|%[sdr]\b|\$\(|<[\w -]+>|://|\\[dwsb]|\(\?|\*{4}|x{5}|\.\.\.|…",
    re.IGNORECASE,
)
_PLACEHOLDER: Final = re.compile(rf"(?:{_any_of('placeholders')})(?:[-_ ]?[a-z]+)*\d{{0,3}}", re.IGNORECASE)
_KEY_VALUE: Final = re.compile(r"[A-Za-z0-9+/_.~=:!@#$%^&*()?-]{16,}")
_SPECIAL: Final = re.compile(r"[!@#$%^&*+?~=]")
# A whole line of a settings file or a shell script: nothing but a name and its value.
_SETTING_LINE: Final = re.compile(r"[ \t]*(?:(?:export|set|setx|ENV|ARG|-e|-)[ \t]+)?[\"']?[\w.-]*$")
_SHELL: Final = re.compile(r"[ \t]*(?:(?:export|env)[ \t]+)?(?:[A-Z_]+=\S{0,100}[ \t]+){0,3}[A-Z0-9_]+=")
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
_REST: Final = re.compile(r"""[^\s"'`]{5,200}(?=(?P<more>[ \t]+\S)?)(?=[ \t]|\r?(?:\n|\Z))""")
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

    Where `start` is `end`, the value stands on lines below, see `find_below`. `lower` is `text` in lower case, of
    the same length.
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
                announced = _ANNOUNCES.match(text, end)
                if announced and _is_announcement(text, at, announced):
                    yield end, end, kind
                part = _CONNECTION_PART.match(text, end)
                if part and (is_password(part["secret"]) or is_key(part["secret"])):
                    yield (*part.span("secret"), "connection_string")
            at = lower.find(keyword, behind)
    if any(map(lower.__contains__, _SERVICES)):
        for found in _GENERATED.finditer(text):
            if is_key(found[0]) and _SERVICE.search(text, max(0, found.start() - _NEAR), found.start()):
                yield (*found.span(), "key")


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
    if keyword in {"key", "phrase", "mnemonic"}:
        kind, names = ("key", _KEY_NAME) if keyword == "key" else ("phrase", _PHRASE_NAME)
        named = names.search(text, max(0, at - _BEFORE), end)
        return kind if named and named.end() == end else "", end
    return "key", end


def find_below(lines: Sequence[str], announced: Sequence[tuple[int, str]]) -> list[tuple[int, int, int]]:
    """The values below lines that announce one, as (line, start, end).

    Args:
        lines: of the text, without their ends.
        announced: those lines, and what they name.
    """
    found: list[tuple[int, int, int]] = []
    for number, kind in announced:
        for below in range(number + 1, min(len(lines), number + 1 + _FARTHEST_BELOW)):
            if _OVER.match(lines[below]):
                break
            value = _BELOW.fullmatch(lines[below])
            if value is not None and _is_secret(value["secret"], kind):
                found.append((below, *value.span("secret")))
            if value is not None and value["only"]:
                break
    return found


def _is_announcement(text: str, at: int, found: re.Match[str]) -> bool:
    if _HARMLESS_TAIL.search(found["tail"]):
        return False
    start = max(0, at - _BEFORE * 4)
    start = max(start, text.rfind("\n", start, at) + 1)
    return found["named"] is None or _NAMING.search(text, start, at) is not None


def _is_secret(value: str, kind: str) -> bool:
    """Whether a value may be what its name says: `password`, `key` or `phrase`."""
    if kind == "key":
        return is_key(value)
    return is_password(value) or (kind == "phrase" and is_phrase(value))


def is_phrase(value: str) -> bool:
    """Whether a value may be a passphrase: some words, none of which tells what to put there."""
    words = value.replace("-", " ").split()
    return bool(_PHRASE.fullmatch(value)) and len(set(words)) >= _FEWEST_WORDS and not _is_placeholder(value)


def _parts(text: str, given: re.Match[str]) -> list[tuple[int, int]]:
    """Where the texts in quotes stand that make up the value."""
    spans = [given.span("quoted")]
    while len(spans) < _MOST_PARTS and (joint := JOINT.match(text, spans[-1][1])):
        more = _QUOTED.match(text, joint.end())
        if more is None:
            break
        spans.append(more.span())
    return spans


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
    if given["quoted"] is not None:
        spans = _parts(text, given)
        if _is_secret("".join(text[start:end] for start, end in spans), kind):
            yield from ((start, end, kind) for start, end in spans)
    elif not (given["passed"] or (statement and statement["quoted"])):
        span = _bare(text, (line_start, at), given, kind, option=option)
        if span is not None:
            yield (*span, kind)


def _bare(text: str, name: tuple[int, int], given: re.Match[str], kind: str, *, option: bool) -> tuple[int, int] | None:
    """Where the secret stands that is given without quotes; `name` is where its line begins, and its keyword."""
    if is_key(given["bare"]) and not _is_code(text, given):
        return given.span("bare")
    start = given.start("bare")
    if kind == "phrase" and (words := _PHRASE_LINE.match(text, start)):
        found: re.Match[str] | None = words
    elif given["apart"] or option:
        found = _WORD.match(text, start)
    elif given["element"]:
        found = _ELEMENT.match(text, start)
    else:
        found = _bare_setting(text, *name, given)
    return found.span() if found and _is_secret(found[0], kind) else None


def _bare_setting(text: str, line_start: int, at: int, given: re.Match[str]) -> re.Match[str] | None:
    """The value of a line of settings or of a shell, which may hold what ends a value in code."""
    if given["sign"] not in {"=", ":"} or not _SETTING_LINE.fullmatch(text, line_start, at):
        return None
    found = _REST.match(text, given.start("bare"))
    if found is None:
        return None
    value = found[0]
    # Behind the value of a shell's variable there may be a command.
    is_whole = not found["more"] or _SHELL.fullmatch(text, line_start, found.start())
    if value[-1] in ",;" or _CALL.match(value) or not is_whole:
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

"""Kinds of secrets as they stand in files, each with a value that was generated just now.

Prefixes are put together here, so that the file itself holds nothing that a scanner would find.
"""

from __future__ import annotations

import random
import string
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from calomel.workspace.secrets import masked, spans

RNG = random.Random(80)
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "_-"


def some(count: int, letters: str = ALNUM) -> str:
    """So many letters, with one digit at least."""
    at = RNG.randrange(1, count - 1)
    digits = "".join(sorted(set(letters) & set(string.digits))) or letters
    return "".join(RNG.choice(digits if number == at else letters) for number in range(count))


def word(length: int = 6) -> str:
    return "".join(RNG.choice("aeiou" if at % 2 else "bdfgklmnprst") for at in range(length))


class Kind(NamedTuple):
    """One kind: the text it stands in, and the parts of it that nobody may read."""

    name: str
    text: str
    parts: tuple[str, ...]


def _shaped() -> Iterator[tuple[str, str]]:
    """Tokens that are known by their shape, wherever they stand."""
    yield "aws access key", "AK" + "IA" + some(16, UPPER)
    yield "github", "gh" + "p_" + some(36)
    yield "slack bot", "xo" + f"xb-{some(12, string.digits)}-{some(12, string.digits)}-{some(24)}"
    yield "anthropic", "sk" + "-ant-api03-" + some(93, URL) + "AA"
    yield "openai project", "sk" + "-proj-" + some(74, URL)
    yield "google api", "AI" + "za" + some(35, URL)
    yield "stripe", "sk" + "_live_" + some(24)
    yield "npm", "np" + "m_" + some(36)
    yield "jwt", "ey" + f"J{some(20)}.ey" + f"J{some(40)}.{some(43, URL)}"
    yield "telegram bot", f"{some(10, '123456789')}:AA{some(33, URL)}"
    yield "mailchimp", f"{some(32, HEX)}-us{RNG.randrange(10, 20)}"
    yield "discord bot", f"MT{some(24)}.G{some(5, URL)}.{some(38, URL)}"
    yield "azure ad", f"{some(3)}8Q~{some(34, URL)}"
    yield "terraform cloud", f"{some(14)}.atlas" + f"v1.{some(66, URL)}"
    yield "dynatrace", "dt0" + f"c01.{some(24, UPPER)}.{some(64, UPPER)}"
    yield "fly.io", "fm" + "2_" + some(120)
    yield (
        "microsoft teams hook",
        f"corp.webhook.office.com/webhookb2/{_uuid()}@{_uuid()}/IncomingWebhook/{some(32, HEX)}/{_uuid()}",
    )


def _uuid() -> str:
    return "-".join(some(count, HEX) for count in (8, 4, 4, 4, 12))


def _standing() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Secrets that are known by what stands around them: a name, a command, an address. `{}` is where they stand."""
    random_value, password = some(40), f"{word(5).title()}{word(4)}!{some(3, '123456789')}"
    base = b64encode(f"{word()}-{some(12)}".encode()).decode()
    words = [word(RNG.randrange(4, 8)) for _ in range(6)]
    yield "password in quotes", 'password = "{}"\n', (password,)
    yield "password in settings", "DB_PASSWORD={}\n", (password,)
    for name in ("API_KEY", "SIGNING_KEY", "ACCESS_KEY", "CLIENT_KEY"):
        yield f"{name} below its import", f"from config import {name}\n\n{name} = '{{}}'\n", (some(32),)
    yield "key in json", '{{"clientSecret": "{}"}}\n', (some(32),)
    yield "passphrase", 'passphrase = "{}"\n', (" ".join(words),)
    yield "mnemonic", "MNEMONIC='{}'\n", (" ".join([*words, *map(str.lower, words)]),)
    yield "passphrase with dashes", "gpg_passphrase: {}\n", ("-".join(words[:5]),)
    yield "kubernetes tls.key", "data:\n  tls.key: {}\n", ("LS0tLS1" + "CRUdJTiBSU0Eg" + some(400),)
    yield "kubernetes password", "data:\n  password: {}\n", (base,)
    yield "kubernetes variable", "env:\n  - name: DB_PASSWORD\n    value: {}\n", (password,)
    yield "secret over lines", 'secret = """\n{}\n{}\n"""\n', (some(44), some(40))
    yield "secret in a block of yaml", "client_secret: |\n  {}\nport: 80\n", (some(44),)
    yield "cut prefix", 'token = "gh' + 'p_" + "{}"\n', (some(36),)
    yield "cut password", 'password = "{}" + "{}"\n', (some(12) + "!", some(12) + "?")
    yield "mysql -p", "mysql -u root -p{} shop < dump.sql\n", (password,)
    yield "sshpass", "sshpass -p {} ssh root@10.0.0.1\n", (password,)
    yield "smtp login", 'smtp.login("robot@example.org", "{}")\n', (password,)
    yield "terraform default", 'variable "db_password" {{\n  type    = string\n  default = "{}"\n}}\n', (password,)
    yield "redis-cli -a", "redis-cli -h cache -a {} ping\n", (random_value,)
    yield "psql", "PGPASSWORD={} psql -h db shop\n", (password,)
    yield "curl -u", "curl -u robot:{} https://example.org/x\n", (password,)
    yield "docker login -p", "docker login -u robot -p {} registry.example.org\n", (password,)
    yield "url", "postgres:" + "//app:{}@db.example.org/shop\n", (password,)
    yield "bearer", "Authorization: Bearer {}\n", (some(40),)
    yield "basic", "Authorization: Basic {}\n", (b64encode(f"robot:{password}".encode()).decode(),)
    yield "azure connection", "AccountName=shop;AccountKey={};EndpointSuffix=x\n", (some(86) + "==",)
    yield "sas signature", "https://a.example.org/c?sv=2024&sig={}\n", (some(43) + "%3D",)
    yield "sql", "CREATE USER shop IDENTIFIED BY '{}';\n", (password,)
    yield "netrc", "machine example.org login robot password {}\n", (password,)
    yield "npmrc", "//registry.example.org/:_authToken={}\n", (_uuid(),)
    yield "dict", 'connect(host, auth=("robot", "{}"))\n', (password,)
    yield "private key", "{}\n", _pem()
    yield "datadog by name", "datadog_app = '{}'\n", (some(40, HEX),)
    yield "service by name", 'algolia.init("{}")\n', (some(32, HEX),)
    yield "hadoop", "<name>fs.s3a.secret.key</name>\n<value>{}</value>\n", (some(40),)


def _pem() -> tuple[str, ...]:
    lines = (some(64), some(64), some(64), some(20))
    return ("-----BEGIN " + "EC PRIVATE KEY-----\n" + "\n".join(lines) + "\n-----END " + "EC PRIVATE KEY-----",)


def _below() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Secrets on other lines than what announces them. `{}` is where they stand."""
    password = f"{word(5).title()}{word(4)}!{some(3, '123456789')}"
    yield "text over lines", 'secret = """\n{}\n{}\n"""\n', (some(44), some(40))
    yield "kubernetes variable", "env:\n  - name: DB_PASSWORD\n    value: {}\n", (password,)
    yield "kubernetes key", "env:\n  - name: API_KEY\n    value: {}\n", (some(32),)
    yield "typed constant over two lines", 'const TOKEN: &str =\n    "{}";\n', (some(32),)
    yield "element over three lines", "<password>\n  {}\n</password>\n", (some(32),)
    yield "json list", '"api_keys": [\n  "{}",\n  "{}"\n]\n', (some(32), some(32))
    yield "python list", "API_KEYS = [\n" + "    '{}',\n" * 20 + "]\n", tuple(some(32) for _ in range(20))
    yield "value in brackets", 'API_KEY = (\n    "{}"\n    "{}"\n)\n', (some(24), some(24))
    yield "folded yaml", "client_secret: >-\n  {}\nport: 80\n", (some(44),)
    yield "yaml list", "api_keys:\n  - {}\n  - {}\nport: 80\n", (some(32), some(32))
    yield "terraform default", 'variable "db_password" {{\n  type    = string\n  default = "{}"\n}}\n', (password,)
    yield "continuation", "export API_TOKEN=\\\n{}\n", (some(40),)
    yield "value on the next line", "api_key =\n    '{}'\n", (some(32),)
    yield "dict", 'const tokens = {{\n  live: "{}",\n  test: "{}",\n}};\n', (some(40), some(40))
    yield "hadoop", "<name>fs.s3a.secret.key</name>\n<value>{}</value>\n", (some(40),)
    yield "private key", "KEY = {}\n", _pem()
    yield "private key in a text", 'KEY = """{}"""\n', _pem()


def below() -> list[Kind]:
    """Secrets on other lines than what announces them; the same ones in every run."""
    RNG.seed(81)
    return [Kind(name, text.format(*parts), parts) for name, text, parts in _below()]


def kinds() -> list[Kind]:
    """All of them; the same ones in every run."""
    RNG.seed(80)
    shaped = [Kind(name, f"x = '{value}'\n", (value,)) for name, value in _shaped()]
    return shaped + [Kind(name, text.format(*parts), parts) for name, text, parts in _standing()]


def _forms(what: str) -> list[str]:
    """Where a password or a generated key stands, which is `{}`."""
    return Path(__file__).with_name(f"{what}_forms.txt").read_text(encoding="utf-8").splitlines()


def everyday() -> list[Kind]:
    """Passwords and keys in the forms in which people write them down; the same ones in every run."""
    RNG.seed(82)
    found = []
    for number, form in enumerate(_forms("password")):
        value = f"{word(5).title()}{word(4)}{RNG.choice('!#?+=@')}{some(3, '123456789')}" if number % 2 else some(14)
        value = value.replace("@", "!") if "//" in form or "#" in form else value
        found.append(Kind(form, form.format(value) + "\n", (value,)))
    for form in _forms("key"):
        value = some(36)
        found.append(Kind(form, form.format(*[value] * 2) + "\n", (value,)))
    return found


def _value(letter: str, number: int, form: str) -> str:
    """What stands in a form: a password, of one kind or another, a short or long key, a UUID, base64, or a hash."""
    if letter == "P" and number % 2:
        sign = RNG.choice("!=" if set(form) & set("#/?+") else "!#?+=")
        return f"{word(5).title()}{word(4)}{sign}{some(3, '123456789')}"
    makers: dict[str, Callable[[], str]] = {
        "P": lambda: some(14), "A": lambda: some(14), "K": lambda: some(36), "H": lambda: some(40, HEX), "U": _uuid,
        "B": lambda: b64encode(RNG.randbytes(32)).decode(), "S": lambda: f"{some(8)}${some(40)}",
    }  # fmt: skip
    return makers[letter]()


def wider() -> list[Kind]:
    """Forms from manuals of services and from the examples of scanners, in many languages; the same ones in every run.

    Each line of the table names what stands at the place of its `§`.
    """
    RNG.seed(83)
    found = []
    for line in Path(__file__).with_name("wider_forms.txt").read_text(encoding="utf-8").splitlines():
        form = line[2:].replace("\\n", "\n").replace("\\t", "\t")
        for number in (0, 1):
            value = _value(line[0], number, form)
            found.append(Kind(line[2:], form.replace("§", value) + "\n", (value,)))
    return found


def mask(text: str) -> str:
    """The text with every character of a secret replaced by an asterisk."""
    return masked(text, [(start, end) for start, end, _ in spans(text)])

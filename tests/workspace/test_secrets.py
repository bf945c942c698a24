from __future__ import annotations

import random
import string
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workspace.secret_kinds import Kind, kinds

import calomel.workspace
from calomel.workspace import secrets
from calomel.workspace.secret_patterns import find_values
from calomel.workspace.secrets import SecretFinder, mask, spans

RNG = random.Random(80)


def some(count: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(RNG.choice(letters) for _ in range(count))


HEX = "0123456789abcdef"
# Put together here, so that the file itself holds none.
PEM = "-----BEGIN RSA " + "PRIVATE KEY-----"
PEM_END = "-----END RSA " + "PRIVATE KEY-----"
BODY = "\n".join(some(64) for _ in range(6))
SECRETS = {
    "aws": "AK" + "IA" + some(16, string.ascii_uppercase + string.digits),
    "github": "gh" + "p_" + some(36),
    "github fine-grained": "github" + "_pat_" + some(60),
    "gitlab": "gl" + "pat-" + some(20),
    "slack": "xo" + "xb-" + some(40, string.digits),
    "model": "sk" + "-ant-" + some(40),
    "google": "AI" + "za" + some(35),
    "stripe": "sk" + "_live_" + some(24),
    "npm": "np" + "m_" + some(36),
    "pypi": "py" + "pi-" + some(60),
    "sendgrid": "S" + "G." + some(22) + "." + some(43),
    "twilio": "A" + "C" + some(32, HEX),
    "huggingface": "h" + "f_" + some(34),
    "jwt": "ey" + "J" + some(20) + "." + some(40) + "." + some(43),
}


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("around", ["key = '{}'\n", "{}", "# {}\n", "curl -H 'X: {}' http://a\n", "KEY={}\n"])
def test_a_token_of_a_known_shape_is_masked(name: str, around: str) -> None:
    secret = SECRETS[name]
    masked = mask(around.format(secret))
    assert masked == around.format("*" * len(secret))


@pytest.mark.parametrize(
    "line",
    [
        'password = "hunter2-{}"',
        "DB_PASSWORD={}9f",
        'api_key: "{}"',
        '"clientSecret": "{}",',
        "const authToken: string = `{}`;",
        'config["secret_key"] = "{}"',
        "export SECRET_TOKEN='{}'",
        'let signing_key: &str = "{}";',
    ],
)
def test_a_random_value_behind_a_telling_name_is_masked(line: str) -> None:
    value = "q7Zp" + some(20) + "4xV0"
    assert value not in mask(line.format(value))
    assert len(mask(line.format(value))) == len(line.format(value))


def test_a_password_inside_of_a_url_is_masked_and_the_rest_is_not() -> None:
    assert mask("postgres://" + "app:" + "s3cretpw" + "@db.example.org/x") == "postgres://app:********@db.example.org/x"


@pytest.mark.parametrize(
    "text",
    [
        f"{PEM}\n{BODY}\n{PEM_END}\n",
        f"{PEM}\n{BODY}\n",
        f"{BODY}\n{PEM_END}\n",
        f'KEY = """{PEM}\n{BODY}\n{PEM_END}"""\n',
        "".join(f"+{line}\n" for line in f"{PEM}\n{BODY}\n{PEM_END}".splitlines()),
    ],
    ids=["whole", "end cut", "beginning cut", "in source", "in a diff"],
)
def test_a_private_key_is_masked_even_when_it_is_cut(text: str) -> None:
    masked = mask(text)
    assert not any(line in masked for line in BODY.splitlines())
    assert masked.count("\n") == text.count("\n")


def test_line_ends_stay_where_they_are() -> None:
    text = f"a\r\n{PEM}\r\n" + BODY.replace("\n", "\r\n") + f"\r\n{PEM_END}\r\nb\r\n"
    masked = mask(text)
    assert [at for at, character in enumerate(masked) if character in "\r\n"] == [
        at for at, character in enumerate(text) if character in "\r\n"
    ]


def test_a_token_is_masked_while_it_is_being_typed() -> None:
    secret = SECRETS["github"]
    seen = [mask(f"token = '{secret[:count]}") for count in range(12, len(secret) + 1)]
    assert all(secret[4:10] not in masked for masked in seen)


@pytest.mark.parametrize(
    "line",
    [
        "token = tokens[index - 1]",
        "password = getpass.getpass()",
        "self.api_key = settings.api_key",
        'parser.add_argument("--token", help="access token")',
        "const secret = process.env.SECRET_KEY;",
        'password: "password"',
        'TOKEN = "<your token here>"',
        'api_key = "your_api_key"',
        "def check_token(token: str) -> bool:",
        "private_key = ed25519.Ed25519PrivateKey.generate()",
        'secret = "changeme"',
        "tokenizer = Qwen2Tokenizer.from_pretrained(path)",
        "max_tokens: 8192",
        'url = "https://example.org/a@b"',
        "sha256 = 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "import tokenize, secrets",
    ],
)
def test_ordinary_code_is_left_alone(line: str) -> None:
    assert mask(line) == line


@given(st.text(max_size=200))
def test_masking_keeps_the_length_and_masks_nothing_twice(text: str) -> None:
    masked = mask(text)
    assert len(masked) == len(text)
    assert len(mask(masked)) == len(text)


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_secrets_are_masked_as_they_stand_in_files(kind: Kind) -> None:
    masked = mask(kind.text)
    assert len(masked) == len(kind.text)
    at = 0
    for line in "\n".join(kind.parts).split("\n"):
        at = kind.text.index(line, at)
        # What announces a token may stay: `sk_live_` is no secret.
        shown = masked[at : at + len(line)].replace("*", "")
        assert len(shown) <= len(line) // 4
        at += len(line)


@pytest.mark.parametrize(
    "text",
    [
        'variable "db_password" {\n  type = string\n  sensitive = true\n}\n',
        "env:\n  - name: DB_PASSWORD\n    valueFrom:\n      key: db\n  - name: PORT\n    value: 8080\n",
        'PASSWORD_HELP = """\nAt least 12 letters.\nsee policy-2024\n"""\n',
        "tokens = [\n    'if',\n    'else',\n    'identifier2',\n]\n",
        'passphrase = "enter your passphrase here again"\n',
        "page.login(user, password)\nmysql -u root -p shop\nsshpass -p $PASSWORD ssh a\n",
        "heroku: https://devcenter.example.org/articles/getting-started-with-python\n",
        "from discord import Intents  # discord.Intents.default\n",
    ],
)
def test_what_only_stands_like_a_secret_is_left_alone(text: str) -> None:
    assert mask(text) == text


def test_hardly_a_line_of_source_code_is_taken_for_a_secret() -> None:
    finder, lines, touched = SecretFinder(), 0, 0
    for path in sorted(Path(calomel.workspace.__path__[0]).parent.parent.parent.glob("*/calomel/**/*.py")):
        text = path.read_text()
        lines += text.count("\n")
        touched += len(finder.spans(text))
    assert lines > 10_000
    assert touched * 10_000 <= lines


def test_a_text_of_many_chunks_is_looked_at_as_a_whole() -> None:
    text = "a = 1  # one\n" * 19_000 + f"{PEM}\n{BODY}\n" + "b = 2  # two\n" * 30_000 + f"\n'{SECRETS['npm']}'\r\n"
    masked = mask(text)
    assert len(masked) == len(text)
    assert BODY.split("\n")[-1] not in masked
    assert masked.endswith(f"'{'*' * 40}'\r\n")


def test_a_long_text_has_the_same_secrets_after_every_key_as_when_it_is_seen_first() -> None:
    finder = SecretFinder()
    text = "a = 1  # one\n" * 6_000 + f"{PEM}\n{BODY}\n" + "b = 2\n" * 6_000 + f"\n'{SECRETS['npm']}'\n"
    for at in (7, 40_000, 78_000, len(text) - 20, 30):
        text = f"{text[:at]}\n{text[at:]}"
        assert finder.spans(text) == SecretFinder().spans(text)
        assert finder.spans(text)


def test_other_threads_have_their_turn_between_the_pieces_of_a_long_text() -> None:
    pauses: list[int] = []
    SecretFinder(lambda: pauses.append(1)).mask("x = 1 ; " * 50_000 + "\n".join(map(str, range(100_000))))
    assert len(pauses) >= 30


def test_spans_do_not_overlap_and_come_in_order() -> None:
    text = "\n".join(f'token = "{secret}"' for secret in SECRETS.values())
    found = spans(text)
    assert len(found) == len(SECRETS)
    assert all(one[1] <= other[0] for one, other in pairwise(found))


# Names and shapes that announce a secret, again and again, and none comes.
HOSTILE = [
    "xo" + "xb-",
    "password=",
    "token:",
    "sig=",
    "api_key ",
    "eyJ",
    "://a:",
    "bearer ",
    "secret='",
    "-----BEGIN ",
]


def calls(text: str) -> int:
    """How many functions are called to mask a text that was not seen before."""
    count = 0

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        SecretFinder().mask(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("unit", HOSTILE)
def test_the_work_grows_as_the_text_does(unit: str) -> None:
    assert calls(unit * (120_000 // len(unit))) <= 5 * calls(unit * (30_000 // len(unit))) + 1000


@pytest.mark.parametrize("unit", [*HOSTILE, "x = 1 ; "])
def test_no_search_is_in_more_than_a_piece_and_all_pieces_together_are_little_more_than_the_text(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []

    def search(text: str, lower: str) -> Iterator[secrets.Span]:
        searched.append(len(text))
        return find_values(text, lower)

    monkeypatch.setattr(secrets, "find_values", search)
    text = unit * (400_000 // len(unit))
    SecretFinder().mask(text)
    assert max(searched) <= 24_576
    assert sum(searched) <= 1.4 * len(text)


@pytest.mark.parametrize("place", [0, 59_000, 59_390, 65_500, 130_000, 199_000])
def test_a_secret_is_found_anywhere_in_a_long_line(place: int) -> None:
    secret = SECRETS["github"]
    line = ("x = 1 ; " * 25_000)[:place] + f" '{secret}' " + "x = 1 ; " * 100
    assert mask(line) == line.replace(secret, "*" * len(secret))


def test_a_name_in_a_value_has_a_value_of_its_own() -> None:
    value = some(20)
    assert value not in mask(f"token=secret=password={value}\n")


@pytest.mark.slow
@pytest.mark.parametrize("unit", [*HOSTILE, "x = call(1) ; ", " "])
def test_four_megabytes_take_seconds(unit: str) -> None:
    text = unit * (4_000_000 // len(unit)) + "x"
    began = time.process_time()
    SecretFinder().mask(text)
    assert time.process_time() - began < 20

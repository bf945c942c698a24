"""Secrets that are recognised by their shape: a literal that starts them, and what follows it.

The prefixes are those that their issuers publish, so that scanners like this one can find leaked ones. A secret that
is being typed is recognised before it is whole: as soon as what follows the prefix is no word any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from calomel.workspace.randomness import looks_random

Found = tuple[int, int, str]

_ALNUM: Final = r"[A-Za-z0-9]"
_URLSAFE: Final = r"[A-Za-z0-9_-]"
_UPPER: Final = r"[A-Z0-9]"
_HEX: Final = r"[0-9a-f]"
# No known secret is longer; a match is bounded so that a line of a megabyte costs what its length says.
_LONGEST: Final = 4096
_LONG_WORD: Final = re.compile(r"[A-Za-z0-9_./+-]{8,}")
_WORD: Final = re.compile(r"[A-Za-z0-9_]")
# Of these few characters nothing was ever generated: `xxxxxxxx`, `00000000`, a row of asterisks.
_FEWEST_DISTINCT: Final = 4
# `xoxb-your-token-here`, `npm_config_registry`
_WORDS: Final = re.compile(r"[a-z_.-]+")


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape.

    Attributes:
        kind: name of the rule.
        literal: how it starts.
        body: the characters that follow, as many as there are.
        full: so many of them are a secret without further questions.
        early: so many are one if they look random; 0 when only the whole is.
    """

    kind: str
    literal: str
    body: re.Pattern[str]
    full: int
    early: int


def _shapes(kind: str, literals: str, characters: str, full: int, early: int) -> Iterator[Shape]:
    body = re.compile(f"{characters}{{1,{_LONGEST}}}")
    return (Shape(kind, literal, body, full, early) for literal in literals.split())


SHAPES: Final[tuple[Shape, ...]] = (
    *_shapes("aws_access_key", "AKIA", _UPPER, 4, 0),
    *_shapes("aws_access_key", "ASIA ABIA ACCA", _UPPER, 16, 6),
    *_shapes("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM, 36, 5),
    *_shapes("github_token", "github_pat_", r"[A-Za-z0-9_]", 22, 5),
    *_shapes("gitlab_token", "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- glsoat- gloas-", _URLSAFE, 20, 5),
    *_shapes("slack_token", "xoxb- xoxp- xoxa- xoxo- xoxr- xoxs- xoxe- xoxc- xoxd- xapp-", _URLSAFE, 12, 4),
    *_shapes("slack_webhook", "hooks.slack.com/services/", r"[A-Za-z0-9/]", 12, 4),
    *_shapes("discord_webhook", "discord.com/api/webhooks/", r"[A-Za-z0-9/_-]", 40, 20),
    *_shapes("anthropic_key", "sk-ant-", _URLSAFE, 20, 5),
    *_shapes("openai_key", "sk-proj- sk-svcacct- sk-admin- sk-or-v1-", _URLSAFE, 20, 5),
    *_shapes("openai_key", "sk-", _ALNUM, 32, 10),
    *_shapes("google_key", "AIza", _URLSAFE, 35, 5),
    *_shapes("google_token", "ya29.", _URLSAFE, 20, 6),
    *_shapes("google_secret", "GOCSPX-", _URLSAFE, 20, 4),
    *_shapes("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", _ALNUM, 16, 4),
    *_shapes("webhook_secret", "whsec_", r"[A-Za-z0-9+/=]", 24, 8),
    *_shapes("npm_token", "npm_", _ALNUM, 36, 8),
    *_shapes("pypi_token", "pypi-Ag", _URLSAFE, 4, 1),
    *_shapes("pypi_token", "pypi-", _URLSAFE, 50, 12),
    *_shapes("sendgrid_key", "SG.", r"[A-Za-z0-9_.-]", 60, 12),
    *_shapes("twilio_key", "SK AC", _HEX, 32, 0),
    *_shapes("huggingface_token", "hf_", _ALNUM, 34, 10),
    *_shapes("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", _HEX, 32, 5),
    *_shapes("databricks_token", "dapi", _HEX, 32, 16),
    *_shapes("square_token", "sq0atp- sq0csp- sq0idp-", _URLSAFE, 20, 5),
    *_shapes("shopify_token", "shpat_ shpca_ shppa_ shpss_", _HEX, 32, 5),
    *_shapes("grafana_token", "glsa_ glc_", r"[A-Za-z0-9_+/=]", 32, 8),
    *_shapes("vault_token", "hvs. hvb. hvr.", _URLSAFE, 20, 6),
    *_shapes("age_key", "AGE-SECRET-KEY-1", _UPPER, 20, 4),
    *_shapes("sentry_token", "sntrys_ sntryu_", r"[A-Za-z0-9_+/=]", 32, 6),
    *_shapes("new_relic_key", "NRAK- NRJS- NRII-", _ALNUM, 19, 5),
    *_shapes("docker_token", "dckr_pat_ dckr_oat_", _URLSAFE, 20, 5),
    *_shapes("atlassian_token", "ATATT3 ATBB ATCTT3", r"[A-Za-z0-9_=-]", 24, 8),
    *_shapes("doppler_token", "dp.pt. dp.st. dp.sa. dp.ct.", r"[A-Za-z0-9_.-]", 40, 8),
    *_shapes("linear_key", "lin_api_ lin_oauth_", _ALNUM, 32, 6),
    *_shapes("notion_token", "ntn_", _ALNUM, 40, 8),
    *_shapes("postman_key", "PMAK-", r"[A-Za-z0-9-]", 32, 6),
    *_shapes("rubygems_key", "rubygems_", _HEX, 48, 12),
    *_shapes("supabase_key", "sbp_", _HEX, 40, 10),
    *_shapes("planetscale_key", "pscale_tkn_ pscale_pw_ pscale_oauth_", _URLSAFE, 20, 5),
    *_shapes("tailscale_key", "tskey-", r"[A-Za-z0-9-]", 20, 10),
    *_shapes("groq_key", "gsk_", _ALNUM, 48, 10),
    *_shapes("perplexity_key", "pplx-", _ALNUM, 40, 10),
    *_shapes("replicate_token", "r8_", _ALNUM, 37, 10),
    *_shapes("figma_token", "figd_", _URLSAFE, 20, 6),
    *_shapes("netlify_token", "nfp_", _ALNUM, 36, 8),
    *_shapes("mailgun_key", "key-", _HEX, 32, 24),
    *_shapes("pulumi_token", "pul-", _HEX, 40, 16),
)

# Header, payload, signature; the first two are JSON objects. While it is typed, the header alone is long enough.
_JWT: Final = re.compile(rf"eyJ{_URLSAFE}{{12,{_LONGEST}}}(?:\.{_URLSAFE}{{0,{_LONGEST}}}){{0,4}}")
# The password in `scheme://user:password@host`; not a place for one, such as `{password}` or `$PASSWORD`.
_URL: Final = re.compile(
    r"""://[^\s/:@"'`<>(){}\\]{0,256}:(?P<secret>(?![{$<%*])[^\s/@"'`<>\\{}]{1,256})@(?=[\w.\[$%{<-])"""
)
# What HTTP headers, signed addresses, command lines and SQL put in front of a credential.
_PHRASES: Final = {
    "bearer ": re.compile(r"[ \t]*(?P<secret>[A-Za-z0-9+/_=.~-]{8,4096})"),
    "basic ": re.compile(r"[ \t]*(?P<secret>[A-Za-z0-9+/_=-]{8,4096})"),
    "sig=": re.compile(r"(?P<secret>[A-Za-z0-9+/_=%-]{20,4096})"),
    "signature=": re.compile(r"(?P<secret>[A-Za-z0-9+/_=%-]{20,4096})"),
    " -u ": re.compile(r"""[ \t]*["']?[^\s:"'/]{1,64}:(?P<secret>[^\s"'/$]{4,200})"""),
    "identified by ": re.compile(r"""[ \t]*["'](?P<secret>[^\s"']{4,200})"""),
}


_PASSWORDS: Final = {" -u ", "identified by "}


def find_shapes(text: str) -> Iterator[Found]:
    """Everything in `text` that has a known shape, as (start, end, kind); in any order, may overlap."""
    # Every shape is a long word, and there are far fewer different long words than there is text.
    words = "\n".join(set(_LONG_WORD.findall(text)))
    for shape in SHAPES:
        if shape.literal not in words:
            continue
        at = text.find(shape.literal)
        while at >= 0:
            end, is_secret = _end(text, at, shape)
            if is_secret:
                yield at, end, shape.kind
            at = text.find(shape.literal, end)
    if "eyJ" in text:
        yield from ((*found.span(), "jwt") for found in _JWT.finditer(text) if not _goes_on_from(text, found.start()))
    if "://" in text:
        yield from ((*found.span("secret"), "url_password") for found in _URL.finditer(text))


def find_phrases(text: str, lower: str) -> Iterator[Found]:
    """Credentials behind what announces them; `lower` is `text` in lower case."""
    for phrase, pattern in _PHRASES.items():
        at, patience = lower.find(phrase), Patience()
        while at >= 0:
            found = pattern.match(text, at + len(phrase))
            if found and (looks_random(found["secret"]) or (phrase in _PASSWORDS and not found["secret"].isalpha())):
                yield (*found.span("secret"), "credential")
            at = lower.find(phrase, patience.next(at + len(phrase), found.end() if found else 0))


class Patience:
    """How often one stretch of text is looked at: names in a value have values of their own, but not without end."""

    _TRIES: Final = 8

    def __init__(self) -> None:
        self._until = self._tries = 0

    def next(self, behind: int, end: int) -> int:
        """Where to look on, behind a place that was looked at up to `end`."""
        if behind > self._until:
            self._until, self._tries = end, 0
        self._tries += 1
        return behind if self._tries < self._TRIES else max(behind, self._until)


def _end(text: str, at: int, shape: Shape) -> tuple[int, bool]:
    """Where to look on behind the shape that may begin at `at`, and whether it is a secret up to there."""
    behind = at + len(shape.literal)
    if _goes_on_from(text, at):
        return at + 1, False
    found = shape.body.match(text, behind)
    if found is None:
        return behind, False
    body = found[0]
    if len(body) >= _FEWEST_DISTINCT > len(set(body)) or _WORDS.fullmatch(body):
        # No part of it is anything else.
        return found.end(), False
    if len(body) >= shape.full or (shape.early and len(body) >= shape.early and looks_random(body)):
        return found.end(), True
    return behind, False


def _goes_on_from(text: str, at: int) -> bool:
    """Whether a name goes on at `at` that began before it."""
    return at > 0 and _WORD.match(text, at - 1) is not None

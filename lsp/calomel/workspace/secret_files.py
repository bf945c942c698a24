"""Files that hold secrets, told by their names alone: nobody opens them to find out."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Final

# Names, or a folder and a name; case does not matter.
SECRET_FILES: Final = (
    ".env", ".env.*", "*.env", ".envrc", ".dev.vars", "local.settings.json",
    "*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.der", "*.crt", "*.cer", "*.ppk", "*.jks", "*.keystore",
    "*.truststore", "*.gpg", "*.asc", "*.kdb", "*.kdbx", "*.kbx", "*.ovpn", "*.mobileprovision", "*.age",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "known_hosts", "authorized_keys",
    ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".yarnrc.yml", ".pypirc", ".htpasswd", ".git-credentials",
    ".dockercfg", ".docker/config.json", ".gem/credentials", ".cargo/credentials*", ".config/gh/hosts.yml",
    ".vault-token", "*vault-pass*", "*vault_pass*", ".renviron", ".s3cfg", ".boto",
    "*.secret", "*.secrets", "*.token", "auth.json", "credentials", "credentials.*", "*credentials.json",
    "client_secret*.json", "service-account*.json", "service_account*.json", "kubeconfig", "*.kubeconfig",
    "secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "secrets.ini", "secrets.env",
    "secrets/*.yml", "secrets/*.yaml", "secrets/*.json", "secrets/*.toml", "secrets/*.txt",
    "*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.*",
    ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
)  # fmt: skip

# Everything below them.
SECRET_FOLDERS: Final = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".gcp", ".gcloud", ".kube", ".password-store"})

# They show which settings there are, and are made to be read.
SAMPLES: Final = (
    ".env*.example", ".env*.sample", ".env*.template", ".env*.dist", ".env*.defaults", ".env*.schema", ".env.example.*",
    "example.env", "sample.env", "template.env", "*.example.env", "*.sample.env",
    "*.tfvars.example", "*.tfvars.sample", "credentials.py", "credentials.[ch]", "credentials.ts", "credentials.js",
    "credentials.go", "credentials.rs", "credentials.java", "credentials.cs", "credentials.rb", "credentials.cpp",
    "credentials.md", "*.pub",
)  # fmt: skip

# What editors call a file of such settings, whatever its name.
SECRET_LANGUAGES: Final = frozenset({"dotenv", "env"})


def secret_pattern(path: Path) -> str | None:
    """By which pattern the file holds secrets; None when it does not."""
    folder = next((part for part in path.parts[:-1] if part.lower() in SECRET_FOLDERS), None)
    if folder is not None:
        return f"{folder.lower()}/"
    # Of the folders above, the two closest may belong to a pattern.
    return _pattern(tuple(part.lower() for part in path.parts[-3:]))


def is_sample(path: Path) -> bool:
    """Whether the file only looks like one that holds secrets."""
    return _SAMPLE.fullmatch(path.name.lower()) is not None


@lru_cache(maxsize=4096)
def _pattern(parts: tuple[str, ...]) -> str | None:
    if not parts or _SAMPLE.fullmatch(parts[-1]):
        return None
    for count in range(1, len(parts) + 1):
        found = _FILE.fullmatch("/".join(parts[-count:]))
        if found is not None and found.lastindex is not None:
            return SECRET_FILES[found.lastindex - 1]
    return None


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"({translate(pattern).replace('.*', '[^/]*')})" for pattern in patterns))


_FILE: Final = _any_of(SECRET_FILES)
_SAMPLE: Final = _any_of(SAMPLES)

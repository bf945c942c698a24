"""Go: a package of the standard library is used that the file does not import (docs/decisions/017).

In the other languages no such draft was right at any moment that was measured, and their editors mend it by a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from calomel.suggest.drafts.evidence import EditDraft, Evidence
from calomel.suggest.drafts.text import Rows, is_prose, is_quoted, whole

MAKER: Final = "imports"
_PACKAGES: Final = (
    "bufio bytes cmp context embed errors expvar flag fmt hash io iter log maps os path plugin reflect regexp runtime"
    " slices sort strconv strings sync syscall testing time unicode unique unsafe compress/gzip container/heap"
    " container/list crypto/hmac crypto/md5 crypto/sha256 crypto/tls crypto/x509 database/sql encoding/base64"
    " encoding/binary encoding/csv encoding/hex encoding/json encoding/xml go/ast go/parser go/token html/template"
    " io/fs log/slog math math/big math/bits net net/http net/http/httptest net/netip net/url os/exec os/signal"
    " path/filepath runtime/debug sync/atomic testing/fstest text/tabwriter unicode/utf8"
)
_PATHS: Final = {path.rpartition("/")[2]: path for path in _PACKAGES.split()}
_QUALIFIES: Final = re.compile(r"(?<![\w.$])([a-z]\w*)\.")
_DECLARED: Final = r"\b(?:func|var|type|const)\s+{0}\b|(?<![\w.]){0}\s*(?::=|=(?!=))"
_LINE: Final = re.compile(r'\s+(?:[\w.]+\s+)?"[^"]+"\s*$')
# What stands above the imports: comments, and the package's own line.
_HEAD: Final = re.compile(
    r"(?:[ \t]*//[^\n]*\n|[ \t]*/\*(?:[^*]|\*(?!/))*\*/[ \t]*\r?\n|[ \t]*\r?\n)*package \w+[^\n]*\n"
)


def imports(rows: Rows, seen: Evidence, path: str | None) -> Iterator[EditDraft]:
    """Drafts for packages that only the newest edits use; `path` of the document tells its language."""
    for name in dict.fromkeys(_new_names(rows, seen)) if path is not None and path.endswith(".go") else ():
        draft = _placed(rows, f'"{_PATHS[name]}"')
        if draft is not None:
            yield draft


def _new_names(rows: Rows, seen: Evidence) -> Iterator[str]:
    fresh = [(edit.new, edit.old) for edit in seen.edits if edit.row is not None and not edit.age]
    new = [each for each in seen.insertions if each.row is not None and not each.age]
    fresh += [(line, "") for each in new for line in each.lines]
    fresh = [(line, old) for line, old in fresh if not is_prose(line)]
    together = "\n".join(line for line, _ in fresh)
    for line, old in fresh:
        for match in _QUALIFIES.finditer(line):
            name, word = match[1], whole(match[1])
            if name not in _PATHS or word.search(old) or is_quoted(line, match.start()):
                continue
            uses, known = len(word.findall(together)), len(word.findall(rows.text))
            if known == uses and not re.search(_DECLARED.format(name), together):
                yield name


def _placed(rows: Rows, line: str) -> EditDraft | None:
    """Among the imports in the order of the alphabet; below the package's name in a file without any."""
    block = next((row for row, text in enumerate(rows.lines) if text.strip() == "import ("), None)
    if block is None:
        head = _HEAD.match(rows.text)
        new = f"{rows.line_end}import {line}{rows.line_end}"
        return None if head is None else EditDraft(head.end(), head.end(), new, MAKER, 1, 0.8)
    end = next((row for row in range(block + 1, len(rows)) if not _LINE.match(rows.lines[row])), len(rows))
    before = [row for row in range(block + 1, end) if rows.lines[row].strip() < line]
    at = rows.start(before[-1] + 1 if before else block + 1)
    return EditDraft(at, at, f"\t{line}{rows.line_end}", MAKER, 1, 0.8) if end > block + 1 else None

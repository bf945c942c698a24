"""Emacs, with lsp-mode or with eglot. An init file is a program, which nobody can merge safely."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from calomel.cli.editors.here import Here
from calomel.cli.editors.plan import Plan, Snippet

_LSP_MODE: Final = """(with-eval-after-load 'lsp-mode
  (lsp-register-client
   (make-lsp-client
    :new-connection (lsp-stdio-connection '({program} "lsp"))
    :activation-fn (lambda (&rest _) t)
    :add-on? t
    :server-id 'calomel)))
(add-hook 'lsp-managed-mode-hook #'lsp-inline-completion-mode)
"""
# Under the modes that eglot has servers for, so that it tells their languages: `prog-mode` would make one of them all.
_EGLOT: Final = """(with-eval-after-load 'eglot
  (push (cons (seq-mapcat (lambda (entry)
                            (let ((modes (car entry)))
                              (if (or (symbolp modes) (keywordp (cadr modes))) (list modes) modes)))
                          eglot-server-programs)
              '({program} "lsp" :initializationOptions (:completion_item t)))
        eglot-server-programs))
"""


def plan(here: Here, file: Path | None = None) -> Plan:
    """What belongs into the init file."""
    old, new = here.home / ".emacs.d" / "init.el", here.config / "emacs" / "init.el"
    path = file or (old if old.exists() or not new.exists() else new)
    program = json.dumps(here.program)
    snippets = (
        Snippet(f"in {path}, with lsp-mode 10 (ghost text)", _LSP_MODE.format(program=program)),
        Snippet(f"in {path}, with eglot (completions, and next edits as code actions)", _EGLOT.format(program=program)),
    )
    note = "eglot starts one server for a buffer: Calomel in place of another. lsp-mode runs it beside the others."
    return Plan((), snippets, (note,))

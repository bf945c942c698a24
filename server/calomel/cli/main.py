"""The entry point: how a command line is run, and how errors become exit statuses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

_QUICK: Final = (["lsp"], ["lsp", "--stdio"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line `arguments` (default: the process's own); always raises SystemExit.

    Exit status 0: done. 1: the work failed. 2: the command line, or something that it names, cannot be used.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words in _QUICK:
        # An editor waits for its server at each start: no time for the other commands' imports.
        from calomel.lsp.server import run_stdio

        run_stdio()
    from calomel.cli.app import app
    from calomel.cli.errors import CommandError

    try:
        app(args=words)
    except CommandError as error:
        print(f"calomel: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from error
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("calomel"):
            raise
        print(f"calomel: {error.name} is not installed: pip install 'calomel[bench,train]' brings it", file=sys.stderr)
        raise SystemExit(1) from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # 128 + SIGINT, as shells expect

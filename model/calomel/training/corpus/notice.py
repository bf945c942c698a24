"""The NOTICE: every package whose text is in the corpus, with its licence and archive."""

from collections.abc import Iterable
from dataclasses import dataclass

from calomel.training.corpus.fetch import Archive

_PREAMBLE = """\
This corpus is made of source files from the packages below. Each file stays under the licence
of its package and the copyright of its authors; the copyright lines are in the files themselves
and in the archives named here.
"""


@dataclass(frozen=True, slots=True)
class Credit:
    """One used package: where its text came from, and under which licence."""

    archive: Archive
    license: str


def render_notice(used: Iterable[Credit]) -> str:
    """Render a NOTICE, sorted by ecosystem and name: one paragraph a package."""
    paragraphs = [_PREAMBLE]
    for credit in sorted(used, key=lambda credit: credit.archive.package.key):
        package = credit.archive.package
        use = "held out: measured on, never trained on" if package.held_out else "training"
        paragraphs.append(
            f"{package.name} {package.version}\n"
            f"  ecosystem: {package.ecosystem}\n"
            f"  license: {credit.license}\n"
            f"  archive: {credit.archive.path.name}\n"
            f"  sha256: {credit.archive.sha256}\n"
            f"  use: {use}\n"
        )
    return "\n".join(paragraphs)

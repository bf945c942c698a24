"""The NOTICE: every package and repository whose text is in the corpus, with its licence and origin."""

from collections.abc import Iterable
from dataclasses import dataclass

from calomel.training.corpus.fetch import Archive
from calomel.training.corpus.repositories import Repository

_PREAMBLE = """\
This corpus is made of source files from the packages and repositories below. Each file stays under the licence
of its package or repository and the copyright of its authors; the copyright lines are in the files
themselves, in the archives, and in the repositories at the commits named here.
"""


@dataclass(frozen=True, slots=True)
class Credit:
    """One used package: where its text came from, and under which licence."""

    archive: Archive
    license: str


@dataclass(frozen=True, slots=True)
class RepositoryCredit:
    """One used repository, and under which licences its text is."""

    repository: Repository
    license: str


def render_notice(used: Iterable[Credit], repositories: Iterable[RepositoryCredit] = ()) -> str:
    """Render a NOTICE: one paragraph a package, sorted by ecosystem and name, then one a repository, by name."""
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
    paragraphs.extend(
        f"{credit.repository.name}\n"
        f"  url: {credit.repository.url}\n"
        f"  commit: {credit.repository.commit}\n"
        f"  license: {credit.license}\n"
        "  use: training\n"
        for credit in sorted(repositories, key=lambda credit: credit.repository.key)
    )
    return "\n".join(paragraphs)

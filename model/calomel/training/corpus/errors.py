"""Everything that can go wrong while a corpus is built, one sentence each."""


class CorpusError(Exception):
    """A corpus cannot be built as asked."""


class PackageListError(CorpusError):
    """The package list is not valid: the message names the entry and the field."""


class FetchError(CorpusError):
    """An archive could not be downloaded, or is not the one that the lock file names."""


class ArchiveError(CorpusError):
    """An archive is malformed, too large, or tries to write outside its own folder."""


class LicenseError(CorpusError):
    """A package's licence is unknown or not on the allow-list."""

"""The project's exceptions, as one tree.

TrafficError
├── BadInput     the caller's input is invalid; nothing was changed
├── LakeDamaged  data on disk is missing or damaged; nothing was served
│   ├── NewerVersion      the data is intact, but a newer version of this program wrote it
│   └── OutdatedManifest  the manifest is older than the files; nothing was written
└── Conflict     another process changed the same files; nothing was changed, try again
"""


class TrafficError(Exception):
    """Base class of the project's exceptions. The message is one sentence: what is wrong and what to do about it."""


class BadInput(TrafficError):
    """An argument, a setting or a file that cannot be used as given."""


class LakeDamaged(TrafficError):
    """A file of the lake is missing, was changed, or has a version that this program cannot read."""


class NewerVersion(LakeDamaged):
    """Data on disk was written by a newer version of this program, so this version cannot read it."""


class OutdatedManifest(LakeDamaged):
    """The manifest does not match the files of the lake. The files can be read, but nothing is written."""


class Conflict(TrafficError):
    """Another process or thread changed the same files at the same time."""

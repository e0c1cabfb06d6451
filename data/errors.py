"""Everything that can go wrong on this floor and above, as one tree.

TrafficError
├── BadInput     what the caller gave cannot be used; nothing was changed
├── LakeDamaged  what lies on disk cannot be trusted; nothing was served
│   └── NewerVersion  it is sound, but a newer version of this program wrote it
└── Conflict     somebody else changed the same files; nothing was changed, try again
"""


class TrafficError(Exception):
    """Root of the project's own errors. The text is one sentence that names culprit and remedy."""


class BadInput(TrafficError):
    """An argument, a setting or a file that cannot be used as given."""


class LakeDamaged(TrafficError):
    """A file of the lake is missing, changed, or of a version this program does not know."""


class NewerVersion(LakeDamaged):
    """What lies on disk was written by a newer version of this program, which alone can read it."""


class Conflict(TrafficError):
    """Somebody else changed the same files at the same time."""

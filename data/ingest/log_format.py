"""Determines a log's format from the options or an earlier import, and checks that its visits have a domain."""

from data.errors import BadInput
from data.ingest.block_reader import BlockResult, Options
from data.logs.format_names import HOSTLESS_FORMATS
from data.logs.source import Source
from data.manifest.logs import Batch


def initial_format(path: Source, before: Batch | None, options: Options) -> str:
    """Return the format from the options or, if that is auto, the format used to import the log's beginning, if any.

    Raises BadInput if the earlier import needed a flag that is missing now, or if it guessed columns and this import
    may not guess.
    """
    log_format = before.log_format if before and options.reader == "auto" else options.reader
    name, _, flag = log_format.partition(" ")
    given, _, guessed = flag.partition(" ")
    if guessed and options.flag == given:
        return options.with_flag(name)
    if given not in {"", options.flag} and not (guessed and options.guesses_columns):
        raise BadInput(f"{path} was imported with {flag} before; give the same {given} to import the new lines.")
    return log_format


def check_hosts(path: Source, part: BlockResult, log_format: str, options: Options, is_new: bool) -> None:
    """Raise BadInput if a domain is required, but neither the options nor the log's first block with visits has one.

    In a log that is not new, a block may lack hosts, unless its format never has any.
    """
    is_without = log_format in HOSTLESS_FORMATS or (is_new and not part.names_hosts)
    if options.needs_domain and not options.domain and len(part.visits) and is_without:
        raise BadInput(
            f"{path}: its lines ({log_format}) have no host; give their domain, such as --domain go.example.com."
        )

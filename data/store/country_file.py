"""A lake's country database, and the downloaded file from which it is set up."""

import gzip
import tarfile
import uuid
import zlib
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from data.disk.files import write_bytes_durably
from data.errors import BadInput
from data.rules.geoip import CountryDatabase
from data.store.lake import Lake


class Download(NamedTuple):
    """A downloaded country database, unpacked and checked."""

    content: bytes
    description: str
    address: str  # an address found in it
    country: str  # the country of that address


def country_database(lake: Lake, path: Path | None) -> CountryDatabase | None:
    """Return the database at `path` or, without a path, the lake's database; None if the lake has none. Raises
    BadInput.
    """
    if path is None and not lake.country_database.exists():
        return None
    return CountryDatabase(path or lake.country_database)


def read_download(file: Path) -> Download:
    """Unpack a file in one of the publishers' formats (.mmdb, .mmdb.gz or .tar.gz) and test it with a lookup.

    The file is read before any lake is changed, so an unusable file changes nothing. Raises BadInput.
    """
    try:
        if file.name.endswith((".tar.gz", ".tgz")):
            with tarfile.open(file) as archive:
                databases = (archive.extractfile(one) for one in archive if one.name.endswith(".mmdb"))
                content = next((database.read() for database in databases if database), None)
            if content is None:
                raise BadInput(f"{file} does not contain an .mmdb file; download the database in MMDB format.")
        else:
            content = file.read_bytes()
            content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    except tarfile.TarError as error:
        raise BadInput(f"{file} is not a tar archive or is truncated.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    with NamedTemporaryFile(suffix=".mmdb") as copy:
        copy.write(content)
        copy.flush()
        try:
            database = CountryDatabase(Path(copy.name))
        except BadInput as error:
            raise BadInput(
                f"{file} is not a country database in MaxMind's format; download it in MMDB format."
            ) from error
        found = database.first_country()
        if found is None:
            raise BadInput(f"{file} does not contain countries; `traffic countries` lists databases that do.")
        return Download(content, database.description, *found)


def set_up(lake: Lake, download: Download) -> None:
    """Make a download the lake's country database. Programs that have the old database open keep using it."""
    write_bytes_durably(download.content, lake.staging / f"countries-{uuid.uuid4()}.mmdb", lake.country_database)

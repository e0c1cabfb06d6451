"""Makes the bucket requests for which obstore has no functions: listing keys exactly as stored, listing versions,
and listing and aborting unfinished uploads.

obstore signs each request, so credentials are found and used in the same way everywhere.
"""

import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import count
from types import ModuleType
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote, unquote_plus, urlencode
from xml.etree import ElementTree as Xml

from data.buckets.object_errors import TargetUnavailable, unavailable

_ATTEMPTS: Final = 4
_PIECE_BYTES: Final = 1 << 16
_MAX_BYTES: Final = 1 << 24
"""Maximum size of a response, which lists at most a thousand keys."""
_UNKNOWN: Final = frozenset({400, 404, 405, 501})
"""Statuses that stores return for unsupported operations."""


class ListedObject(NamedTuple):
    """An object in a listing of its bucket."""

    key: str  # below the prefix
    size: int
    etag: str  # changes with the content


class Upload(NamedTuple):
    """An unfinished multipart upload."""

    key: str  # below the prefix
    id: str


class S3Requests:
    """Sends requests about the objects below a prefix in a bucket. Its methods raise TargetUnavailable."""

    def __init__(self, name: str, client: ModuleType, options: Mapping[str, Any], timeout: timedelta) -> None:
        """`name` is the target's name; `client` is obstore, which opens the bucket with `options`."""
        self._name, self._client, self._options, self._timeout = name, client, dict(options), timeout
        self._bucket, _, prefix = name.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""

    def problem(self, error: str, key: str = "") -> TargetUnavailable:
        """Return the exception for a client error or an error response about one object or the whole bucket."""
        return unavailable(self._name, key, error, self._timeout)

    def pages(self, prefix: str = "") -> Iterator[list[ListedObject]]:
        """Yield all objects under a prefix (relative to the target's prefix), page by page, without modifying their
        keys.
        """
        token = dict[str, str]()
        while True:
            found = self._list({"list-type": "2", "prefix": self._prefix + prefix} | token)
            page = []
            for each in found.iterfind("Contents"):
                key, size = self._key_of(each), int(each.findtext("Size", "0"))
                # the time and size replace a missing etag
                page.append(ListedObject(key, size, each.findtext("ETag") or f"{each.findtext('LastModified')} {size}"))
            yield page
            if found.findtext("IsTruncated") != "true":
                return
            token = {"continuation-token": found.findtext("NextContinuationToken", "")}

    def versioning(self) -> str | None:
        """Return the state of versioning: Enabled or Suspended, "" if it was never enabled, None if the store does not
        report it.
        """
        try:
            return _parse_xml(self._ask("GET", "", {"versioning": ""})).findtext("Status", "")
        except (_ErrorAnswer, Xml.ParseError):
            return None

    def earlier_versions(self) -> Iterator[str]:
        """Yield the key of each noncurrent version below the prefix, so a key may occur several times."""
        markers: dict[str, str] = {}
        while True:
            found = self._list({"versions": "", "prefix": self._prefix} | markers)
            for each in found.iterfind("Version"):
                if each.findtext("IsLatest") == "false":
                    yield self._key_of(each)
            if found.findtext("IsTruncated") != "true":
                return
            markers = {
                "key-marker": found.findtext("NextKeyMarker", ""),
                "version-id-marker": found.findtext("NextVersionIdMarker", ""),
            }

    def uploads(self) -> list[Upload]:
        """Return the unfinished multipart uploads below the prefix; none if the store does not support them."""
        uploads, markers = list[Upload](), dict[str, str]()
        while True:
            try:
                found = self._list({"uploads": "", "prefix": self._prefix} | markers)
            except _ErrorAnswer as error:
                if error.status in _UNKNOWN:
                    return uploads
                raise
            found_here = found.iterfind("Upload")
            uploads += [Upload(self._key_of(each), each.findtext("UploadId", "")) for each in found_here]
            if found.findtext("IsTruncated") != "true":
                return uploads
            markers = {
                "key-marker": found.findtext("NextKeyMarker", ""),
                "upload-id-marker": found.findtext("NextUploadIdMarker", ""),
            }

    def abort(self, upload: Upload) -> None:
        """Abort an upload, which deletes its parts."""
        try:
            self._ask("DELETE", self._prefix + upload.key, {"uploadId": upload.id})
        except _ErrorAnswer as error:
            if error.status != 404:  # 404: already gone
                raise

    def _list(self, query: Mapping[str, str]) -> Xml.Element:
        """Return a listing of the bucket as XML. If it cannot be parsed, request it again with URL-encoded keys, and
        decode them.
        """
        try:
            return _parse_xml(self._ask("GET", "", query))
        except Xml.ParseError:  # for example, a key has a control character, which XML cannot represent
            coded = {"encoding-type": "url"}
        try:
            found = _parse_xml(self._ask("GET", "", {**query, **coded}))
        except Xml.ParseError:
            raise self.problem("") from None
        for key in found.iterfind("*/Key") if found.findtext("EncodingType") == "url" else ():
            key.text = unquote_plus(key.text or "")
        return found

    def _key_of(self, each: Xml.Element) -> str:
        return each.findtext("Key", "").removeprefix(self._prefix)

    def _ask(self, method: str, key: str, query: Mapping[str, str]) -> bytes:
        """Send a request for an object (the bucket if `key` is empty), with retries, and return the response's body.

        Raises _ErrorAnswer for an error response, and TargetUnavailable if there is no usable response.
        """
        for attempt in count(1):
            try:
                return _answer(method, self._sign(method, key, query), self._timeout.total_seconds())
            except HTTPError as error:
                text = _beginning(error)
                if error.code < 500 or error.code == 501 or attempt == _ATTEMPTS:
                    problem = self.problem(f"status code: {error.code} {error.reason}: {text}")
                    raise _ErrorAnswer(str(problem), error.code) from None
            except (OSError, ValueError) as error:
                if attempt == _ATTEMPTS or isinstance(error, TimeoutError):
                    text = "kind: Timeout" if isinstance(error, TimeoutError) else ""
                    raise self.problem(text) from None
            time.sleep(0.1 * 2**attempt)
        raise AssertionError

    def _sign(self, method: str, key: str, query: Mapping[str, str]) -> str:
        """Return a signed URL with this query, valid for twice the time-out.

        obstore signs only URLs of objects, so the endpoint given to it is the requested URL with its query; the last
        parameter, which stores ignore, absorbs the object key that obstore appends.
        """
        from obstore.store import S3Store  # noqa: PLC0415  # only the extra installs it

        life = 2 * self._timeout
        try:
            plain = str(self._client.sign(S3Store(self._bucket, **self._options), method, "x", life))
            base = plain.partition("?")[0].removesuffix("x") + quote(key)
            asked = f"{base.rstrip('/') if not key else base}?{urlencode(query, quote_via=quote)}&x-id="
            options = self._options | {"endpoint": asked, "virtual_hosted_style_request": True}
            return str(self._client.sign(S3Store(self._bucket, **options), method, "x", life))
        except self._client.exceptions.BaseError as error:
            raise self.problem(str(error)) from None


class _ErrorAnswer(TargetUnavailable):
    """An error response."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def _answer(method: str, address: str, timeout: float) -> bytes:
    """Send a request; return the body of the response. Raises ValueError for an invalid, truncated or oversized
    response, and OSError for other failures, such as a response that takes longer than `timeout` seconds.
    """
    ends_at, body = time.monotonic() + timeout, bytearray()
    # slow to import, and commands import this file without using a store
    import http.client  # noqa: PLC0415
    import urllib.request  # noqa: PLC0415

    request = urllib.request.Request(address, method=method)  # noqa: S310  # the address is the store's
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
            while piece := answer.read1(_PIECE_BYTES):
                body += piece
                if time.monotonic() > ends_at:
                    raise TimeoutError
                if len(body) > _MAX_BYTES:
                    raise ValueError("the response is too long")
            if answer.length:
                raise ValueError("the response was truncated")
    except http.client.HTTPException as error:  # such as an invalid status line, or a chunk without its end
        raise ValueError("the response is invalid") from error
    return bytes(body)


def _beginning(error: HTTPError) -> str:
    """Return the beginning of the body of an error response; "" if the body does not arrive or is invalid."""
    from http.client import HTTPException  # noqa: PLC0415  # slow to import

    try:
        return error.read(_PIECE_BYTES).decode("utf-8", "replace")
    except (OSError, HTTPException):
        return ""


def _parse_xml(body: bytes) -> Xml.Element:
    """Parse a response, without its namespaces. Raises ParseError."""
    root = Xml.fromstring(body)  # noqa: S314  # expat limits the expansion of entities
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root

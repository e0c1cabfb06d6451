"""An object store that speaks the S3 protocol and fails on purpose, in memory and on the loopback interface.

It answers every path-style request that the product sends to a bucket, and accepts every signature.
"""

import hashlib
import itertools
import re
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

import pytest

MOMENT = "2026-03-10T12:00:00.000Z"


class Version(NamedTuple):
    """A version of an object; without a body, it marks a deletion."""

    body: bytes | None
    name: str

    @property
    def etag(self):
        return hashlib.md5(self.body).hexdigest()  # like S3


class Failure(NamedTuple):
    """A kind of failure, for requests in which `pattern` is found: "METHOD /bucket/key?query"."""

    pattern: str
    how: str  # "403 AccessDenied": that status and code; "cut"; "chunk"; "drip"; "late"; "lost"; "garbage"; "noise"
    times: int


class FailingStore(ThreadingHTTPServer):
    """The store. A request fails in the way of the first of `failures` that matches it and has not been used up."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.buckets, self.versioning, self.uploads = {"bucket": {}}, "", {}
        self.failures, self.late, self.asked = [], [], []
        self.page, self.lock, self.numbers = 1_000, threading.Lock(), itertools.count(1)
        self.dripping = threading.Event()
        self.released = threading.Event()  # ends all drips

    def fail(self, pattern, how, times=1_000_000):
        self.failures.append(Failure(pattern, how, times))

    def mend(self):
        self.failures.clear()

    def failure(self, request):
        with self.lock:
            self.asked.append(request)
            for at, one in enumerate(self.failures):
                if one.times and re.search(one.pattern, request):
                    self.failures[at] = one._replace(times=one.times - 1)
                    return one.how
        return ""

    def apply_late(self):
        """Apply the delayed puts."""
        for apply in self.late:
            apply()
        self.late.clear()

    def bodies(self, bucket="bucket"):
        """Return every body that the store still has: objects, earlier versions and parts."""
        versions = [version.body for each in self.buckets[bucket].values() for version in each]
        return [*filter(None, versions), *(body for _, parts in self.uploads.values() for body in parts.values())]

    def objects(self, bucket="bucket"):
        return {key: each[-1] for key, each in self.buckets[bucket].items() if each and each[-1].body is not None}

    def put(self, key, body, bucket="bucket"):
        with self.lock:
            name = f"v{next(self.numbers)}" if self.versioning == "Enabled" else "null"
            kept = [one for one in self.buckets[bucket].get(key, []) if one.name != name]
            self.buckets[bucket][key] = [*kept, Version(body, name)]
        return name

    def remove(self, key, bucket="bucket"):
        if self.versioning:
            self.put(key, None, bucket)
        else:
            self.buckets[bucket].pop(key, None)

    def handle_error(self, *_):
        """Ignore errors, which are due to clients that closed their connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        address = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        self.bucket, _, self.key = unquote(address.path).removeprefix("/").partition("/")
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        signed = {name: value for name, value in self.query.items() if not name.startswith("X-Amz-")}
        asked = f"{self.command} /{self.bucket}/{self.key}?{'&'.join(f'{k}={v}' for k, v in signed.items())}"
        self.how = self.server.failure(asked)
        if re.match(r"\d{3} ", self.how):
            self.refuse(int(self.how[:3]), self.how[4:])
        elif self.bucket not in self.server.buckets:
            self.refuse(404, "NoSuchBucket")
        elif self.how == "late":
            self.server.late.append(partial(self.server.put, self.key, sent, self.bucket))
            self.refuse(500, "InternalError")
        elif self.how == "noise":
            self.wfile.write(b"not HTTP\r\n\r\n")
            self.close_connection = True
        elif self.how == "garbage":
            self.send(b"\xff\xfegarbage")
        else:
            getattr(self, f"answer_{self.command}")(sent)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def answer_GET(self, _):
        if "versioning" in self.query:
            status = f"<Status>{self.server.versioning}</Status>" if self.server.versioning else ""
            self.send_xml("VersioningConfiguration", status)
        elif "uploads" in self.query:
            prefix = self.query.get("prefix", "")
            self.send_xml("ListMultipartUploadsResult", "<IsTruncated>false</IsTruncated>" + "".join(
                f"<Upload><Key>{self.coded(key)}</Key><UploadId>{upload}</UploadId><Initiated>{MOMENT}</Initiated></Upload>"
                for upload, (key, _) in self.server.uploads.items() if key.startswith(prefix)
            ))  # fmt: skip
        elif "versions" in self.query:
            self.send_xml("ListVersionsResult", "<IsTruncated>false</IsTruncated>" + "".join(
                f"<{kind}><Key>{self.coded(key)}</Key><VersionId>{one.name}</VersionId>"
                f"<IsLatest>{str(one is each[-1]).lower()}</IsLatest></{kind}>"
                for key, each in self.server.buckets[self.bucket].items() if key.startswith(self.query["prefix"])
                for one in each for kind in [("Version", "DeleteMarker")[one.body is None]]
            ))  # fmt: skip
        elif not self.key:
            self.list_objects()
        else:
            self.get_object()

    def answer_HEAD(self, _):
        self.get_object()

    def list_objects(self):
        prefix, after = self.query.get("prefix", ""), unquote(self.query.get("continuation-token", ""))
        keys = [key for key in sorted(self.server.objects(self.bucket)) if key.startswith(prefix) and key > after]
        page, objects = keys[: self.server.page], self.server.objects(self.bucket)
        more = f"<NextContinuationToken>{quote(page[-1])}</NextContinuationToken>" if len(keys) > len(page) else ""
        self.send_xml("ListBucketResult", "".join((
            f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated>{more}",
            *(
                f"<Contents><Key>{self.coded(key)}</Key><LastModified>{MOMENT}</LastModified>"
                f'<ETag>"{objects[key].etag}"</ETag><Size>{len(objects[key].body)}</Size></Contents>' for key in page
            ),
        )))  # fmt: skip

    def get_object(self):
        found = self.server.objects(self.bucket).get(self.key)
        if found is None:
            self.refuse(404, "NoSuchKey")
            return
        body, headers = found.body, {"ETag": f'"{found.etag}"', "Last-Modified": "Tue, 10 Mar 2026 12:00:00 GMT"}
        if part := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            start, end = int(part[1]), min(int(part[2]) + 1, len(body))
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
            self.send(body[start:end], 206, headers)
        else:
            self.send(body, 200, headers)

    def answer_PUT(self, sent):
        if "partNumber" in self.query:
            self.server.uploads[self.query["uploadId"]][1][int(self.query["partNumber"])] = sent
            self.send(b"", 200, {"ETag": '"part"'})
        elif self.headers.get("If-None-Match") == "*" and self.key in self.server.objects(self.bucket):
            self.refuse(412, "PreconditionFailed")
        else:
            name = self.server.put(self.key, sent, self.bucket)
            version = {"x-amz-version-id": name} if name != "null" else {}
            etag = self.server.objects(self.bucket)[self.key].etag
            if self.how == "lost":  # the answer, not the object
                self.refuse(500, "InternalError")
            else:
                self.send(b"", 200, {"ETag": f'"{etag}"', **version})

    def answer_POST(self, sent):
        if "delete" in self.query:
            keys = [unescape(key.decode()) for key in re.findall(rb"<Key>(.*?)</Key>", sent)]
            for key in keys:
                self.server.remove(key, self.bucket)
            self.send_xml("DeleteResult", "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys))
        elif "uploads" in self.query:
            upload = f"upload-{next(self.server.numbers)}"
            self.server.uploads[upload] = (self.key, {})
            self.send_xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
        else:
            _, parts = self.server.uploads.pop(self.query["uploadId"])
            self.server.put(self.key, b"".join(parts[number] for number in sorted(parts)), self.bucket)
            self.send_xml("CompleteMultipartUploadResult", '<ETag>"whole"</ETag>')

    def answer_DELETE(self, _):
        if "uploadId" in self.query:
            self.server.uploads.pop(self.query["uploadId"], None)
        else:
            self.server.remove(self.key, self.bucket)
        self.send(b"", 204)

    def coded(self, key):
        return quote(key) if "encoding-type" in self.query else escape(key)

    def send_xml(self, name, text):
        text += "<EncodingType>url</EncodingType>" if "encoding-type" in self.query else ""
        self.send(f'<?xml version="1.0" encoding="UTF-8"?><{name}>{text}</{name}>'.encode())

    def refuse(self, status, code):
        self.send(f"<Error><Code>{code}</Code><Message>on purpose</Message></Error>".encode(), status)

    def send(self, body, status=200, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if self.how.endswith("chunk"):
            self.send_header("Transfer-Encoding", "chunked")
        elif status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.how.endswith("chunk"):
            self.wfile.write(f"{len(body):x}\r\n".encode() + body[: len(body) // 2])
            self.close_connection = True
        elif self.how == "cut":
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif self.how == "drip":
            self.server.dripping.set()
            for at in range(len(body)):
                self.wfile.write(body[at : at + 1])
                self.wfile.flush()
                if not self.server.released.wait(0.5):
                    continue
                self.wfile.write(body[at + 1 :])
                break
        else:
            self.wfile.write(body)

    def log_message(self, *_):
        """Log nothing."""


@contextmanager
def failing_store():
    """Run a store and yield it; its address and keys are in the environment of this process and its children."""
    with FailingStore() as store, pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret-of-the-tests", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": store.address, "NO_PROXY": "127.0.0.1",
        }.items():  # fmt: skip
            patch.setenv(name, value)
        threading.Thread(target=store.serve_forever, args=(0.05,), daemon=True).start()
        yield store
        store.released.set()
        store.shutdown()

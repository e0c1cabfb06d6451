"""Receivers on the loopback interface that follow a script, and certificates for them."""

import contextlib
import json
import socket
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.sockets import read_until

OK = "HTTP/1.1 204 No Content\r\n\r\n"
MANY = {
    "flood": b"x" * 10_000_000,
    "1000 headers": b"X: x\r\n" * 1_000,
    "101 bytes": b"x" * 101,
    "100 Continue for ever": b"HTTP/1.1 100 Continue\r\n\r\n" * 8_000,
}


def answer(body="", status=200, *lines):
    """Return the bytes of a response with a body: text, bytes, or an object to encode as JSON."""
    content = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    head = "\r\n".join((f"HTTP/1.1 {status} x", *lines, f"Content-Length: {len(content)}", "", ""))
    return head.encode() + content


class Received:
    """A request that a receiver got, and when."""

    def __init__(self, raw, at):
        self.at = at
        head, _, self.body = raw.partition(b"\r\n\r\n")
        self.first, *lines = head.decode("latin-1").split("\r\n")
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


class Receiver:
    """Answers each connection with the next script, a list of steps; the last script is repeated. A step is text or
    bytes to send, a key of MANY, hang, drip or wait.

    hang: send nothing until the sender closes or the receiver ends; drip: send a byte every tenth of a second until
    then; wait: wait until `released` is set. After a script, the connection is closed.
    """

    def __init__(self, *scripts, host="127.0.0.1", port=0, tls=None, clock=time.monotonic):
        self.scripts = list(scripts or [[OK]])
        self.requests = []
        self.connections = 0
        self.changed = threading.Condition()
        self.is_ending, self.released = threading.Event(), threading.Event()
        self._clock = clock
        self._tls = tls
        self._threads = []
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family)
        self.port = self._listener.getsockname()[1]
        bracketed = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{bracketed}:{self.port}/hook"
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._listener.accept()
                if self.is_ending.is_set():
                    connection.close()
                    return
                self.connections += 1
                self._threads.append(threading.Thread(target=self._serve, args=[connection]))
                self._threads[-1].start()

    def script_of(self, _request):
        """Return the script for responding to a request."""
        return self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]

    def _serve(self, connection):
        with contextlib.suppress(OSError), contextlib.closing(connection):
            connection.settimeout(60)
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with contextlib.closing(connection):
                request = Received(read_request(connection), self._clock())
                with self.changed:
                    script = self.script_of(request)
                    if request.first:
                        self.requests.append(request)
                        self.changed.notify_all()
                for step in script:
                    self._do(step, connection)
                if script:
                    connection.shutdown(socket.SHUT_WR)
                    connection.settimeout(1)
                    while connection.recv(65_536):
                        pass

    def _do(self, step, connection):
        if step in ("hang", "drip"):
            stall(connection, b"x" * (step == "drip"), self.is_ending)
        elif step == "wait":
            self.released.wait(60)
        else:
            content = MANY.get(step, step)
            connection.sendall(content if isinstance(content, bytes) else content.encode("latin-1"))

    def wait_for(self, count):
        """Wait for the first `count` requests, and return them."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, 60), self.requests
            return self.requests[:count]

    def close(self):
        self.is_ending.set()
        self.released.set()
        with contextlib.suppress(OSError):
            socket.create_connection(self._listener.getsockname()[:2], timeout=5).close()
        self._accepting.join()
        self._listener.close()
        for thread in self._threads:
            thread.join()


def stall(connection, drop, ending):
    """Send nothing, or a drop every tenth of a second, until the other side closes or the receiver ends."""
    connection.settimeout(0.1)
    while not ending.is_set():
        if drop:
            connection.send(drop)
        with contextlib.suppress(TimeoutError):
            if not connection.recv(1):
                return


def read_request(connection):
    """Read and return one request with its body; return b"" if the connection ends within its header or begins with
    TLS."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        raw += (piece := connection.recv(65_536))
        if not piece or raw[0] == 0x16:  # TLS, to a receiver without TLS
            return b""
    head, _, body = raw.partition(b"\r\n\r\n")
    length = next((int(line[16:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")), 0)
    return head + b"\r\n\r\n" + read_until(connection, lambda body: len(body) >= length, body)


class Authority:
    """The tests' own certificate authority."""

    def __init__(self, folder):
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tests")])
        own = self._certificate(self._name, self._key, timedelta(days=1), x509.BasicConstraints(ca=True, path_length=0))
        self.file = folder / "authority.pem"
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def certificate(self, host, lifetime=timedelta(days=1)):
        """Return a file with a private key and a certificate for this host; the certificate has expired if `lifetime`
        is negative."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        certificate = self._certificate(name, key, lifetime, x509.SubjectAlternativeName([x509.DNSName(host)]))
        file = self._folder / f"{host}-{lifetime.days}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        return file

    def context(self, host, lifetime=timedelta(days=1)):
        """Return the TLS context for a receiver with this host name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate(host, lifetime))
        return context

    def _certificate(self, name, key, lifetime, extension):
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=9))
            .not_valid_after(now + lifetime)
            .add_extension(extension, critical=False)
            .sign(self._key, hashes.SHA256())
        )

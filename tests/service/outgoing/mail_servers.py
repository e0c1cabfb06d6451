"""Real SMTP servers, and a scripted server, on the loopback interface."""

import asyncio
import socket
import threading
from contextlib import contextmanager, suppress

from aiosmtpd.smtp import SMTP, AuthResult

from tests.support.receivers import stall

PASSWORD = "s3cret+word"


class Mailbox:
    """The envelopes that a server has received. It rejects the recipients in `refused`."""

    def __init__(self, refused=()):
        self.refused = refused
        self.mails = []
        self.passwords = []

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address in self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.mails.append(envelope)
        return "250 OK"

    def sign_in(self, server, session, envelope, mechanism, data):
        self.passwords.append(data.password.decode())
        return AuthResult(success=data.password.decode() == PASSWORD, handled=False)


@contextmanager
def smtp_server(mailbox, tls=None, **options):
    """Serve SMTP while in this context, with TLS from the start if `tls` is given; yield the port."""
    loop = asyncio.new_event_loop()

    def protocol():
        return SMTP(mailbox, authenticator=mailbox.sign_in, auth_require_tls=False, loop=loop, **options)

    server = loop.run_until_complete(loop.create_server(protocol, "127.0.0.1", 0, ssl=tls))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(closed(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


ANSWERS = {
    "greeting": "220 here", "EHLO": "250 here", "HELO": "250 here", "MAIL": "250 OK", "RCPT": "250 OK",
    "DATA": "354 go on", "message": "250 OK", "QUIT": "221 bye",
}  # fmt: skip


class ScriptedServer:
    """Answers one connection with ANSWERS, some of which are replaced by `script`. None closes the connection.

    `hang` sends nothing until the client closes the connection, `drip` a byte every tenth of a second until then, and
    `flood` an endless response.
    """

    def __init__(self, script):
        self.answers = ANSWERS | script
        self.received = bytearray()
        self.connected = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        if not self.connected.is_set():  # from an earlier failed test
            socket.create_connection(("127.0.0.1", self.port)).close()
        self._thread.join()

    def _serve(self):
        with self._listener, suppress(OSError):
            connection, _ = self._listener.accept()
            self.connected.set()
            with connection, connection.makefile("rb") as lines:
                verb = "greeting"
                while self._answer(connection, self.answers.get(verb, "502 unknown")):
                    if verb == "DATA" and self.answers["DATA"] == ANSWERS["DATA"]:
                        verb = "message"
                        while (line := lines.readline()) not in {b"", b".\r\n"}:
                            self.received += line
                    else:
                        line = lines.readline()
                        self.received += line
                        verb = line[:4].decode("latin-1").upper()
                    if not line:
                        return

    def _answer(self, connection, answer):
        """Send an answer; return whether the conversation continues."""
        if answer == "flood":
            while True:
                connection.sendall(b"250-more\r\n" * 10_000)
        if answer in {"hang", "drip"}:
            stall(connection, b"2" * (answer == "drip"), threading.Event())
            return False
        if answer is not None:
            connection.sendall(f"{answer}\r\n".encode())
        return answer is not None


async def closed(server):
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

"""Real SMTP servers on the loopback interface, and one that says nothing."""

import asyncio
import socket
import threading
from contextlib import contextmanager

from aiosmtpd.smtp import SMTP, AuthResult

PASSWORD = "s3cret+word"


class Mailbox:
    """What a server got: the envelope of each mail. Recipients in `refused` are refused."""

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
    """Serves SMTP as long as the with block lasts, with TLS from the start if there is `tls`; yields the port."""
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


async def closed(server):
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def silent_server(until_data=False):
    """A listener that answers nothing, or all but the message itself.

    Yields its port, what it received, and an event that is set when somebody connects.
    """
    received, connected = bytearray(), threading.Event()

    def serve():
        connection, _ = listener.accept()
        connected.set()
        with connection:
            replies = until_data
            if replies:
                connection.sendall(b"220 here\r\n")
            while chunk := connection.recv(65_536):
                received.extend(chunk)
                if replies:
                    replies = chunk.lower() != b"data\r\n"
                    connection.sendall(b"250 OK\r\n" if replies else b"354 go on\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1], received, connected
        finally:
            if not connected.is_set():  # a test that failed before: nobody will come
                socket.create_connection(listener.getsockname()).close()
            thread.join()

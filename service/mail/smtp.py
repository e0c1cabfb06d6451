"""One conversation with an SMTP server, within a time limit."""

import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from typing import Final

from data import TrafficError
from service.mail_settings import SmtpServer

CONNECT_SECONDS: Final = 5.0
REPLY_SECONDS: Final = 15.0
"""How long each reply of the server may take."""
CONVERSATION_SECONDS: Final = 60.0
"""How long everything may take: a server that sends byte by byte holds nobody for longer."""
MAX_REPLY: Final = 200
"""Characters of a server's reply in messages."""


class MailFailed(TrafficError):
    """The message was sent to nobody."""


class Mailer:
    """Sends messages through one SMTP server. Safe to interrupt from another thread."""

    def __init__(self, server: SmtpServer) -> None:
        self._server = server
        self._connection: _Connection | None = None
        self._interrupted = threading.Event()

    def send(self, message: EmailMessage, sender: str, recipients: tuple[str, ...]) -> list[str]:
        """Send one message. Returns what went wrong although it may have been delivered, a sentence each.

        Raises MailFailed when nobody got it, with a message that has no password.
        """
        try:
            with self._connected() as connection:
                self._secure(connection)
                return self._transfer(connection, message, sender, recipients)
        except smtplib.SMTPAuthenticationError as error:
            raise self._failed(f"refused the user or the password ({error.smtp_code})") from None
        except smtplib.SMTPResponseException as error:
            raise self._failed(f"answered {_reply(error.smtp_code, error.smtp_error)}") from error
        except TimeoutError as error:
            raise self._failed("did not answer in time") from error
        except (smtplib.SMTPException, OSError) as error:
            raise self._failed(f"could not be used ({error})") from error

    def interrupt(self) -> None:
        """End the conversation, and all that follow."""
        self._interrupted.set()
        if connection := self._connection:
            connection.abort()

    @contextmanager
    def _connected(self) -> "Iterator[_Connection]":
        connection = self._connection = _Connection(self._server, self._interrupted)
        timer = threading.Timer(CONVERSATION_SECONDS, connection.abort)
        timer.daemon = True
        timer.start()
        try:
            code, reply = connection.connect(self._server.host, self._server.port)
            if code != 220:
                raise smtplib.SMTPConnectError(code, reply)
            connection.ehlo_or_helo_if_needed()
            yield connection
            with suppress(smtplib.SMTPException, OSError):  # the message is delivered already
                connection.quit()
        finally:
            timer.cancel()
            connection.close()
            self._connection = None

    def _secure(self, connection: "_Connection") -> None:
        """Sign in, if there is a password: never without TLS."""
        server = self._server
        if not server.password:
            return
        if not server.tls:
            if not connection.has_extn("starttls"):
                raise self._failed("offers no STARTTLS, without which the password is not sent")
            connection.starttls(context=ssl.create_default_context())
            connection.ehlo()
        connection.login(server.user, server.password)

    def _transfer(
        self, connection: "_Connection", message: EmailMessage, sender: str, recipients: tuple[str, ...]
    ) -> list[str]:
        code, reply = connection.mail(sender)
        if code != 250:
            raise smtplib.SMTPSenderRefused(code, reply, sender)
        replies = {recipient: connection.rcpt(recipient) for recipient in recipients}
        refused = [
            f"{recipient} was refused: {_reply(*reply)}."
            for recipient, reply in replies.items()
            if reply[0] not in {250, 251}
        ]
        if len(refused) == len(recipients):
            raise self._failed(f"refused every recipient: {' '.join(refused)}".rstrip("."))
        try:
            code, reply = connection.data(message.as_bytes())
        except (smtplib.SMTPServerDisconnected, OSError):
            refused.append(f"The mail server {self._server.host} did not confirm the mail, which may have arrived.")
        else:
            if code != 250:
                raise smtplib.SMTPDataError(code, reply)
        return refused

    def _failed(self, problem: str) -> MailFailed:
        return MailFailed(f"the mail server {self._server.host}:{self._server.port} {problem}.")


class _Connection(smtplib.SMTP):
    """A connection, with or without TLS, whose socket another thread may shut down."""

    def __init__(self, server: SmtpServer, interrupted: threading.Event) -> None:
        super().__init__(timeout=REPLY_SECONDS)
        self._host = server.host  # which STARTTLS checks the certificate against
        self._tls = server.tls
        self._interrupted = interrupted
        self._opened: socket.socket | None = None

    def abort(self) -> None:
        """Let every call that waits for the server fail."""
        if self._opened:
            with suppress(OSError):  # closed already
                self._opened.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        super().close()
        if self._opened:
            self._opened.close()

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        """Connect; overrides what smtplib connects with."""
        connected = socket.create_connection((host, port), CONNECT_SECONDS)
        self._opened = connected.dup()  # of the same connection, whatever TLS makes of the first one
        if self._interrupted.is_set():
            connected.close()
            raise ConnectionAbortedError("interrupted")
        connected.settimeout(timeout)
        if self._tls:
            return ssl.create_default_context().wrap_socket(connected, server_hostname=host)
        return connected


def _reply(code: int, reply: bytes | str) -> str:
    """A server's reply, which is text of strangers, on one line."""
    text = reply.decode("ascii", "replace") if isinstance(reply, bytes) else reply
    return f"{code} {''.join(letter if letter.isprintable() else ' ' for letter in text)[:MAX_REPLY]}"

"""Sends mail through an SMTP server, with one deadline for the whole conversation."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from email.message import EmailMessage
from functools import partial
from typing import Final, cast

from aiosmtplib import SMTP, errors

from data import TrafficError
from service.core.mail_settings import SmtpServer
from service.core.threads import in_daemon_thread
from service.outgoing.connection import OutgoingError, connect

CONNECT_SECONDS: Final = 5.0
REPLY_SECONDS: Final = 15.0
"""Time limit for each reply of the server."""
CONVERSATION_SECONDS: Final = 60.0
"""Time limit for the whole conversation, starting with the name lookup."""
MAX_REPLY: Final = 200
"""Maximum number of characters to quote from a server's reply."""


class MailFailed(TrafficError):
    """The message reached no recipient."""


class Mailer:
    """Sends messages through one SMTP server. Safe to interrupt from another thread."""

    def __init__(self, server: SmtpServer) -> None:
        self._server = server
        self._is_interrupted = False
        self._cancel: Callable[[], object] = lambda: None

    def send(self, message: EmailMessage, sender: str, recipients: tuple[str, ...]) -> list[str]:
        """Send one message. Returns a sentence for each problem; at least one recipient may still have received it.

        Raises MailFailed if no recipient received it; the exception's message does not contain the password.
        """
        try:
            return asyncio.run(self._send(message, sender, recipients))
        except asyncio.CancelledError:
            raise self._failed("did not finish before this program ended") from None
        except errors.SMTPAuthenticationError as error:
            raise self._failed(f"rejected the user name or password ({error.code})") from None
        except errors.SMTPResponseException as error:
            raise self._failed(f"answered {_reply(error)}") from error
        except TimeoutError as error:
            raise self._failed("did not answer in time") from error
        except (OutgoingError, errors.SMTPException, OSError) as error:
            raise self._failed(f"could not be used ({error.__cause__ or error})") from error

    def interrupt(self) -> None:
        """Cancel the current conversation, and prevent any further conversation."""
        self._is_interrupted = True
        with suppress(RuntimeError):  # the conversation has just ended
            self._cancel()

    async def _send(self, message: EmailMessage, sender: str, recipients: tuple[str, ...]) -> list[str]:
        """Send one message. Raises the exceptions that `send` translates.

        A password is sent only over TLS, to a server with a valid certificate. smtps always requires a valid
        certificate. With smtp and no password, STARTTLS is used if offered, and any certificate is accepted: private
        mail servers often have a self-signed certificate.
        """
        server, task = self._server, asyncio.current_task()
        if task:
            self._cancel = partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel)
        if self._is_interrupted:
            raise asyncio.CancelledError
        async with asyncio.timeout(CONVERSATION_SECONDS):
            deadline = asyncio.get_running_loop().time() + CONNECT_SECONDS
            async with asyncio.timeout_at(deadline):
                connected = await connect(server.host, server.port, deadline)
            with connected:
                client = _Client(
                    hostname=server.host, sock=connected, local_hostname=await in_daemon_thread(socket.getfqdn),
                    username=server.user or None, password=server.password or None, use_tls=server.tls,
                    start_tls=True if server.password and not server.tls else None,
                    validate_certs=server.tls or bool(server.password), timeout=REPLY_SECONDS,
                )  # fmt: skip
                try:
                    await client.connect()
                    return await self._transfer(client, message, sender, recipients)
                finally:
                    client.close()

    async def _transfer(
        self, client: SMTP, message: EmailMessage, sender: str, recipients: tuple[str, ...]
    ) -> list[str]:
        await client.mail(sender)
        problems = []
        for recipient in recipients:
            try:
                await client.rcpt(recipient)
            except errors.SMTPRecipientRefused as error:
                problems.append(f"{recipient} was refused: {_reply(error)}.")
        if len(problems) == len(recipients):
            raise self._failed(f"refused every recipient: {' '.join(problems)}".rstrip("."))
        try:
            await client.data(message.as_bytes())
        except (errors.SMTPServerDisconnected, OSError, asyncio.CancelledError):  # CancelledError: also at a deadline
            problems.append(f"The mail server {self._server.host} did not confirm the mail, which may have arrived.")
        else:
            with suppress(errors.SMTPException, OSError, asyncio.CancelledError):  # the message is delivered already
                await client.quit()
        return problems

    def _failed(self, problem: str) -> MailFailed:
        return MailFailed(f"the mail server {self._server.host}:{self._server.port} {problem}.")


class _Client(SMTP):
    """A client that closes immediately, instead of waiting for the server's TLS shutdown."""

    def close(self) -> None:
        """Close the connection."""
        if self.transport:
            cast("asyncio.Transport", self.transport).abort()
        super().close()


def _reply(error: errors.SMTPResponseException) -> str:
    """Return a server's reply, which is untrusted text, on one line."""
    text = "".join(letter if letter.isprintable() else " " for letter in error.message)
    return f"{error.code} {text[:MAX_REPLY]}"

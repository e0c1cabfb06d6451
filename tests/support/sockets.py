"""Reads from sockets until something has arrived: a loop over recv() that ignores its end never ends."""


def read_until(connection, is_whole, beginning=b""):
    """What arrives, after `beginning`, until `is_whole` is true of it. Raises ConnectionError if it ends before."""
    content = beginning
    while not is_whole(content):
        piece = connection.recv(65_536)
        if not piece:
            raise ConnectionError(f"the connection was closed after {content!r}")
        content += piece
    return content

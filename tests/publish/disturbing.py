"""A bucket that sends erroneous, truncated or slow responses."""

import http.client
import http.server
import threading
import time
from contextlib import closing, contextmanager
from urllib.parse import urlsplit


class Disturbing(http.server.BaseHTTPRequestHandler):
    """Passes requests on to the bucket, and disturbs the responses as its server's `how` requires."""

    def answer(self):
        address = urlsplit(self.server.bucket.address)
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with closing(http.client.HTTPConnection(address.hostname, address.port, timeout=30)) as upstream:
            upstream.request(self.command, self.path, sent, dict(self.headers))
            answer = upstream.getresponse()
            body, how = answer.read(), self.server.how
        if isinstance(how, float) and self.command == "PUT":
            time.sleep(how)
        if how == "500":
            self.send_error(500)
            return
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in {"content-length", "transfer-encoding", "connection"}:
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        is_object = "list-type" not in self.path
        if how == "slow":
            for at in range(0, len(body), 200):
                self.wfile.write(body[at : at + 200])
                self.wfile.flush()
                time.sleep(0.05)
        else:
            self.wfile.write(body[: len(body) // 2] if how == "cut" and is_object else body)
        self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


@contextmanager
def disturbing(bucket, how, monkeypatch):
    """Put a server in front of the bucket while in this context; it disturbs the responses that this process receives.

    `how`: "500", "cut" or "slow", or the seconds by which responses to puts are delayed.
    """
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Disturbing) as server:
        server.bucket, server.how = bucket, how
        server.handle_error = lambda *_: None  # such as a client that did not wait for the response
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with monkeypatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
            yield server
        server.shutdown()

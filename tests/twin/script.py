"""The events of a life, chapter by chapter."""

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from email import message_from_bytes, policy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urljoin

from tests.service.outgoing.mail_servers import Mailbox, smtp_server
from tests.support.receivers import Receiver
from tests.twin.life import MAX_WAIT_SECONDS, Life

FIXTURE: Final = Path(__file__).parents[1] / "fixtures/lake-1.0.0.tar.xz"
CHROME: Final = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/145.0.0.0 Safari/537.36"
GPTBOT: Final = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
CALLERS: Final = ("nobody", "viewer", "editor", "session", "share")
MAX_PAGES: Final = 70
"""Maximum number of dashboard pages to visit, in the order of their links."""
MAX_PAGES_OF_A_KIND: Final = 3
"""Maximum number of these pages that differ only in their parameters."""
_OF_MINUTES: Final = "/app/now"
"""The page that shows the last half hour by minute."""


def live_lake(life: Life) -> None:
    """Live the life of a lake: imports, merges, erasures, publishing, a backup, rebuilds, and a lake from 1.0.0."""
    run, log = life.run, life.input
    run("zone", "set", "Europe/Berlin", "--org", "berlin")
    life.salt()
    run("import", log("problems.log"), log("repairs.log"), "--org", "acme")
    run("import", log("begun.log"), "--org", "acme")
    run("import", log("access.log"), "--org", "acme")  # it has grown
    run("import", log("access.log.1.gz"), "--org", "acme")  # it was rotated
    run("import", log("access.log"), "--org", "acme")  # nothing is new
    run("import", log("caddy.log"), log("nginx.json"), log("cloudfront.log"), "--org", "berlin")
    run("import", log("broken.log"), "--org", "berlin")
    run("import", log("ties.log"), "--org", "ties", "--domain", "go.example.com")
    run("query", "traffic-overview", "--org", "ties", "--format", "json")
    run("import", log("access.log"), "--org", "acme", "--dry-run")
    run("links", "import", log("links.csv"), "--org", "acme")
    run("links", "add", "launch", "https://example.com/launch", "--org", "acme")
    run("links", "add", "launch", "https://example.com/launch", "--org", "acme", "--tag", "spring", "--tag", "mail")
    life.files("after the imports")
    life.rows("acme after the imports", "acme")
    folder = life.home / "drop"
    folder.mkdir()
    shutil.copy(log("caddy.log"), folder / "2026-caddy.log")
    os.utime(folder / "2026-caddy.log", (life.clock.started - 3_600,) * 2)  # files that were just written are not read
    run("follow", str(folder), "--org", "dropped", "--once")
    run("follow", str(folder), "--org", "dropped", "--once")
    run("compact")
    life.files("after compaction")
    life.rows("berlin after compaction", "berlin")
    run("behaviour", "explain", "--org", "acme")
    run("behaviour", "off", "--org", "berlin")
    run("query", "traffic-overview", "--org", "berlin")
    run("behaviour", "on", "--org", "berlin")
    run("publish", str(life.home / "published"))
    published(life, "after the first landing")
    older = copied_manifest(life)
    run("erase", "--org", "acme", "--before", life.day(40), "--dry-run")
    run("erase", "--org", "acme", "--before", life.day(40), "--yes")
    run(
        "erase",
        "--org",
        "acme",
        "--domain",
        "try.example.net",
        "--since",
        life.day(12),
        "--before",
        life.day(8),
        "--yes",
    )
    run("erase", "--org", "dropped", "--short-code", "launch", "--yes")
    run("retain", "--org", "berlin", "--days", "25", "--yes")
    life.files("after erasure and retention")
    life.rows("acme after the erasure", "acme")
    published(life, "after the erasure")
    run("verify", "--published")
    run("status")
    run("status", "--format", "json")
    run("backup", str(life.home / "backup"))
    run("verify", lake=str(life.home / "backup"), label="command: verify the backup")
    run(
        "query", "dashboard", "--org", "acme", "--format", "json", lake=str(life.home / "backup"), label="query: backup"
    )
    for name, manifest in (("lost", None), ("older", older)):
        copy = life.home / f"rebuilt-{name}"
        shutil.copytree(life.lake, copy)
        for path in copy.glob("manifest.sqlite*"):
            path.unlink()
        if manifest:
            shutil.copy(manifest, copy / "manifest.sqlite")
        run("rebuild", "--yes", lake=str(copy), label=f"command: rebuild with a manifest that is {name}")
        run("verify", lake=str(copy), label=f"command: verify after a manifest that is {name}")
        for organization in ("acme", "berlin", "dropped"):
            days = ("--start-date", life.day(70), "--end-date", life.day(0))
            words = ("query", log("rows.sql"), "--org", organization, *days, "--format", "csv")
            run(*words, lake=str(copy), label=f"rows: {organization} rebuilt from {name}")
    old = life.home / "old"
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(old, filter="data")
    for words in (("reclassify", "--dry-run"), ("reclassify",), ("reclassify",), ("compact",), ("status",)):
        run(*words, lake=str(old / "lake"), label=f"command: {' '.join(words)} in a lake of 1.0.0")
    life.files("of a lake of 1.0.0, reclassified", old / "lake")


def published(life: Life, label: str) -> None:
    """Record the Delta logs of the published copy, and the rows of its files."""
    root = life.home / "published"
    for path in sorted(root.rglob("_delta_log/*.json")):
        life.show(f"published {label}: {path.relative_to(root)}", path.read_text("utf-8"))
    life.files(f"published {label}", root)


def copied_manifest(life: Life) -> Path:
    """Return a copy of the current manifest."""
    copy = life.home / "older.sqlite"
    with closing(sqlite3.connect(life.lake / "manifest.sqlite")) as db, closing(sqlite3.connect(copy)) as target:
        db.backup(target)
    return copy


def get_answers(life: Life) -> None:
    """Request every report in several scopes and formats, and every GET route as five callers; send each write once."""
    run = life.run
    scopes: tuple[tuple[str, ...], ...] = (
        ("--range", "90d"),
        ("--range", "7d", "--domain", "go.example.com"),
        ("--short-code", "launch"),
        ("--start-date", life.day(20), "--end-date", life.day(3), "--device-type", "mobile"),
    )
    names = re.findall(r"[\w-]+(?=[,;]| or|$)", failing_list(life))
    for name in names:
        words = ("--traffic-type", "ai") if name == "bot-traffic" else ()
        for number, scope in enumerate(scopes):
            if number == 0 or name in {"dashboard", "bot-traffic", "operators", "paths", "all-links"}:
                run("query", name, "--org", "acme", *scope, *words, "--format", "json")
    for form in ("table", "csv", "json"):
        run("query", "top-links", "--org", "acme", "--format", form)
        run("query", life.input("own.sql"), "--org", "acme", "--format", form)
    run("views", "--org", "berlin", "--describe")
    run("views", "--org", "berlin")
    run("agents", "refresh", "--help")
    detect(life)
    key = re.search(r"tak_\S+", run("keys", "create", "--org", "acme", "--name", "twin"))
    other = re.search(r"tak_\S+", run("keys", "create", "--org", "berlin", "--name", "other"))
    assert key
    assert other
    life.callers = {
        "nobody": {},
        "editor": {"Authorization": f"Bearer {key[0]}"},
        "berlin": {"Authorization": f"Bearer {other[0]}"},
        "viewer": {"Authorization": f"Bearer {life.inputs.token(life.clock, 'acme', 'viewer')}"},
        "owner": {"Authorization": f"Bearer {life.inputs.token(life.clock, 'acme', 'editor')}"},
    }
    with life.served(hook_networks="127.0.0.0/8"):
        detected_again(life)
        sign_in(life)
        document = json.loads(life.ask("GET", "/openapi.json").body)
        write(life)
        jobs = json.loads(life.ask("GET", "/jobs", "editor").body)
        hooks = json.loads(life.ask("GET", "/agent-hooks", "editor").body)
        approved = next(job for job in jobs if job["status"] == "sent")  # it was sent to a hook
        filled = {
            "/jobs/{id}": approved["id"], "/agent-hooks/{id}": hooks[0]["id"], "/links/{domain}/{short_code}": "",
        }  # fmt: skip
        for path, operations in document["paths"].items():
            if "get" not in operations:
                continue
            address = path.replace("{domain}/{short_code}", "-/launch").replace("{number}", "1")
            for prefix, value in filled.items():
                if path.startswith(prefix):
                    address = address.replace("{id}", value)
            for caller in CALLERS:
                life.ask("GET", address, caller)
        for scope in (
            {"range": "7d"}, {"domain": "GO.example.com"}, {"short_code": "launch"},
            {"target_url": "https://example.com/launch/"}, {"country": "de"}, {"agent": "GPTBot"}, {"status": "404"},
            {"start_date": life.day(30), "end_date": life.day(2)}, {"path": "/spring-guide"}, {"domain": "unknown"},
            {"range": "5d"}, {"start_date": "x", "end_date": "y"}, {"tag": "spring"}, {"tag": "unknown"},
        ):  # fmt: skip
            for name in ("dashboard", "domain-breakdown"):
                life.ask("GET", f"/analytics/{name}?{urlencode(scope)}", "editor")
        life.ask("GET", "/analytics/dashboard", "berlin")
        life.ask("GET", "/nowhere", "editor")
        life.ask("DELETE", "/jobs", "editor")
    run("status")
    run("compact")
    life.files("after posts")
    compiled(life)


def failing_list(life: Life) -> str:
    """Return the names of all reports, as the error about an unknown report lists them."""
    life.run("query", "nonsense", "--org", "acme")
    return life.steps[-1].text.partition("use one of ")[2].partition(", or a .sql")[0]


def detect(life: Life) -> None:
    """Have jobs detected, name them by their subjects and show them; replay one, and estimate the false alarms."""
    life.run("jobs", "detect", "--org", "acme")
    listed = life.run("jobs", "list", "--org", "acme", "--format", "json", label="command: jobs list")
    with contextlib.suppress(ValueError):
        for job in sorted(json.loads(listed), key=_subject):
            life.names[job["id"]] = f"<job {job['type']} {job['domain']} {job['path'] or job['short_code']}>"
            life.run("jobs", "show", job["id"])
    life.run("jobs", "replay", min(json.loads(listed), key=_subject)["id"])
    life.run("jobs", "placebo", "--org", "acme")


def detected_again(life: Life) -> None:
    """Wait until the server has detected the jobs again, which increases the version of each job."""
    wait_until_all(life, "/jobs", lambda job: job["version"] > 1)


def _subject(job: dict[str, Any]) -> tuple[str, ...]:
    """Return a job's type and subject, by which jobs are sorted so that both lives show them in the same order."""
    return tuple(str(job[name]) for name in ("type", "domain", "path", "short_code"))


def sign_in(life: Life) -> None:
    """Open a session with a sign-in link, and share a page."""
    link = life.run("sign-in", "--org", "acme")
    code = link.rpartition("code=")[2].strip()
    life.ask("GET", f"/app/enter?code={quote(code)}")
    same = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    entered = life.ask("POST", "/app/enter", body=urlencode({"code": code}).encode(), **same)
    cookie = entered.header("set-cookie").partition(";")[0]
    life.callers["session"] = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
    form = urlencode({"name": "For the board", "range": "30d"}).encode()
    content = {"Content-Type": "application/x-www-form-urlencoded"}
    shared = life.ask("POST", "/app/settings/shares", "session", form, **content)
    secret = re.search(rb"share/([\w-]{16,})", shared.body)
    assert secret, shared.body.decode()
    life.callers["share"] = {"Authorization": f"Bearer {secret[1].decode()}"}
    life.share = f"/app/share/{secret[1].decode()}"


def write(life: Life) -> None:
    """Send each write that the API offers once, and some writes that it rejects."""
    life.meet()
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    visit = {"url": "https://go.example.com/launch", "ip": "203.0.113.9", "user_agent": CHROME, "time": now}
    visits = [visit, {**visit, "user_agent": GPTBOT}, {**visit, "url": "nowhere"}]
    for caller in ("nobody", "viewer", "editor"):
        life.ask("POST", "/visits", caller, visits)
    life.ask("POST", "/visits", "editor", {"no": "array"})
    content = {"Content-Type": "application/json"}
    life.ask("PUT", "/links/go.example.com/fresh", "editor", {"target_url": "https://example.com/fresh"}, **content)
    life.ask("PUT", "/links/go.example.com/fresh", "editor", {"target_url": "https://example.com/other"}, **content)
    life.ask("PUT", "/links/go.example.com/fresh", "viewer", {"target_url": "https://example.com/other"}, **content)
    tagged = {"target_url": "https://example.com/other", "tags": ["spring"]}
    life.ask("PUT", "/links/go.example.com/fresh", "editor", tagged, **content)
    life.ask("DELETE", "/links/go.example.com/fresh", "editor")
    life.ask("DELETE", "/links/go.example.com/fresh", "editor")
    written = life.ask("POST", "/jobs", "editor", {"title": "Mend it", "summary": "It is broken."}, **content)
    life.names[json.loads(written.body)["id"]] = "<job by hand>"
    hook = {"name": "ours", "url": f"http://127.0.0.1:{life.receiver}/hook"}
    made = json.loads(life.ask("POST", "/agent-hooks", "editor", hook, **content).body)
    life.names |= {made["id"]: "<hook>"} if "id" in made else {}
    jobs = json.loads(life.send("GET", "/jobs", life.callers["editor"]).body)
    broken = min((job for job in jobs if job["type"] == "broken_link"), key=_subject)
    at = f"/jobs/{broken['id']}"
    for body in ({"action_id": "nothing"}, {"action_id": "review"}, {"action_id": "approve_fix", "note": "Yes."}):
        life.ask("POST", f"{at}/actions", "editor", body, **content)
    if "id" in made:
        delivered(life, made["id"])
    life.ask("POST", f"{at}/actions", "viewer", {"action_id": "dismiss"}, **content)
    draft = {"implementation_type": "patch", "redirect_to": "https://example.com/spring"}
    life.ask("POST", f"{at}/implementations", "editor", draft, **content)
    life.ask("POST", f"{at}/implementations/1/status", "editor", {"status": "shipped"}, **content)
    life.ask("POST", f"{at}/implementations/1/status", "editor", {"status": "accepted"}, **content)
    if "id" in made:
        life.ask("POST", f"/agent-hooks/{made['id']}/test", "editor")
        delivered(life, made["id"])
        life.ask("PATCH", f"/agent-hooks/{made['id']}", "editor", {"name": "renamed"}, **content)
        life.ask("POST", f"/agent-hooks/{made['id']}/secret", "editor")
    life.ask("POST", "/settings/api-keys", "editor", {"name": "made"}, **content)
    made = json.loads(life.ask("POST", "/settings/api-keys", "owner", {"name": "made"}, **content).body)
    life.ask("DELETE", f"/settings/api-keys/{made['id']}", "owner")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    life.ask("POST", "/mcp", "editor", call, **content)
    moved_to_files(life)


def moved_to_files(life: Life) -> None:
    """Wait until the posted visits are in files, and therefore in every answer. Raises TimeoutError."""
    with closing(sqlite3.connect(life.lake / "manifest.sqlite")) as db:
        for _ in range(10 * MAX_WAIT_SECONDS):
            if not db.execute("SELECT count(*) FROM pending").fetchone()[0]:
                return
            time.sleep(0.1)
    raise TimeoutError(f"the posted visits are still not in files after {MAX_WAIT_SECONDS} s")


def delivered(life: Life, hook: str) -> None:
    """Wait until a hook has no pending messages."""
    wait_until_all(life, f"/agent-hooks/{hook}/deliveries", lambda message: message["status"] != "pending")


def wait_until_all(life: Life, path: str, is_done: Callable[[dict[str, Any]], bool]) -> None:
    """Request a list until all of its rows are done. Raises TimeoutError after MAX_WAIT_SECONDS."""
    for _ in range(10 * MAX_WAIT_SECONDS):
        if all(map(is_done, json.loads(life.send("GET", path, life.callers["editor"]).body))):
            return
        time.sleep(0.1)
    raise TimeoutError(f"{path} has a row that is not done after {MAX_WAIT_SECONDS} s")


_COMPILE: Final = """
import tempfile
from contextlib import closing
from pathlib import Path
from data import Lake
from queries import DETECTORS, ENTRIES, JOB_KINDS, Warehouse, template_entries
from queries.compiler import Compiler
from queries.prelude import relation_names

with tempfile.TemporaryDirectory() as folder, closing(Warehouse(Lake(Path(folder) / "lake", create=True))) as warehouse:
    compiler = Compiler(warehouse.describe)
    reports = [one.name for entry in ENTRIES.values() for one in template_entries(entry)]
    reports += [one.entry.name for one in DETECTORS.values()] + [one.measure.name for one in JOB_KINDS.values()]
    for name in sorted({*reports, *(f"rollups/{name}" for name in relation_names())}):
        print("--", name)
        print(compiler.compiled(name))
"""


def compiled(life: Life) -> None:
    """Record the SQL compiled for a cluster, the only output that no command shows."""
    done = subprocess.run(
        [life.tree / ".venv/bin/python", "-c", _COMPILE], cwd=life.tree, capture_output=True, text=True, check=False
    )
    life.show("compiled texts", done.stdout + done.stderr)


class _Links(HTMLParser):
    """Collects the addresses of the links on a page, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address if the tag is a link."""
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def show_faces(life: Life) -> None:
    """Visit the pages, use MCP over stdio, and record every command's help, reports, mail, and errors of commands."""
    with life.served():
        seen: list[str] = []
        kinds: dict[str, int] = {}
        queue = ["/app/"]
        while queue and len(seen) < MAX_PAGES:
            address = queue.pop(0)
            kind = address.partition("?")[0]
            if address in seen or kinds.get(kind, 0) >= MAX_PAGES_OF_A_KIND or "/enter" in address:
                continue
            seen.append(address)
            kinds[kind] = kinds.get(kind, 0) + 1
            if kind == _OF_MINUTES:
                life.meet()
            page = life.ask("GET", address, "session")
            if "html" in page.header("content-type"):
                parser = _Links()
                parser.feed(page.body.decode())
                joined = [urljoin(address, link).partition("#")[0] for link in parser.found]
                queue += [link for link in joined if link.startswith("/app/")]
        for address in seen[:12]:
            life.ask("GET", address, "nobody")
        life.ask("GET", life.share)
        life.ask("GET", f"{life.share[:-3]}xxx")
        life.ask("GET", "/app/nowhere", "session")
        life.ask("POST", "/app/settings/shares", "session", b"name=%ff", **{"Content-Type": "text/plain"})
    life.show("messages of hooks", "\n".join(life.messages()))
    speak_mcp(life)
    commands: list[tuple[str, ...]] = [()]
    while commands:
        words = commands.pop(0)
        text = life.run(*words, "--help")
        listed = text.partition("Commands:\n")[2]
        commands += [(*words, name) for name in re.findall(r"^  ([a-z][\w-]*)", listed, re.MULTILINE)]
    run = life.run
    run("report", "--org", "acme", "--format", "text")
    run("report", "--org", "acme", label="report: html")
    run("mail", "--org", "acme", "--to", "ops@acme.example", "--dry-run")
    mailbox = Mailbox()
    with smtp_server(mailbox) as port:
        settings = {"smtp": f"smtp://127.0.0.1:{port}", "mail_from": "traffic@example.com"}
        run("mail", "--org", "acme", "--to", "ops@acme.example", **settings)
    for mail in mailbox.mails:
        life.show("mail", f"{mail.mail_from} {mail.rcpt_tos}\n{decoded(mail.content)}")
    run("classify", "--user-agent", GPTBOT, "--ip", "203.0.113.9")
    run("classify", "--jsonl", "-", text=f"{json.dumps({'user_agent': CHROME, 'url': '/.env'})}\n")
    run("robots", "plan", "--org", "acme")
    run("links", "export", "--org", "acme", "--format", "csv")
    for form in ("nginx", "caddy"):
        run("links", "export", "--org", "acme", "--format", form, "--domain", "link.example.org")
    run("links", "list", "--org", "acme")
    run("keys", "list")
    run("hooks", "list", "--org", "acme")
    run("zone", "show", "--org", "berlin")
    run("doctor")
    for words in (
        ("query", "devices", "--org", "nobody"), ("query", "devices", "--org", "a b"), ("import", "/no/such.log"),
        ("import", life.input("links.csv"), "--org", "acme"), ("erase", "--org", "acme"), ("serve", "--port", "x"),
        ("query", "devices", "--org", "acme", "--range", "5d"), ("nonsense",), ("rebuild",), ("retain",),
        ("links", "import", life.input("access.log"), "--org", "acme"), ("jobs", "show", "nothing"),
        ("keys", "revoke", "nothing"), ("zone", "set", "Mars/Base", "--org", "x"), ("publish", "s3:/x"),
    ):  # fmt: skip
        run(*words)


def decoded(mail: bytes) -> str:
    """Return the headers and the decoded parts of a mail."""
    message = message_from_bytes(mail, policy=policy.default)
    texts = [part.get_content() for part in message.walk() if part.get_content_maintype() == "text"]
    return "\n".join([*(f"{name}: {value}" for name, value in message.items()), *texts])


def speak_mcp(life: Life) -> None:
    """Hold an MCP conversation over stdio, in which each tool is called, and some invalid calls are made."""
    calls: list[dict[str, Any]] = [
        {
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "twin", "version": "1"},
            },
        },
        {"method": "tools/list"},
        {"method": "resources/list"},
        {"method": "prompts/list"},
        {"method": "nonsense"},
        *(
            {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
            for name, arguments in (
                ("query", {"endpoint": "traffic-overview"}), ("query", {"endpoint": "dashboard", "range": "7d"}),
                ("query", {"endpoint": "nothing"}), ("query", {"endpoint": "devices", "colour": "red"}),
                ("links", {}), ("links", {"contains": "launch"}), ("jobs", {}), ("jobs", {"status": "new"}),
                ("classify", {"user_agent": GPTBOT}), ("sql", {"sql": "SELECT count(*) AS n FROM visits_in_scope"}),
                ("sql", {"sql": "DROP TABLE x"}), ("nothing", {}),
            )
        ),
    ]  # fmt: skip
    lines = [json.dumps({"jsonrpc": "2.0", "id": number, **call}) for number, call in enumerate(calls)]
    life.run("mcp", "--org", "acme", text="".join(f"{line}\n" for line in lines), label="mcp over stdio")


class Killed(NamedTuple):
    """A command to kill. In its words, 30 stands for the date 30 days ago, and a name ending in .log for an input
    file's path."""

    words: tuple[str, ...]
    parts: tuple[float, ...] = (0.35, 0.6, 0.8, 0.95)
    """The moments at which it is killed, as fractions of the time that it takes undisturbed, without its pause."""
    pause: float = 0
    """The seconds for which it waits before it deletes files, so that no query still reads them."""


KILLED: Final = (
    Killed(("import", "access.log", "--org", "acme")),
    Killed(("compact",)),
    Killed(("erase", "--org", "acme", "--before", "30", "--yes"), (0.6, 0.95), 15),
    Killed(("retain", "--org", "acme", "--days", "20", "--yes"), (0.6, 0.95), 15),
    Killed(("publish", "published")),
    Killed(("rebuild", "--yes")),
)


def survive_kills(life: Life) -> None:
    """Kill commands, run each again, and record the results."""
    life.lake = life.home / "killed/lake"
    life.run("zone", "show", "--org", "acme", label="kills: a new lake")
    life.run("links", "add", "launch", "https://example.com/launch", "--org", "acme", label="kills: a link")
    life.salt()
    for words, parts, pause in KILLED:
        named = [_word(life, word) if place else word for place, word in enumerate(words)]
        before = life.home / "killed/before"
        shutil.copytree(life.lake, before)
        began = time.monotonic()
        life.run(*named, label=f"kills: {words[0]} unharmed")
        taken = time.monotonic() - began - pause
        after = life.home / "killed/after"
        shutil.copytree(life.lake, after)
        for part in parts:
            shutil.rmtree(life.lake)
            shutil.copytree(before, life.lake)
            process = subprocess.Popen(
                [life.tree / ".venv/bin/traffic", *named], cwd=life.home, env=life.environment(),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            time.sleep(part * taken)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            again = len(life.steps)
            life.run(*named)
            del life.steps[again:]  # its output depends on the moment of the kill
            life.rows(f"{words[0]}, killed at {part} and repeated", "acme")
            life.run("verify", label=f"kills: verify after {words[0]}, killed at {part}")
            life.steps[-1] = life.steps[-1]._replace(text=life.steps[-1].text.partition("--- exit")[2])
        for folder in (before, life.lake):
            shutil.rmtree(folder)
        after.rename(life.lake)  # the next command starts from an undamaged state


def _word(life: Life, word: str) -> str:
    if word.isdigit():
        return life.day(int(word)) if word == "30" else word
    if word.endswith(".log"):
        return life.input(word)
    return str(life.home / "killed" / word) if word == "published" else word


CHAPTERS: Final[dict[str, Callable[[Life], None]]] = {
    "lake": live_lake, "answers": get_answers, "faces": show_faces, "kills": survive_kills,
}  # fmt: skip
_STREAMS: Final = (("lake", "answers", "faces"), ("kills",))
"""Chapters that continue with the lake of the chapters before them. The streams run at the same time: each waits for
half of its time, mostly before files are deleted."""


def chapters_to_live(chosen: Sequence[str]) -> list[list[str]]:
    """Return each stream's chapters up to the last of those chosen."""
    return [
        [name for place, name in enumerate(stream) if set(stream[place:]).intersection(chosen)] for stream in _STREAMS
    ]


def live(life: Life, chapters: Sequence[str]) -> None:
    """Live these chapters in order."""
    receiver = Receiver()
    life.receiver = receiver.port
    life.messages = lambda: [
        f"{one.first}\n{json.dumps(one.headers, indent=1, sort_keys=True)}\n{one.body.decode()}"
        for one in receiver.requests
    ]
    life.names[f"127.0.0.1:{receiver.port}"] = "127.0.0.1:<receiver>"
    try:
        for name in chapters:
            began, steps = time.monotonic(), len(life.steps)
            CHAPTERS[name](life)
            print(
                f"{life.home.name}: {name}, {len(life.steps) - steps} steps in {time.monotonic() - began:.0f} s",
                flush=True,
            )
    finally:
        receiver.close()

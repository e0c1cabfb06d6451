"""The snippets for jobs in a real nginx and Caddy: they work for hostile paths and agents, and affect nothing else."""

import re
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPConnection
from random import Random
from urllib.parse import quote, unquote

import orjson
import pytest

from service.jobs.findings import blank_job
from service.jobs.snippets import snippets_of
from tests.service.jobs.findings import NOW
from tests.support.web_servers import serving

TARGET = "https://shop.example/?a=$b&c=;#d"
OTHERS = {"nginx": 200, "Caddy": 204}
"""The status of all requests that no snippet covers."""
SERVERS = tuple(OTHERS)
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36"
)
ASCII = [chr(code) for code in range(0x20, 0x7F) if chr(code) not in "*%?#"]
HOSTILE = [
    '/" { return 301 https:/evil.example; } #', "/'; return 301 https:/evil.example; #", "/}", "/{", "/${host}",
    "/$uri", "/{$HOME}", "/{path}", "/{http.request.host}", "/`", "/a`b` {", "/\\", '/\\"', "/\\\\", "/a\\", "/;",
    "/a b", "/a  b ", "/%20", "/a%2Fb", "/%22%7B%24", "/%5C", "/%3B", "/%23frag", "/%3Fquery", "/#x", "/?x",
    "/caf\N{LATIN SMALL LETTER E WITH ACUTE}", "/\N{SNOWMAN}", "/caf%C3%A9", "/" + "x" * 254, "/(a|b)+", "/^$",
    "/a.b", "/~tilde", "/=", "/[a-z]", "/@named", "/include /etc/passwd;", "/import /etc/passwd", "/.env",
]  # fmt: skip
REFUSED = {
    "/a\nb": "cannot be printed", "/a%0Ab": "cannot be printed", "/\u202e": "cannot be printed", "/%FF": "not UTF-8",
    "/a//b": "shorten", "/a/../b": "shorten", "/a*b": "many paths",
}  # fmt: skip


def job_of(action_id, *subjects, domain="go.example.com"):
    job = blank_job("acme", "any", "Title", NOW)
    subjects = orjson.dumps([{"domain": domain, **one} for one in subjects]).decode()
    return replace(job, action_id=action_id, domain=domain, subjects=subjects)


def of_paths(action_id, paths):
    return job_of(action_id, *({"path": path} for path in paths))


@pytest.fixture
def snippet(lake):
    """Return a function that returns a job's snippet for a server."""

    def snippet(server, job, target=TARGET):
        return next(one for one in snippets_of(job, lake, target) if one.server == server)

    return snippet


@contextmanager
def asked(server, text, folder):
    """Run a server with a snippet's lines; yield a function that requests a path and returns the status and the
    Location."""
    outside, _, inside = text.rpartition("# In the ")
    inside = inside.partition("\n")[2]
    (folder / "lines").write_text(inside)
    (folder / "empty").touch()
    (folder / "outside").write_text(outside + 'geo $traffic_dollar { default "$"; }\n')
    how = {"nginx": f"include {folder}/lines; location / {{ root {folder}; try_files /empty =404; }}",
           "Caddy": f"import {folder}/lines\n    respond 204"}[server]  # fmt: skip
    with serving(server.lower(), folder, how, f"include {folder}/outside;") as port:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)

        def ask(path, agent=CHROME):
            connection.request("GET", quote(unquote(path)), headers={"User-Agent": agent})
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers.get("Location")

        yield ask
        connection.close()


def swept():
    """Return paths of many lengths that contain every printable character."""
    draws = Random(68)
    paths = {f"/{before}{letter}{after}" for letter in ASCII for before in ("", "c") for after in ("", "x")}
    paths |= {"/" + "".join(draws.choices(ASCII, k=draws.randint(1, 200))) for _ in range(200)}
    return sorted(path for path in paths if not re.search(r"//|/\.\.?(/|$)", path))


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(("action", "answer"), [("add_redirect", (302, TARGET)), ("hide_path", (404, None))])
def test_snippets_answer_hostile_paths_and_no_others(server, action, answer, snippet, tmp_path):
    paths = [*HOSTILE, *swept()]
    made = snippet(server, of_paths(action, paths))
    assert made.left_out == []
    known = {unquote(path) for path in paths}
    others = {path + more for path in HOSTILE for more in ("y", "/", "%00")} | {"/other", "/.ENV", "/xenv"}
    with asked(server, made.text, tmp_path) as ask:
        assert {path: ask(path) for path in paths} == dict.fromkeys(paths, answer)
        assert all(ask(path)[0] != answer[0] for path in others if unquote(path) not in known and "%00" not in path)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("action", ["add_redirect", "hide_path"])
def test_a_path_that_cannot_be_written_is_left_out(server, action, snippet):
    made = snippet(server, of_paths(action, [*REFUSED, "/fine", "/" + "x" * 300]))
    reasons = [reason for _, reason in made.left_out]
    assert all(part in reason for part, reason in zip(REFUSED.values(), reasons, strict=False))
    assert len(made.left_out) == len(REFUSED) + (server == "nginx")  # which does not compare long paths
    assert all(re.fullmatch(r"[\w/.~%*-]{1,200}", path, re.ASCII) for path, _ in made.left_out)
    assert made.text.count("fine") == 1
    assert snippet(server, of_paths(action, REFUSED)).text == ""


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("target", ["https://shop.example\\@evil.example/", "https://a.example/\r\nX: y", "https:// /"])
def test_targets_that_browsers_read_differently_are_left_out(server, target, snippet):
    made = snippet(server, of_paths("add_redirect", ["/a"]), target)
    assert made.text == ""
    assert "its target" in made.left_out[0][1]


@pytest.mark.parametrize("server", SERVERS)
def test_a_hidden_folder_and_its_contents_are_blocked(server, snippet, tmp_path):
    made = snippet(server, of_paths("hide_path", ["/.git/*", "/a.b/*"]))
    assert [path for path, _ in made.left_out] == ["/a.b/*"]
    with asked(server, made.text, tmp_path) as ask:
        paths = ("/.git/", "/.git/HEAD", "/.git/a/b", "/.gitignore", "/xgit/HEAD", "/x/.git/HEAD")
        assert [ask(path)[0] for path in paths] == [404] * 3 + [OTHERS[server]] * 3


@pytest.mark.parametrize("server", SERVERS)
def test_snippets_for_several_jobs_can_be_combined(server, snippet, tmp_path):
    texts = [snippet(server, of_paths("hide_path", ["/.env", f"/.{name}"])).text for name in "ab"]
    texts += [snippet(server, job_of("limit_flood", {"agent": name})).text for name in ("Some-Bot", "Other-Bot")]
    blocks = [text.partition("# In the ")[::2] for text in texts]
    inside = dict.fromkeys(line for _, rest in blocks for line in rest.splitlines()[1:])  # /.env is in two of them
    if server == "Caddy":
        inside = [line for _, rest in blocks for line in rest.splitlines()[1:]]
    outside = "".join(before for before, _ in blocks)
    with asked(server, outside + "# In the x\n" + "\n".join(inside) + "\n", tmp_path) as ask:
        assert [ask(path)[0] for path in ("/.env", "/.a", "/.b", "/c")] == [404] * 3 + [OTHERS[server]]


NAMES = ["Some-Bot", "we`ird", 'q"uo\\te', "{path}", "a$b;c", "GPTBot"]


@pytest.mark.parametrize("name", NAMES)
def test_nginx_limits_only_the_agents_rate(name, snippet, tmp_path):
    made = snippet("nginx", job_of("limit_flood", {"agent": name}))
    with asked("nginx", made.text, tmp_path) as ask:
        agent = f"Mozilla/5.0 (compatible; {name}/1.0; +https://bot.example)"
        statuses = [ask("/", agent)[0] for _ in range(30)]
        assert statuses[:21] == [200] * 21
        assert statuses.count(429) >= 8
        assert {ask("/")[0] for _ in range(30)} == {200}


@pytest.mark.parametrize("name", NAMES)
def test_caddy_blocks_agents_because_it_cannot_limit_them(name, snippet, tmp_path):
    made = snippet("Caddy", job_of("limit_flood", {"agent": name}))
    assert made.text.startswith("# Caddy cannot limit requests")
    with asked("Caddy", made.text, tmp_path) as ask:
        assert ask("/", f"Mozilla/5.0 (compatible; {name.upper()}/1.0; +https://bot.example)") == (403, None)
        assert ask("/", f"Not{name}Either/1.0") == (204, None)
        assert ask("/") == (204, None)


def test_a_browser_that_floods_is_limited_by_address(snippet, tmp_path):
    job = job_of("limit_flood", {"agent": CHROME})
    made = snippet("nginx", job)
    assert "$binary_remote_addr" in made.text
    with asked("nginx", made.text, tmp_path) as ask:
        assert 429 in {ask("/")[0] for _ in range(30)}
        assert {ask("/", f"{CHROME} Edg/143.0.0.0")[0] for _ in range(30)} == {200}
    refused = snippet("Caddy", job)
    assert refused.text == ""
    assert "people who use that browser" in refused.left_out[0][1]


@pytest.mark.parametrize(
    "name", ["Mozilla", "chrome", "Windows", "Safari", "Mobile", "like Gecko", "unknown", "a\nb", "\u202e"]
)
def test_browser_names_and_unprintable_names_are_left_out(name, snippet):
    for server in SERVERS:
        made = snippet(server, job_of("limit_flood", {"agent": name}))
        assert (made.text, len(made.left_out)) == ("", 1)


def test_an_operators_training_crawlers_are_limited_by_name(snippet):
    made = snippet("nginx", job_of("limit_agent", {"operator": "OpenAI"}))
    assert "gptbot" in made.text
    assert "chatgpt-user" not in made.text
    assert snippet("nginx", job_of("limit_agent", {"operator": "Nobody; }"})).text == ""


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(("networks", "status"), [(["192.0.2.0/24", "2001:db8::/32"], 403), (["127.0.0.0/8"], None)])
def test_an_agent_name_is_rejected_from_other_addresses(server, networks, status, snippet, lake, tmp_path):
    job = job_of("block_agent", {"agent": "GPTBot"})
    assert "the addresses that its operator publishes" in snippet(server, job).left_out[0][1]
    lake.ip_lists.mkdir(exist_ok=True)
    saved = {"fetched_at": datetime.now(UTC).isoformat(), "networks": networks}
    (lake.ip_lists / "openai-gptbot.json").write_bytes(orjson.dumps(saved))
    made = snippet(server, job)
    with asked(server, made.text, tmp_path) as ask:
        assert ask("/", "Mozilla/5.0 (compatible; GPTBot/1.2)")[0] == (status or OTHERS[server])
        assert ask("/")[0] == OTHERS[server]


@pytest.mark.parametrize("action", ["allow_agent", "answer_404", "publish_file", "fix_error", "carry_out"])
def test_actions_beyond_a_web_server_have_no_snippet(action, lake):
    assert snippets_of(job_of(action, {"path": "/a", "agent": "GPTBot"}), lake, TARGET) == []


def test_an_invalid_host_is_not_named(snippet):
    made = snippet("nginx", job_of("hide_path", {"path": "/.env"}, domain="evil\n} host"))
    assert made.text.startswith("# In the server block of the domain:\n")

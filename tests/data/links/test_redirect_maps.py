"""Redirects work in a real nginx and a real Caddy: every exported link, even a hostile one, leads to its target."""

import re
from datetime import datetime
from http.client import HTTPConnection
from random import Random
from urllib.parse import quote, unquote

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import BadInput
from data.links.links import Link
from data.links.redirect_maps import caddy_map, links_on, nginx_map
from tests.support.tables import examples_at_once, tables
from tests.support.web_servers import serving

MAPS = {"nginx": nginx_map, "caddy": caddy_map}
ASCII = [chr(code) for code in range(0x20, 0x7F)]
ENCODED = ' "<>^`{|}'
"""The printable characters that are percent-encoded in a Location header."""
LENGTHS = (1, 2, 63, 64, 127, 128, *range(250, 261), 511, 512, 513, 767, 768, 1_023, 1_024, 1_025, 2_046, 2_047)
"""Lengths of paths and targets: mostly around multiples of 256, and up to the longest path of a shipped redirect."""


def redirecting(name, folder, links):
    """Start a web server with the redirects for some links."""
    (folder / "links").write_text(MAPS[name](links).text)
    inside = {"nginx": f"include {folder}/links;", "caddy": f"import {folder}/links\n    respond 404"}[name]
    return serving(name, folder, inside, 'geo $traffic_dollar { default "$"; }')


@pytest.fixture(scope="module", params=MAPS)
def ask(request, tmp_path_factory):
    """Request a short code from a web server as browsers do; return the status and the Location."""
    rows = tables(__file__)["test_a_web_server_redirects_to_the_target_of_each_link"]
    links = [link(*row[:2]) for row in rows]
    with redirecting(request.param, tmp_path_factory.mktemp(request.param), links) as port:

        def ask(short_code):
            url = f"http://127.0.0.1:{port}/{quote(unquote(short_code), safe='')}"
            answer = httpx2.get(url, timeout=60, trust_env=False, verify=False)
            return answer.status_code, answer.headers.get("Location")

        yield ask


def link(short_code, target_url="https://shop.example/", domain=""):
    return Link(short_code, domain, target_url, datetime(2026, 1, 1))


@examples_at_once("short_code", "target_url", "location")
def test_a_web_server_redirects_to_the_target_of_each_link(ask, short_code, target_url, location):
    assert ask(short_code) == (302, location)


@pytest.mark.parametrize("short_code", ["Plain", "nothing", "plain/", "plain.", "a", "x", ""])
def test_a_web_server_redirects_no_other_paths(ask, short_code):
    assert ask(short_code) == (404, None)


def statuses(port, links):
    """Return the status and the Location for the exact path of each link, by its short code."""
    connection, answers = HTTPConnection("127.0.0.1", port, timeout=60), {}
    for hostile in links:
        connection.request("GET", "/" + quote(unquote(hostile.short_code)))
        answer = connection.getresponse()
        answer.read()
        answers[hostile.short_code] = answer.status, answer.headers.get("Location")
    connection.close()
    return answers


def hostile_links():
    """Return links of many lengths: paths have all printable ASCII characters, targets all except backslashes."""
    draws = Random(57)
    paths = {f"{before}{letter}{after}" for letter in ASCII for before in ("", "c") for after in ("", "x", "/y")}
    paths |= {"".join(draws.choices(ASCII, k=length)) for length in LENGTHS for _ in range(3)}
    paths |= {"".join(draws.choices(ASCII, k=draws.randint(1, 12))) for _ in range(300)}
    paths |= {"\N{LATIN SMALL LETTER U WITH DIAERESIS}" * length for length in (126, 127, 128)}
    letters = [letter for letter in ASCII if letter != "\\"]
    codes = [path.replace("%", "%25").replace("?", "%3F").replace("#", "%23") for path in sorted(paths)]
    lengths = (*range(60), *LENGTHS)
    return [
        link(code, "https://shop.example/" + "".join(draws.choices(letters, k=draws.choice(lengths)))) for code in codes
    ]


@pytest.mark.parametrize("name", MAPS)
def test_every_exported_link_answers_with_its_exact_location(name, tmp_path):
    links = hostile_links()
    left_out = {omitted.link.short_code for omitted in MAPS[name](links).left_out}
    expected = {
        hostile.short_code: (302, "".join(f"%{ord(c):02X}" if c in ENCODED else c for c in hostile.target_url))
        for hostile in links
        if hostile.short_code not in left_out
    }
    with redirecting(name, tmp_path, links) as port:
        answers = statuses(port, links)
    assert {code: answers[code] for code in expected} == expected
    assert len(links) > len(expected) > len(links) / 2


def test_only_paths_that_nginx_compares_wrongly_are_left_out():
    for hostile in hostile_links():
        path = f"/{unquote(hostile.short_code)}"
        is_shortened = re.search(r"//|/\.\.?(/|$)", path) is not None
        assert bool(nginx_map([hostile]).left_out) == (is_shortened or len(path.encode()) > 255), path


def test_only_paths_that_caddyfiles_cannot_quote_are_left_out():
    for hostile in hostile_links():
        assert bool(caddy_map([hostile]).left_out) == (not {*"{}`"}.isdisjoint(unquote(hostile.short_code))), hostile


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), max_size=5))
def test_no_code_or_target_breaks_out_of_the_syntax(drawn):
    links = [link(code, f"https://shop.example/{target}") for code, target in drawn]
    _, *nginx_lines = nginx_map(links).text.removesuffix("\n").split("\n")
    if nginx_lines and nginx_lines[0].startswith("#"):
        assert nginx_lines.pop(0) == '# The http block needs this line, once: geo $traffic_dollar { default "$"; }'
    word = r'"(?:[^"\\]|\\["\\])*"'
    target = r'"(?:[^"\\ {}$]|\$\{traffic_dollar\})*"'
    assert all(re.fullmatch(rf"location = {word} {{ return 302 {target}; }}", line) for line in nginx_lines)
    _, _, *caddy_lines, _, _, _, _ = caddy_map(links).text.removesuffix("\n").split("\n")
    assert all(re.fullmatch(r"\t`[^`{}]*` `[^`{} ]*`", line) for line in caddy_lines)


@pytest.mark.parametrize(
    ("servers", "short_code", "target_url", "reason"),
    [
        ("nginx caddy", "bad", "https://shop.example\\@evil.example/", "its target contains a control character or a"),
        ("nginx caddy", "bad", "https://shop.example/\r\nSet-Cookie: a=b", "its target contains a control character"),
        ("nginx caddy", "bad", "https://shop.example/\t", "its target contains a control character"),
        ("nginx caddy", "bad", "https://no host/", "its target has no valid host"),
        ("nginx caddy", "bad", "https://shop.example:http/", "its target is not a valid URL"),
        ("nginx caddy", "bad", "https://[::1/", "its target is not a valid URL"),
        ("nginx caddy", "bad%0A", "https://shop.example/", "its path contains characters that cannot be printed"),
        ("nginx caddy", "bad\u202e", "https://shop.example/", "its path contains characters that cannot be printed"),
        ("nginx caddy", "bad%FF", "https://shop.example/", "its decoded path is not UTF-8"),
        ("nginx caddy", "%66ine", "https://evil.example/", "another link has the same path"),
        ("nginx", "b" * 255, "https://shop.example/", "nginx compares no more than 255 bytes of a path"),
        ("nginx", "a/../b", "https://shop.example/", "nginx shortens paths with //, /./ or /../"),
        ("nginx", "long", "https://shop.example/" + "\N{SNOWMAN}" * 445, "its target is too long for nginx"),
        ("caddy", "{$HOME}", "https://shop.example/", "a Caddyfile has no way to write"),
        ("caddy", "a`b", "https://shop.example/", "a Caddyfile has no way to write"),
    ],
)
def test_only_the_link_that_cannot_be_written_is_left_out(servers, short_code, target_url, reason):
    for name in servers.split():
        exported = MAPS[name]([link(short_code, target_url), link("fine")])
        (named,) = exported.left_out
        assert str(named).startswith(f"/{short_code}: {reason}")
        assert exported.text == MAPS[name]([link("fine")]).text


def test_a_link_for_one_domain_wins_over_one_for_every_domain():
    own, rule = link("%66ine", domain="go.example"), link("fine", "https://evil.example/")
    exported = nginx_map([rule, own])
    assert [omitted.link for omitted in exported.left_out] == [rule]
    assert "evil" not in exported.text


def test_a_link_with_an_invalid_target_still_reserves_its_path():
    own, rule = link("fine", "https://no host/", "go.example"), link("fine", "https://evil.example/")
    assert nginx_map([rule, own]).written == 0


def test_a_summary_counts_what_was_left_out_for_each_reason():
    links = [link("a"), link("b%FF"), link("c%FF"), link("d", "https://no host/")]
    assert nginx_map(links).summary() == (
        "Exported 1 of 4 links. Left out: 2 (its decoded path is not UTF-8); 1 (its target has no valid host)."
    )


def test_nginx_accepts_the_longest_exported_target(tmp_path):
    longest = "https://shop.example/" + "$" * 220
    assert nginx_map([link("long", longest)]).written == 1
    with redirecting("nginx", tmp_path, [link("long", longest)]):
        pass


@pytest.mark.parametrize("name", MAPS)
def test_a_web_server_accepts_a_file_without_links(tmp_path, name):
    with redirecting(name, tmp_path, []):
        pass


def test_only_dollar_signs_need_a_line_in_the_http_block(tmp_path):
    assert "geo" not in nginx_map([link("a")]).text
    assert (
        '\n# The http block needs this line, once: geo $traffic_dollar { default "$"; }\n'
        in nginx_map([link("a", "https://x.example/$")]).text
    )


def test_a_domain_gets_its_own_links_and_those_for_every_domain():
    everywhere, plain = link("a"), link("c")
    here, there = link("a", "https://x.example/", "go.example"), link("b", domain="other.example")
    assert links_on([everywhere, here, there, plain], "go.example") == [here, plain]
    assert links_on([everywhere, here, there, plain], "other.example") == [everywhere, there, plain]
    assert links_on([everywhere, plain], "") == [everywhere, plain]
    with pytest.raises(BadInput, match=r"\(go\.example, other\.example\): choose a domain with --domain"):
        links_on([everywhere, here, there], "")

"""Redirects for web servers, by a real nginx and a real Caddy: every link leads where it says, hostile ones as well."""

from datetime import datetime
from urllib.parse import quote, unquote

import httpx2
import pytest

from data import BadInput
from data.store.links import Link
from data.store.redirect_maps import caddy_map, links_on, nginx_map
from tests.support.tables import examples_at_once, tables
from tests.support.web_servers import serving

MAPS = {"nginx": nginx_map, "caddy": caddy_map}


def redirecting(name, folder, links):
    """A web server with the redirects of some links."""
    (folder / "links").write_text(MAPS[name](links))
    inside = {"nginx": f"include {folder}/links;", "caddy": f"import {folder}/links\n    respond 404"}[name]
    return serving(name, folder, inside, 'geo $traffic_dollar { default "$"; }')


@pytest.fixture(scope="module", params=MAPS)
def ask(request, tmp_path_factory):
    """Asks a web server for a short code as browsers do; the status and the Location."""
    rows = tables(__file__)["test_a_web_server_leads_where_the_links_say"]
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
def test_a_web_server_leads_where_the_links_say(ask, short_code, target_url, location):
    assert ask(short_code) == (302, location)


@pytest.mark.parametrize("short_code", ["Plain", "nothing", "plain/", "plain.", "a", "x", ""])
def test_a_web_server_knows_no_other_links(ask, short_code):
    assert ask(short_code) == (404, None)


@examples_at_once("servers", "short_code", "target_url", "complaint")
def test_what_cannot_be_written_is_refused_by_its_name(servers, short_code, target_url, complaint):
    for name in MAPS if servers == "both" else [servers]:
        with pytest.raises(BadInput) as caught:
            MAPS[name]([link(short_code, target_url), link("fine")])
        assert complaint in str(caught.value)


def test_a_target_too_long_for_a_word_of_nginx_is_refused(tmp_path):
    longest = "https://shop.example/" + "$" * 220
    with redirecting("nginx", tmp_path, [link("long", longest)]):
        pass
    with pytest.raises(BadInput, match="the link 'long' is too long for nginx"):
        nginx_map([link("long", "https://shop.example/" + "ü" * 1_000)])


@pytest.mark.parametrize("name", MAPS)
def test_no_links_make_no_redirects(tmp_path, name):
    with redirecting(name, tmp_path, []):
        pass


def test_a_dollar_sign_is_the_only_thing_that_the_http_block_must_know(tmp_path):
    assert "geo" not in nginx_map([link("a")])
    assert '\n# The http block needs this line, once: geo $traffic_dollar { default "$"; }\n' in nginx_map(
        [link("a", "https://x.example/$")]
    )


def test_a_domain_has_its_own_links_and_those_for_every_domain():
    everywhere, plain = link("a"), link("c")
    here, there = link("a", "https://x.example/", "go.example"), link("b", domain="other.example")
    assert links_on([everywhere, here, there, plain], "go.example") == [here, plain]
    assert links_on([everywhere, here, there, plain], "other.example") == [everywhere, there, plain]
    assert links_on([everywhere, plain], "") == [everywhere, plain]
    with pytest.raises(BadInput, match=r"\(go\.example, other\.example\): choose one with --domain"):
        links_on([everywhere, here, there], "")

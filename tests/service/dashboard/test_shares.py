"""Shares: an address shows a fixed scope, and nothing else, to everyone who has it, until it is revoked or expires."""

import re
from datetime import datetime, timedelta

import pytest

from data import Lake
from data.recovery.backup import back_up
from data.recovery.verification import verify_lake
from data.tasks.erasure import Criteria, Eraser
from queries import PARAMETERS
from service.core.pages.rendering import CONTENT_SECURITY_POLICY, Renderer
from service.dashboard.shares import ShareStore
from tests.conftest import NOW
from tests.support.clock import Clock
from tests.support.control import dump_of, open_store
from tests.support.page_reading import (
    OURS,
    Browser,
    as_cells,
    as_shown,
    link_of,
    read,
    tables,
    tile_values,
    wait_until,
)
from tests.support.tables import examples
from tests.support.tables import tables as tables_of
from tests.support.visits import land, links, visit

FIXED = {"range": "7d", "domain": "go.example", "short_code": "launch"}
SCOPE = "range=7d&domain=go.example&short_code=launch"
WRONG = ("x", "a" * 43, "%00", "%ff", "..", "' OR 1=1 --", "é")


def visits_of(domain, code, agents, days=(1, 2, 20), **more):
    """Generate visits to a link, `agents` on each of some days before today, by people and by an assistant in turn."""
    kinds = ({"bot_category": "human", "referrer": f"{code}.example", "referrer_type": "other", "country": "SE"},
             {"bot_category": "ai_assistant", "ai_source": f"{code}-AI", "agent": f"{code}-bot", "operator": "OpenAI",
              "agent_kind": "assistant_fetch", "confidence": "high", "detection_method": "user_agent"})  # fmt: skip
    for day in days:
        for number in range(agents):
            at = datetime(2026, 3, 15, 9) - timedelta(days=day)
            yield visit(visited_at=at, domain=domain, short_code=code, path=f"/{code}", **kinds[number % 2], **more)


@pytest.fixture(scope="module")
def shared_lake(shared_lake):
    """A lake where acme has visits in the scope of its shares, and similar visits to another link, to another domain
    and on other days.
    """
    land(shared_lake, "acme", [*visits_of("go.example", "launch", 3), *visits_of("go.example", "docs", 5),
                               *visits_of("to.example", "launch", 7, days=(1,)),
                               *visits_of("to.example", "autumn", 2)])  # fmt: skip
    land(shared_lake, "rival", visits_of("rival.example", "theirs", 4))
    links(shared_lake, "acme", [{"short_code": "launch", "target_url": "https://example.com/launch"},
                                {"short_code": "docs", "target_url": "https://example.com/docs"}])  # fmt: skip
    return shared_lake


@pytest.fixture
def shares(shared_lake):
    """The shares of the lake, as a command or another server sees them."""
    with open_store(ShareStore, shared_lake, lambda: NOW) as store:
        yield store


@pytest.fixture
def share(browser):
    """Make a share as an editor; return its path."""

    def share(**fields):
        response = browser.post("settings/shares", **{"name": "For readers", **FIXED, **fields})
        assert response.status_code == 200, response.text
        return path_in(response.text)

    return share


@pytest.fixture
def reader(application):
    """A browser without any cookie, next to the editor's: it sends only what a test gives it."""

    class Reader(Browser):
        def get(self, path, **how):
            cookies, self.client.cookies = self.client.cookies, {}
            response = super().get(path, **how)
            self.client.cookies = cookies
            return response

    return Reader(application)


def path_in(html):
    """Return the path of the new share on a page."""
    link = read(html).one("div", class_="secret").one("code").text
    assert re.fullmatch(r"http://testserver/app/share/[\w-]{43}", link)
    return link.removeprefix("http://testserver")


def total(page):
    """Return the sum of a page's figures, except its unique visitors."""
    return str(sum(int(value) for name, value in tile_values(page).items() if name != "people_visitors"))


def test_a_share_shows_the_numbers_of_the_api_without_a_session(share, reader, shared_lake, opened):
    page = reader.read(share())
    with opened(shared_lake) as client:
        dashboard = client.get(f"/analytics/dashboard?{SCOPE}").json()
        for (name, part), rows in tables(page).items():
            assert part is None
            answer = client.get(f"/analytics/{name}?{SCOPE}").json()
            assert answer in dashboard.values()
            assert rows == as_cells(as_shown(answer, rows)[: len(rows)], rows[0]), name
        overview = client.get(f"/analytics/traffic-overview?{SCOPE}").json()
    values = tile_values(page)
    assert values["human_clicks"] == str(overview["human_clicks"])
    assert total(page) == "6" == str(overview["total_visits"])  # three on each of two days
    assert {"top-links", "time-series"} <= {name for name, _ in tables(page)}


@examples("fields", "visits", "lead")
def test_a_share_is_fixed_to_days_domain_and_link(share, reader, fields, visits, lead):
    page = reader.read(share(**fields))
    assert total(page) == str(visits)
    assert page.one("p", class_="lead").text.startswith(lead)


@pytest.fixture
def timed(lake, browsing):
    """The browser of an editor of acme, whose only visit was yesterday, and the server's clock."""
    land(lake, "acme", visits_of("go.example", "launch", 1, days=(1,)))
    clock = Clock(NOW)
    with browsing(lake, clock=clock) as browser:
        yield browser, clock


@pytest.mark.parametrize(("fields", "later"), [
    ({"range": "7d"}, "0"),
    ({"start_date": "2026-03-10", "end_date": "2026-03-15"}, "1"),
], ids=["range", "dates"])  # fmt: skip
def test_a_shared_range_follows_today_but_dates_are_fixed(timed, fields, later):
    browser, clock = timed
    path = path_in(browser.post("settings/shares", name="x", **fields).text)
    assert total(browser.read(path)) == "1"
    clock.now = NOW + timedelta(days=7)
    assert total(browser.read(path)) == later


def test_a_share_expires_after_the_chosen_number_of_days(timed):
    browser, clock = timed
    brief = path_in(browser.post("settings/shares", name="brief", days="2").text)
    for age, status in ((timedelta(days=2, seconds=-1), 200), (timedelta(days=2), 404)):
        clock.now = NOW + age
        assert browser.get(brief).status_code == status
    row = browser.read("settings/shares").row("brief")
    assert ("expired" in row.text, row.all("form")) == (True, [])


def test_a_share_refuses_every_parameter_of_the_catalog(share, reader):
    path, tried = share(), tables_of(__file__)["test_no_parameter_widens_a_share"]
    assert [name for name in PARAMETERS if f"{name}=" not in " ".join(tried)] == []
    for query in tried:
        response = reader.get(f"{path}?{query}")
        assert response.status_code == 400, query
        page = read(response.text)
        assert "has no effect on a shared page" in page.one("h1").text
        assert (page.all("table"), page.all("data"), page.all("a")) == ([], [], [])


def test_a_share_shows_nothing_outside_its_filters(share, reader):
    """Neither another link, domain, day or organization, nor a comparison with the days before."""
    response = reader.get(share())
    page = read(response.text)
    for word in ("docs", "autumn", "to.example", "rival", "theirs", "acme"):
        assert word not in response.text
    days = [row["date"] for row in tables(page)["time-series", None]]
    assert (days[0], days[-1], len(days)) == ("2026-03-09", "2026-03-15", 7)
    assert [one for one in page.all("span") if "change" in one.attributes.get("class", "")] == []
    assert [one for one in page.all() if "previous" in one.attributes.get("class", "")] == []
    assert "omparison" not in response.text
    empty = reader.get(share(start_date="2026-01-01", end_date="2026-01-02"))
    assert empty.status_code == 200
    assert "organization" not in empty.text.replace('class="organization"', "")
    assert not re.search(r"1[0-5] Mar|Feb", read(empty.text).text)


def test_a_share_links_to_no_other_page(share, reader):
    page = reader.read(share())
    assert {one["href"] for one in page.all("a")} == {"#main"}
    assert page.all("form") == []


@pytest.mark.parametrize("more", ["/", "/links", "/export/top-links.csv", "/../settings/api-keys", "/run/top-links"])
def test_no_page_has_an_address_below_a_share(share, reader, more):
    assert reader.get(share() + more).status_code in {303, 404}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_share_rejects_writes(share, reader, method):
    path = share()
    assert reader.client.request(method, path, headers=OURS).status_code == 405
    assert reader.client.request(method, path).status_code == 403


def test_a_share_answers_head_requests(share, reader):
    assert reader.client.head(share()).status_code == 200


def test_a_share_shows_no_hints_for_operators(lake, acme):
    at = datetime(2026, 3, 14)
    land(lake, "acme", [visit(visited_at=at), visit(visited_at=at, bot_category="other_bot", confidence="low")])
    text = acme.get(path_in(acme.post("settings/shares", name="x").text)).text
    assert [word for word in ("TRAFFIC_", "traffic agents", "curl", "acme", "CSV") if word in text] == []
    assert "Countries are unknown" in text


def test_a_share_secret_is_not_accepted_as_a_session_or_token(share, reader, stranger, shared_lake):
    path = share()
    response = reader.get(path)
    assert "set-cookie" not in response.headers
    secret = path.rpartition("/")[2]
    for cookie in ("traffic", "__Host-traffic"):
        assert reader.get("", headers={"Cookie": f"{cookie}={secret}"}).status_code == 303
    for header in (f"Bearer {secret}", f"Basic {secret}"):
        assert reader.get("/analytics/dashboard", headers={"Authorization": header}).status_code == 401
    assert reader.get(f"enter?code={secret}").status_code == 403
    stranger.client.cookies.clear()
    stranger.enter(link_of(shared_lake, "rival"))
    assert stranger.get(path).text == response.text


def test_a_wrong_secret_is_answered_like_any_unknown_path(reader, share):
    share()
    unknown = reader.get("share/there/is/nothing")
    assert "sign-in" not in unknown.text
    for secret in WRONG:
        wrong = reader.get(f"share/{secret}")
        assert (wrong.status_code, wrong.text) == (404, unknown.text) or (secret, wrong.status_code) == ("..", 303)


def test_a_share_shows_nothing_once_it_is_revoked(share, browser, reader):
    path = share(name="to be revoked")
    assert reader.get(path).status_code == 200
    form = browser.read("settings/shares").row("to be revoked").one("form")
    response = browser.post(form["action"])
    assert (response.status_code, response.headers["location"]) == (303, "/app/settings/shares")
    gone, unknown = reader.get(path), reader.get("share/x")
    assert (gone.status_code, gone.text) == (404, unknown.text)


def test_a_revoked_share_stays_in_the_list(share, browser):
    share(name="once shared")
    browser.post(browser.read("settings/shares").row("once shared").one("form")["action"])
    row = browser.read("settings/shares").row("once shared")
    assert ("revoked" in row.text, row.all("form")) == (True, [])


def test_a_share_that_another_program_revokes_shows_nothing(share, reader, shares):
    path = share()
    assert reader.get(path).status_code == 200
    assert shares.revoke(shares.share(path.rpartition("/")[2]).id, "acme")
    assert reader.get(path).status_code == 404


def test_a_share_counts_against_the_rate_limit(acme):
    path = path_in(acme.post("settings/shares", name="x").text)
    source = {"X-Forwarded-For": "203.0.113.77"}
    assert [acme.get(path, headers=source).status_code for _ in range(61)] == [200] * 60 + [429]


@examples("fields", "problem")
def test_an_invalid_share_is_not_created(browser, shares, fields, problem):
    before = len(shares.shares_of("acme"))
    response = browser.post("settings/shares", **{"name": "x", **fields})
    assert response.status_code == 400
    page = read(response.text)
    assert problem in page.one("p", class_="notice bad").text
    assert page.one("input", name="name")["value"] == fields.get("name", "x")
    assert len(shares.shares_of("acme")) == before


def test_the_list_of_shares_names_their_creator_and_last_use(share, browser, reader, shares):
    path = share(name="in the list", days="30", embedders="https://app.example")
    (before,) = [share for share in shares.shares_of("acme") if share.name == "in the list"]
    assert before.last_used_at is None
    reader.get(path)
    secret = path.rpartition("/")[2]
    wait_until(lambda: shares.share(secret).last_used_at)  # it is written after the response
    text = browser.get("settings/shares").text
    assert secret not in text
    row = read(text).row("in the list")
    for word in ("Days: the last 7, Domain: go.example, Link: launch", "https://app.example", "15 Mar 2026 12:00",
                 "14 Apr 2026", "active", f"session {before.created_by.partition(' ')[2]}"):  # fmt: skip
        assert word in row.text


def test_the_secret_of_a_share_is_neither_stored_nor_logged(lake, logged):
    with logged() as (browser, stream):
        browser.enter(link_of(lake))
        path = path_in(browser.post("settings/shares", name="name of it").text)
        secret = path.rpartition("/")[2]
        for address in (path, f"{path}?domain=secret.example", f"{path}x", f"{path}/links"):
            browser.get(address)
    log, dump = stream.getvalue().decode(), dump_of(lake)
    assert '"route":"/app/share/{secret}","status":200' in log
    assert '"route":"/app/share/{secret}","status":404' in log
    assert [word for word in (secret, secret[:8], "secret.example", "name of it") if word in log] == []
    assert ("name of it" in dump, secret in dump) == (True, False)


def test_a_share_is_neither_indexed_nor_embedded_by_default(share, reader):
    for path in (share(), share(embedders=" , "), "share/wrong", "sign-in"):
        response = reader.get(path)
        headers = response.headers
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert "frame-ancestors 'none'" in CONTENT_SECURITY_POLICY
        assert headers["x-frame-options"] == "DENY"
        if response.status_code == 200 and path != "sign-in":
            assert headers["x-robots-tag"] == "noindex"
            assert read(response.text).one("meta", name="robots")["content"] == "noindex"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["cache-control"] == "private, no-store"


def test_only_named_origins_can_embed_a_share(share, reader):
    path = share(embedders="https://app.example, HTTP://127.0.0.1:8080 https://app.example")
    for address, status in ((path, 200), (f"{path}?range=90d", 400)):
        response = reader.get(address)
        assert response.status_code == status
        policy = response.headers["content-security-policy"].split("; ")
        assert policy[-1] == "frame-ancestors https://app.example http://127.0.0.1:8080"
        assert policy[:-1] == CONTENT_SECURITY_POLICY.split("; ")[:-1]
        assert "x-frame-options" not in response.headers


def test_a_new_share_for_embedding_comes_with_its_iframe(browser):
    headers = {**OURS, "Accept-Encoding": "gzip"}
    response = browser.post("settings/shares", headers=headers, name="x", embedders="https://app.example")
    assert "content-encoding" not in response.headers
    frame = '<iframe src="http://testserver{}" title="Traffic" width="100%" height="900"></iframe>'
    assert read(response.text).all("code")[1].text == frame.format(path_in(response.text))


@pytest.fixture
def backed_up(shared_lake, shares, tmp_path):
    """A backup of the lake, and the secret of a share in it."""
    secret = shares.create("acme", "test", {"name": "kept"})
    back_up(shared_lake, tmp_path / "copy")
    copy = Lake(tmp_path / "copy")
    yield copy, secret
    copy.manifest.close()


def test_a_backup_contains_shares(backed_up):
    copy, secret = backed_up
    with open_store(ShareStore, copy, lambda: NOW) as restored:
        assert restored.share(secret).name == "kept"


def test_a_backup_with_shares_has_no_findings(backed_up):
    copy, _ = backed_up
    assert verify_lake(copy).findings == []


def test_a_share_is_rendered_again_only_when_its_numbers_change(lake, acme, monkeypatch):
    rendered = []
    monkeypatch.setattr(
        Renderer, "render", lambda *given, render=Renderer.render: rendered.append(given[1]) or render(*given)
    )
    land(lake, "acme", [*visits_of("go.example", "launch", 1), *visits_of("go.example", "docs", 2)])
    paths = [path_in(acme.post("settings/shares", name=name, range="30d").text) for name in "xy"]
    pages = [acme.get(path).text for path in paths]
    assert len(set(pages)) == len(paths)
    assert [acme.get(path).text for path in paths * 3] == pages * 3
    assert rendered.count("shared.html") == len(paths)
    Eraser(lake).run("acme", Criteria(short_code="launch"))
    assert [total(read(page)) for page in (pages[0], acme.get(paths[0]).text)] == ["9", "6"]
    assert rendered.count("shared.html") == len(paths) + 1

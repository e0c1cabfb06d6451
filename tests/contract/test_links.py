"""Reading, setting and removing single links over HTTP: ETags, tags, rejected input and failures."""

import itertools
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import pytest

from data.disk.locks import locked
from data.links.links import links_of
from data.store.link_files import lay_over
from service.intake import link_api as link_endpoints
from service.intake.link_api import MAX_WAITING_EDITS
from tests.support.identity import as_
from tests.support.lakes import links_path
from tests.support.tables import examples
from tests.support.visits import land, visit

NOW = "2026-03-15T12:00:00Z"
NUMBERS = itertools.count(1)


@pytest.fixture
def client(with_provider):
    """A client that sends requests as an editor of an organization that no other test uses."""
    with_provider.organization = f"o{next(NUMBERS)}"
    with_provider.headers |= as_(with_provider.organization)
    return with_provider


@pytest.fixture
def stored(client, shared_lake):
    """Return the stored links of an organization, by default this test's."""

    def stored(organization=client.organization):
        return [(link.domain, link.short_code, link.target_url) for link in links_of(shared_lake, organization)]

    return stored


def put(client, address, target_url="https://shop.example/", tags=None, **how):
    body = {"target_url": target_url} | ({} if tags is None else {"tags": tags})
    return client.put(f"/links/{address}", json=body, **how)


def body(short_code, domain, target_url="https://shop.example/", tags=()):
    link = {"short_code": short_code, "domain": domain, "target_url": target_url}
    return link | {"created_at": NOW, "tags": [*tags]}


def test_a_link_is_added_changed_read_and_removed(client, stored):
    answers = [
        put(client, "go.example/sale"),
        put(client, "go.example/sale"),
        put(client, "Go.Example:443/sale", "https://shop.example/new"),
        client.get("/links/go.example/sale"),
        client.delete("/links/go.example/sale"),
    ]
    assert [answer.status_code for answer in answers] == [201, 200, 200, 200, 200]
    first, new = body("sale", "go.example"), body("sale", "go.example", "https://shop.example/new")
    assert [answer.json() for answer in answers] == [first, first, new, new, new]
    assert list(answers[0].json()) == ["short_code", "domain", "target_url", "created_at", "tags"]
    assert stored() == []
    advice = "Check the domain and the short code; a link for every domain has the domain *."
    for answer in (client.get("/links/go.example/sale"), client.delete("/links/go.example/sale")):
        assert (answer.status_code, answer.json()) == (404, {"error": "Link not found.", "message": advice})


def test_the_etag_of_a_link_depends_only_on_its_state(client):
    first = put(client, "*/sale")
    assert first.headers["etag"] == client.get("/links/*/sale").headers["etag"]
    moved = put(client, "*/sale", "https://a.example").headers["etag"]
    tagged = put(client, "*/sale", "https://a.example", ["a"]).headers["etag"]
    assert put(client, "*/sale", tags=[]).headers["etag"] == first.headers["etag"]
    assert len({first.headers["etag"], moved, tagged}) == 3


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("header", ['"{old}"', "{weak}", "{bare}", '"{now}", "{old}"', '"*"', '""', "x"])
def test_a_write_with_an_unmet_condition_gets_412(client, stored, method, header):
    targets = "https://a.example", "https://b.example"
    old, now = (put(client, "*/sale", target).headers["etag"][1:-1] for target in targets)
    before = stored()
    given = {"If-Match": header.format(old=old, now=now, weak=f'W/"{now}"', bare=now)}
    body = {"json": {"target_url": "https://c.example"}} if method == "PUT" else {}
    answer = client.request(method, "/links/*/sale", headers=given, **body)
    assert (answer.status_code, answer.json()["error"]) == (412, "The link does not have the version in If-Match.")
    assert stored() == before


def test_writes_for_the_current_state_of_a_link_succeed(client, stored):
    tag = put(client, "*/sale").headers["etag"]
    tag = put(client, "*/sale", "https://a.example", headers={"If-Match": tag}).headers["etag"]
    assert put(client, "*/sale", "https://b.example", headers={"If-Match": "*"}).status_code == 200
    assert client.delete("/links/*/sale", headers={"If-Match": tag}).status_code == 412
    tag = client.get("/links/*/sale").headers["etag"]
    assert client.delete("/links/*/sale", headers={"If-Match": tag}).status_code == 200
    assert stored() == []


@pytest.mark.parametrize("header", ["*", '"' + 32 * "0" + '"'])
def test_a_write_with_if_match_to_a_missing_link_gets_412(client, stored, header):
    assert put(client, "*/sale", headers={"If-Match": header}).status_code == 412
    assert client.delete("/links/*/sale", headers={"If-Match": header}).status_code == 412
    assert stored() == []


def test_only_one_of_two_editors_with_one_etag_succeeds(client, stored):
    tag = put(client, "*/sale").headers["etag"]
    with ThreadPoolExecutor(2) as pool:
        targets = [f"https://{name}.example" for name in ("anna", "ben")]
        answers = [*pool.map(lambda target: put(client, "*/sale", target, headers={"If-Match": tag}), targets)]
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    (kept,) = (target for target, answer in zip(targets, answers, strict=True) if answer.status_code == 200)
    assert [target for _, _, target in stored()] == [kept]


def test_tags_are_set_kept_and_removed(client):
    put(client, "*/sale", tags=["spring", " mail "])
    assert client.get("/links/*/sale").json() == body("sale", "*", tags=["mail", "spring"])
    moved = put(client, "*/sale", "https://shop.example/new")
    assert moved.json()["tags"] == ["mail", "spring"]
    assert put(client, "*/sale", "https://shop.example/new", ["mail"]).json()["tags"] == ["mail"]
    assert put(client, "*/sale", "https://shop.example/new", []).json()["tags"] == []


def test_a_filter_by_tag_follows_edits_immediately(client, shared_lake):
    land(shared_lake, client.organization, [visit(short_code=code) for code in ("sale", "sale", "new", None)])
    edits = (("*/sale", ["<b>"], 2), ("*/new", ["<b>", "x"], 3), ("*/sale", [], 1), ("other.example/new", [], 1))
    for address, tags, visits in edits:
        put(client, address, tags=tags)
        overview = client.get("/analytics/traffic-overview", params={"tag": "<b>"}).json()
        assert overview["total_visits"] == visits
    assert client.get("/analytics/top-links", params={"tag": "unknown"}).json() == []


def test_a_filter_by_a_tag_with_too_many_links_is_rejected(client, monkeypatch):
    monkeypatch.setattr("queries.parameters.MAX_TAGGED", 1)
    put(client, "*/sale", tags=["a"])
    put(client, "*/new", tags=["a"])
    answer = client.get("/analytics/top-links", params={"tag": "a"})
    expected = {"error": "The parameter tag selects 2 links.", "message": "Use a tag with at most 1 links."}
    assert (answer.status_code, answer.json()) == (400, expected)


def test_a_link_added_again_has_no_old_tags(client):
    put(client, "*/sale", tags=["spring"])
    client.delete("/links/*/sale")
    assert put(client, "*/sale").json()["tags"] == []


@examples("tags", "told")
def test_invalid_tags_are_rejected(client, stored, tags, told):
    answer = put(client, "*/sale", tags=tags)
    assert answer.status_code == 400
    assert " ".join(answer.json().values()) == told
    assert stored() == []


def test_a_star_selects_only_the_link_shared_by_all_domains(client, stored):
    assert put(client, "*/sale", "https://shop.example/all").json() == body("sale", "*", "https://shop.example/all")
    assert client.get("/links/go.example/sale").status_code == 404
    assert put(client, "go.example/sale", "https://shop.example/go").status_code == 201
    assert stored() == [("", "sale", "https://shop.example/all"), ("go.example", "sale", "https://shop.example/go")]
    assert client.delete("/links/%2A/sale").json() == body("sale", "*", "https://shop.example/all")
    assert client.get("/links/go.example/sale").json()["target_url"] == "https://shop.example/go"


def test_a_filter_by_target_follows_edits_immediately(client, shared_lake):
    target = "https://shop.example/ü?a=1"
    land(shared_lake, client.organization, [visit(short_code=code) for code in ("sale", "sale", "größe")])
    for code, visits in ((None, 0), ("sale", 2), ("größe", 1)):
        client.delete("/links/*/sale")
        if code:
            assert put(client, f"*/{code}", target).json() == body(code, "*", target)
            assert client.get(f"/links/*/{code}").json() == body(code, "*", target)
        overview = client.get("/analytics/traffic-overview", params={"target_url": target}).json()
        assert overview["total_visits"] == visits


def test_links_of_other_organizations_cannot_be_read_or_changed(client, stored):
    put(client, "*/sale")
    other = as_("other")
    assert client.get("/links/*/sale", headers=other).status_code == 404
    assert client.delete("/links/*/sale", headers=other).status_code == 404
    assert put(client, "*/sale", "https://other.example", headers=other).status_code == 201
    assert stored() == [("", "sale", "https://shop.example/")]
    assert stored("other") == [("", "sale", "https://other.example")]


@examples("address", "error", "message")
def test_an_invalid_link_address_is_rejected(client, stored, address, error, message):
    answer = put(client, address)
    assert (answer.status_code, answer.json()) == (400, {"error": error, "message": message})
    assert stored() == []


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_reading_or_removing_a_link_with_a_body_gets_400(client, method):
    assert client.request(method, "/links/*/a", content=b"{}").status_code == 400


def test_a_link_cannot_be_created_by_post(client):
    assert client.post("/links/*/a").status_code == 405


@pytest.mark.parametrize("path", ["/links", "/links/*", "/links/*/a/b", "/links/*/a%2Fb"])
def test_a_path_that_cannot_name_a_link_gets_404(client, path):
    assert client.get(path).status_code == 404


def test_waiting_changes_are_limited_and_block_no_reads(client, shared_lake, stored, monkeypatch):
    monkeypatch.setattr(link_endpoints, "MAX_WAITING_EDITS", 2)
    put(client, "*/first")
    with ThreadPoolExecutor(5) as pool:
        with locked(shared_lake.links_root, wait=True):
            changes = [pool.submit(put, client, f"*/c{number}") for number in range(5)]  # one or two are in progress
            refused = [change.result() for change in wait(changes, return_when=FIRST_COMPLETED).done]
            assert {(answer.status_code, answer.headers["Retry-After"]) for answer in refused} == {(503, "1")}
            assert client.get("/links/*/first").status_code == 200
            assert client.get("/jobs").status_code == 200
        found = [change.result().status_code for change in changes]
    assert (set(found), found.count(201)) == ({201, 503}, len(stored()) - 1)


def test_waiting_changes_are_written_together(client, shared_lake, stored, monkeypatch):
    written = []
    monkeypatch.setattr("data.links.links.lay_over", lambda *links: (written.append(1), lay_over(*links)))
    with ThreadPoolExecutor(9) as pool:
        with locked(shared_lake.links_root, wait=True):
            changes = [pool.submit(put, client, f"*/c{number}") for number in range(MAX_WAITING_EDITS)]
            wait(changes, timeout=0.5)
        assert {change.result().status_code for change in changes} == {201}
    assert len(stored()) == MAX_WAITING_EDITS
    assert len(written) <= 2


def test_a_full_disk_is_reported_and_changes_nothing(client, shared_lake, stored, monkeypatch):
    put(client, "*/sale")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("data.store.link_files.write_parquet", full)
    for answer in (put(client, "*/new"), client.delete("/links/*/sale")):
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert stored() == [("", "sale", "https://shop.example/")]


def test_damaged_links_can_be_neither_read_nor_changed(client, shared_lake):
    put(client, "*/sale")
    links_path(shared_lake, client.organization).write_bytes(b"no Parquet")
    answers = [client.get("/links/*/sale"), put(client, "*/new"), client.delete("/links/*/sale")]
    assert [answer.status_code for answer in answers] == [500] * 3

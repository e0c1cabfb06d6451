"""Published address lists: accepted and rejected content; a rejected list does not replace the previous one."""

import json
import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from ipaddress import ip_address, ip_network
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import BadInput, LakeDamaged
from data.rules.ip_lists import MAX_LIST_BYTES, MAX_NETWORKS, FetchedList, folder_fetcher, parse_networks
from data.rules.tables import IpList
from data.store.ip_list_files import refresh, snapshots
from tests.support.tables import examples, examples_at_once, tables

NOW = datetime(2026, 3, 15, 12, 30, 45, 678_000, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
FORMS = ("prefixes", "json:hooks", "geofeed", "text")
OLD = [ip_network("20.42.10.176/28"), ip_network("2603:1030::/48")]


def list_of(name="gptbot", form="prefixes", url="https://list.example/"):
    return IpList(name, "OpenAI", url, form, evidence="https://docs.example/", checked=date(2026, 3, 1))


def prefixes(*networks):
    return json.dumps({"prefixes": [{f"ipv{6 if ':' in str(n) else 4}Prefix": str(n)} for n in networks]}).encode()


def written(networks, form):
    """Return a list in an operator's published form, with the other content of such lists."""
    texts = [str(network) for network in networks]
    if form == "prefixes":
        return prefixes(*networks)
    if form == "json:hooks":
        return json.dumps({"web": ["10.0.0.0/8"], "hooks": texts, "ssh_keys": ["ssh-ed25519 AAAA"]}).encode()
    if form == "geofeed":
        return ("# ours\r\n\r\n" + "".join(f"{text},IE,IE-L,Dublin,  # here\r\n" for text in texts)).encode()
    return ("<html><ul>" + "".join(f"<li>{text}</li>" for text in texts) + "</ul>, not 10.0.0.0/8.</html>").encode()


def stored(lake):
    return {path.name: path.read_bytes() for path in lake.ip_lists.iterdir()}


def networks_between(first, last, lengths):
    """Return a strategy for networks between two addresses, with prefix lengths from the first to the second of
    `lengths`."""
    kind = type(ip_network(first))
    start, end = (int(ip_address(address)) for address in (first, last))
    return st.builds(
        lambda number, length: kind((number, length), strict=False), st.integers(start, end), st.integers(*lengths)
    )


GLOBAL_NETWORKS = networks_between("11.0.0.0", "99.255.255.255", (8, 32))
GLOBAL_NETWORKS |= networks_between("2400::", "2fff:ffff::", (19, 128))


# Content


@pytest.mark.parametrize("form", FORMS)
@given(networks=st.lists(GLOBAL_NETWORKS, min_size=1, max_size=20, unique=True))
@settings(max_examples=50)
def test_every_network_of_a_list_is_read_in_order(form, networks):
    assert parse_networks(written(networks, form), form) == networks


@pytest.mark.parametrize("form", FORMS)
def test_networks_are_read_from_every_format(form):
    assert parse_networks(written(OLD, form), form) == OLD


@pytest.mark.parametrize("form", FORMS)
def test_a_network_listed_twice_is_read_once(form):
    assert parse_networks(written(OLD + OLD, form), form) == OLD


@pytest.mark.parametrize("form", FORMS)
def test_a_network_is_read_without_its_host_bits(form):
    assert parse_networks(written(["20.42.10.177/28", "2603:1030::7/48"], form), form) == OLD


@pytest.mark.parametrize("form", FORMS)
def test_a_byte_order_mark_is_not_part_of_a_list(form):
    assert parse_networks(b"\xef\xbb\xbf" + written(OLD, form), form) == OLD


@pytest.mark.parametrize("form", FORMS)
def test_an_address_is_read_as_a_network_of_one_address(form):
    assert parse_networks(written(["20.42.10.177"], form), form) == [ip_network("20.42.10.177/32")]


@examples_at_once("form", "text", "found")
def test_networks_are_found_in_a_list_of_any_format(form, text, found):
    assert [str(network) for network in parse_networks(text.encode(), form)] == list(found)


def test_the_largest_allowed_list_is_read():
    body = prefixes(*OLD)
    assert parse_networks(body + b" " * (MAX_LIST_BYTES - len(body)), "prefixes") == OLD
    assert len(parse_networks(written(addresses(MAX_NETWORKS), "geofeed"), "geofeed")) == MAX_NETWORKS


# Rejected lists do not replace the previous list

ERROR_PAGE = b"<!DOCTYPE html>\n<html><head><title>Just a moment...</title></head><body>Not found</body></html>\n"
NO_SUCH_FORM = r"^the list is not in the '(prefixes|json:hooks|geofeed|text)' format: "
LISTS = ("TOO_WIDE", "PRIVATE", "NO_NETWORK", "NO_PREFIXES", "NO_TEXTS")
NO_NETWORKS = "^the list contains 0 networks; it must contain 1 to 100,000$"
HUGE = b" " * 5_000_000
TOO_WIDE, PRIVATE, NO_NETWORK, NO_PREFIXES, NO_TEXTS = (tables(__file__)[name] for name in LISTS)
DEEP = "[" * 200_000 + "]" * 200_000
NO_PREFIXES += (
    '{"prefixes": [{"ipv4Prefix": ' + "9" * 5000 + "}]}",
    "[" * 200_000,
    f'{{"prefixes": {DEEP}}}',
    '{"prefixes": [{"ipv4Prefix": ' + '{"a": ' * 200_000 + "1" + "}" * 200_000 + "}]}",
)
NO_TEXTS += (f'{{"hooks": {DEEP}}}',)


def addresses(number):
    return [f"20.{n >> 16}.{n >> 8 & 255}.{n & 255}/32" for n in range(number)]


def refused():
    """Yield bodies that are not lists in a format: (name, form, body, pattern for the reason)."""
    for form in FORMS:
        is_text = form == "text"
        yield "page", form, ERROR_PAGE, NO_NETWORKS if is_text else NO_SUCH_FORM
        yield "empty-object", form, b"{}", NO_NETWORKS if is_text else NO_SUCH_FORM
        for name, body in (("empty", b""), ("only-mark", b"\xef\xbb\xbf")):
            yield name, form, body, NO_SUCH_FORM if form in FORMS[:2] else NO_NETWORKS
        yield "no-networks", form, written([], form), NO_NETWORKS
        yield "5-MB", form, HUGE, "^the list is larger than 4 MiB$"
        yield "undecodable", form, written(OLD, form) + b"\xff\xfe\x80", NO_SUCH_FORM + ".*codec"
        yield "utf-16", form, written(OLD, form).decode().encode("utf-16"), NO_SUCH_FORM
        for network in TOO_WIDE:
            yield network, form, written([*OLD, network], form), f"^the list contains {network}, "
    for form in FORMS[:3]:
        for network in PRIVATE:
            claimed = ip_network(network)
            yield network, form, written([*OLD, network], form), f"^the list contains {claimed}, "
        for text in (*NO_NETWORK, "x" * 100_000):
            yield text, form, written([*OLD, text], form), NO_SUCH_FORM
    for form, other in (("prefixes", "geofeed"), ("json:hooks", "prefixes"), ("geofeed", "prefixes")):
        yield f"a-{other}", form, written(OLD, other), NO_SUCH_FORM
    yield "120,000", "text", written(addresses(120_000), "text"), "^the list contains 120,000 networks; "
    for form, bodies in (("prefixes", NO_PREFIXES), ("json:hooks", NO_TEXTS)):
        for body in bodies:
            yield body[:40], form, body.encode(), NO_SUCH_FORM


def test_a_malformed_list_is_rejected_with_a_reason():
    for name, form, body, reason in refused():
        with pytest.raises(BadInput) as refusal:
            parse_networks(body, form)
        assert re.search(reason, str(refusal.value)), (form, name)
        assert len(str(refusal.value)) < 1_000  # a sentence, not the list


@pytest.mark.parametrize("form", FORMS)
def test_a_rejected_list_does_not_replace_the_old_list(lake, form):
    (first,) = refresh(lake, [list_of(form=form)], lambda row: written(OLD, form), NOW)
    before = stored(lake)
    for body in (b"", ERROR_PAGE, HUGE, written([*OLD, "0.0.0.0/0"], form)):
        (outcome,) = refresh(lake, [list_of(form=form)], lambda row, body=body: body, LATER)
        assert (first.snapshot.networks, outcome.snapshot) == (OLD, None)
        assert outcome.error
        assert stored(lake) == before
        assert list(lake.staging.iterdir()) == []


NOISE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | GLOBAL_NETWORKS.map(str),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["prefixes", "hooks", "ipv4Prefix", "ipv6Prefix"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.filterwarnings("ignore:__int__ returned non-int")  # true is a prefix, like any number
@pytest.mark.parametrize("form", FORMS)
@given(
    body=st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.text("0123456789abcdef:./,# \n", max_size=80).map(str.encode)
    | NOISE.map(lambda value: json.dumps(value).encode())
    | NOISE.map(lambda value: json.dumps({"prefixes": value, "hooks": value}).encode())
    | NOISE.map(lambda value: json.dumps({"prefixes": [{"ipv4Prefix": value}], "hooks": [value]}).encode())
)
def test_a_published_list_gives_public_networks_or_is_rejected(form, body):
    with suppress(BadInput):
        networks = parse_networks(body, form)
        assert networks
        assert all(network.is_global for network in networks)


# Stored in the lake


def test_a_list_is_stored_with_its_source_and_time_in_utc(lake):
    assert snapshots(lake) == {}
    (outcome,) = refresh(lake, [list_of()], lambda row: prefixes(*OLD), NOW.astimezone(ZoneInfo("Asia/Tokyo")))
    assert outcome == (list_of(), FetchedList("gptbot", NOW, OLD), "")
    assert snapshots(lake) == {"gptbot": FetchedList("gptbot", NOW.replace(microsecond=0), OLD)}
    assert json.loads((lake.ip_lists / "gptbot.json").read_text()) == {
        "url": "https://list.example/",
        "fetched_at": "2026-03-15T12:30:45+00:00",
        "networks": ["20.42.10.176/28", "2603:1030::/48"],
    }


def test_a_list_fetched_again_replaces_even_a_damaged_list(lake):
    (lake.ip_lists / "gptbot.json").write_bytes(b"{")
    for networks, moment in ((OLD, NOW), ([ip_network("20.42.11.0/24")], LATER)):
        list(refresh(lake, [list_of()], lambda row, networks=networks: prefixes(*networks), moment))
        assert snapshots(lake) == {"gptbot": FetchedList("gptbot", moment.replace(microsecond=0), networks)}


def test_a_failing_list_does_not_stop_the_others(lake):
    bodies = {"one": prefixes(*OLD), "two": ERROR_PAGE, "three": prefixes("20.42.11.0/24")}
    asked = []
    outcomes = iter(refresh(lake, map(list_of, bodies), lambda row: asked.append(row.name) or bodies[row.name], NOW))
    assert next(outcomes).row.name == "one"
    assert asked == list(snapshots(lake)) == ["one"]
    assert [(row.name, snapshot is None, bool(trouble)) for row, snapshot, trouble in outcomes] == [
        ("two", True, True), ("three", False, False),
    ]  # fmt: skip
    assert list(snapshots(lake)) == ["one", "three"]
    assert list(lake.staging.iterdir()) == []


def test_removed_lists_are_kept_and_other_files_are_ignored(lake):
    list(refresh(lake, [list_of(), list_of("long-gone")], lambda row: prefixes(*OLD), NOW))
    (lake.ip_lists / "gptbot.json~").write_text("an editor's")
    (lake.ip_lists / "README.txt").write_text("somebody's")
    (outcome,) = refresh(lake, [list_of()], lambda row: prefixes("20.42.11.0/24"), LATER)
    assert outcome.error == ""
    assert {name: snapshot.networks for name, snapshot in snapshots(lake).items()} == {
        "gptbot": [ip_network("20.42.11.0/24")],
        "long-gone": OLD,
    }


@examples("content")
def test_a_damaged_snapshot_is_reported(lake, content):
    list(refresh(lake, [list_of("fine"), list_of()], lambda row: prefixes(*OLD), NOW))
    file = lake.ip_lists / "gptbot.json"
    file.write_bytes(content.replace("AT", '"fetched_at": "2026-03-15T12:30:45+00:00"').encode("latin-1"))
    with pytest.raises(LakeDamaged) as damage:
        snapshots(lake)
    assert str(damage.value) == f"{file} cannot be read; delete it, or run `traffic agents refresh`."


def test_an_unreadable_snapshot_is_reported(lake):
    (lake.ip_lists / "gptbot.json").mkdir()
    with pytest.raises(LakeDamaged, match=r"gptbot\.json cannot be read"):
        snapshots(lake)
    (lake.ip_lists / "gptbot.json").rmdir()
    (lake.ip_lists / "gptbot.json").write_text(DEEP)
    with pytest.raises(LakeDamaged, match=r"gptbot\.json cannot be read"):
        snapshots(lake)


def test_a_list_is_read_from_a_file_with_its_name_and_any_suffix(lake, tmp_path):
    names = {"gptbot": "gptbot.json", "meta": "meta.csv", "amazon": "amazon.tar.html"}
    for name in names.values():
        (tmp_path / name).write_bytes(prefixes(*OLD))
    for name in ("gptbot-more.json", "gptbot2.json", "gptbot"):
        (tmp_path / name).write_bytes(ERROR_PAGE)
    (tmp_path / "folder.json").mkdir()
    outcomes = refresh(lake, map(list_of, [*names, "missing", "folder"]), folder_fetcher(tmp_path), NOW)
    assert [outcome.error for outcome in outcomes] == [
        "", "", "", f"{tmp_path} has no file missing.*", f"{tmp_path / 'folder.json'} cannot be read: Is a directory",
    ]  # fmt: skip
    assert sorted(snapshots(lake)) == sorted(names)

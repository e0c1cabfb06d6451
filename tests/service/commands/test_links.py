"""`traffic links`: what is told and asked before links go."""

import re

import pytest

from data.store.links import links_of
from service.commands import confirmation
from tests.service.commands.runs import refused


@pytest.fixture
def links(traffic, lake, tmp_path):
    """Runs `traffic links`; a text takes the place of the file."""

    def links(command, *words):
        if command == "import":
            (tmp_path / "links.csv").write_text(words[0])
            words = (tmp_path / "links.csv", *words[1:])
        return traffic("links", command, *words, "--org", "acme", "--lake", lake.root)

    return links


def csv_of(*codes):
    return "short_code,target_url\n" + "".join(f"{code},https://shop.example/{code}\n" for code in codes)


def codes(lake):
    return [link.short_code for link in links_of(lake, "acme")]


def test_an_import_tells_what_it_adds_and_changes_and_takes_nothing_away(lake, links):
    assert links("import", csv_of("a", "b")).err == (
        "acme now has 2 links: 2 added, 0 changed, 0 unchanged, 0 removed.\n"
    )
    text = csv_of("a", "c").replace("shop.example/a", "new.example/a")
    told = "3 links: 1 added, 1 changed, 1 unchanged, 0 removed.\n"
    assert links("import", text, "--dry-run") == (0, "", f"acme would have {told}")
    assert codes(lake) == ["a", "b"]
    assert links("import", text) == (0, "", f"acme now has {told}")
    assert codes(lake) == ["a", "b", "c"]


def test_the_export_of_another_service_is_imported(lake, links):
    assert links("import", '{"total": 1, "data": [{"address": "a", "target": "https://x.example"}]}').code == 0
    assert (
        links("import", "Slug,Long URL\nb,https://x.example\n", "--columns", "short_code=Slug,target_url=Long URL").code
        == 0
    )
    assert codes(lake) == ["a", "b"]
    assert "export of kutt" in refused(links("import", "source,target\nc,https://x.example\n", "--format", "kutt"))


def test_one_of_several_pages_is_imported_but_replaces_nothing(lake, links):
    links("import", csv_of("z"))
    page = '{"total": 12, "data": [{"address": "a", "target": "https://x.example"}]}'
    assert "it has 11 more" in refused(links("import", page, "--replace", "--yes"))
    assert codes(lake) == ["z"]
    assert "it has 11 more" in links("import", page).err
    assert codes(lake) == ["a", "z"]


def test_links_that_are_left_out_are_named(lake, links):
    text = csv_of("a", "b c", "d")
    assert "--skip-invalid" in refused(links("import", text))
    assert codes(lake) == []
    run = links("import", text, "--skip-invalid")
    assert run.code == 0
    assert re.search(r"^Left out: .*links\.csv, line 3: 'b c' is not a valid short code", run.err, re.MULTILINE)
    assert codes(lake) == ["a", "d"]


def test_where_nobody_can_be_asked_links_are_removed_with_yes_only(lake, links):
    links("import", csv_of("a", "b", "c"))
    assert "--yes" in refused(links("import", csv_of("a"), "--replace"))
    dry = links("import", csv_of("a"), "--replace", "--dry-run")
    assert dry == (0, "", "acme would have 1 link: 0 added, 0 changed, 1 unchanged, 2 removed.\n")
    assert codes(lake) == ["a", "b", "c"]
    assert links("import", csv_of("a"), "--replace", "--yes").code == 0
    assert codes(lake) == ["a"]
    assert links("import", csv_of("a", "d"), "--replace").code == 0  # nothing is removed: no question


@pytest.mark.parametrize(("answer", "left"), [("n", 13), ("", 13), ("y", 1)])
def test_before_links_go_it_names_them_and_asks(lake, links, monkeypatch, answer, left):
    links("import", csv_of(*(f"c{number:02}" for number in range(13))))
    monkeypatch.setattr(confirmation, "can_ask", lambda: True)
    monkeypatch.setattr("sys.stdin.readline", lambda: f"{answer}\n", raising=False)
    run = links("import", csv_of("c00"), "--replace")
    assert "12 removed: c01, c02, c03, c04, c05, c06, c07, c08, c09, c10 and 2 more.\nRemove them? [y/N]" in run.err
    assert (run.code, len(codes(lake))) == (0 if answer == "y" else 130, left)


def test_a_link_is_added_and_led_elsewhere(lake, links):
    assert links("add", "sale", "https://shop.example/a").err == (
        "acme now has 1 link: 1 added, 0 changed, 0 unchanged, 0 removed.\n"
    )
    links("add", "sale", "https://shop.example/b", "--domain", "Go.Example:443")
    links("add", "sale", "https://shop.example/c")
    assert [(link.domain, link.target_url[-1]) for link in links_of(lake, "acme")] == [("", "c"), ("go.example", "b")]


@pytest.mark.parametrize(
    "words", [("a/b", "https://x.example"), ("a", "nowhere"), ("a", "https://x.example", "--domain", "https://y")]
)
def test_a_link_that_cannot_be_is_refused(lake, links, words):
    assert re.match("traffic: the link: ", refused(links("add", *words)))
    assert codes(lake) == []


def test_one_link_is_removed_and_others_stay(lake, links):
    links(
        "import",
        "short_code,domain,target_url\na,,https://x.example\na,go.example,https://x.example\nb,,https://x.example\n",
    )
    assert "--yes" in refused(links("remove", "a"))
    assert links("remove", "a", "--domain", "GO.example:443", "--yes") == (0, "", "acme no longer has go.example/a.\n")
    assert [(link.short_code, link.domain) for link in links_of(lake, "acme")] == [("a", ""), ("b", "")]
    assert "no link 'a' on go.example" in refused(links("remove", "a", "--domain", "go.example", "--yes"))
    assert "no link 'c' for every domain" in refused(links("remove", "c", "--yes"))
    assert "--domain must be a host" in refused(links("remove", "b", "--domain", "https://x", "--yes"))
    assert codes(lake) == ["a", "b"]


@pytest.mark.parametrize(("answer", "left"), [("n", ["a"]), ("y", [])])
def test_before_a_link_goes_it_is_named_with_its_target(lake, links, monkeypatch, answer, left):
    links("add", "a", "https://x.example")
    monkeypatch.setattr(confirmation, "can_ask", lambda: True)
    monkeypatch.setattr("sys.stdin.readline", lambda: f"{answer}\n", raising=False)
    assert "acme has a, which leads to https://x.example.\nRemove it? [y/N]" in links("remove", "a").err
    assert codes(lake) == left


BOTH = "short_code,domain,target_url\na,,https://x.example\na,go.example,https://y.example\nb,,https://z.example\n"
LIKE_FORMULAS = '-a,,https://x.example/;=1\n_b,,"https://y.example/?a=\'=1,+2"\n'


def test_links_are_exported_for_one_domain(lake, links):
    links("import", BOTH)
    run = links("export", "--domain", "GO.example", "--format", "nginx")
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines() == [
        "# Redirects of 2 short links. Include this file in a server block.",
        'location = "/a" { return 302 "https://y.example"; }',
        'location = "/b" { return 302 "https://z.example"; }',
    ]
    assert (
        "\t`/a` `https://x.example`\n\t`/b` `https://z.example`\n"
        in links("export", "--domain", "else.example", "--format", "caddy").out
    )
    assert [line.split(",")[:3] for line in links("export", "--domain", "go.example").out.splitlines()[1:]] == [
        ["a", "go.example", "https://y.example"], ["b", "", "https://z.example"]
    ]  # fmt: skip


def test_all_links_are_exported_as_they_are_imported(lake, links):
    links("import", BOTH + LIKE_FORMULAS)
    exported = links("export").out
    assert exported == links("list").out
    assert "0 added, 0 changed, 5 unchanged" in links("import", exported, "--replace").err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--format", "apache"), "--format 'apache' is not known; use csv, caddy or nginx."),
        (("--format", "nginx"), "choose one with --domain"),
        (("--format", "caddy", "--domain", "a b"), "--domain must be a host"),
    ],
)
def test_an_export_that_cannot_be_is_refused(lake, links, words, complaint):
    links("import", BOTH)
    assert complaint in refused(links("export", *words))

"""Exports short links as redirects, in files that nginx and Caddy include."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from data.errors import BadInput
from data.hosts import normalized_host
from data.links.links import Link
from data.text import plural

_URL_CHARACTERS: Final = "!#$%&'()*+,/:;=?@[]~"
"""Characters that stay unencoded in a URL, besides letters, digits and `-._`. All others are percent-encoded."""
_MAX_NGINX_PATH: Final = 255
"""The longest path, in bytes. nginx stores the length of a location in one byte, so a longer path would hide other
locations.
"""
_MAX_NGINX_WORD: Final = 4_000
"""The longest word, in bytes. nginx rejects words in its configuration that are longer than 4,096 bytes."""
_DOLLAR: Final = "traffic_dollar"
"""The name of the nginx variable that contains a dollar sign, since nginx cannot escape one."""


class OmittedLink(NamedTuple):
    """A link that is left out of a web server's file, and the reason."""

    link: Link
    reason: str

    def __str__(self) -> str:
        return f"/{self.link.short_code}: {self.reason}."


class RedirectMap(NamedTuple):
    """A file for a web server, and the links omitted from it."""

    text: str
    written: int
    left_out: list[OmittedLink]

    def summary(self) -> str:
        """Return how many links were exported, and how many were left out for each reason."""
        reasons = Counter(left_out.reason for left_out in self.left_out)
        counts = "; ".join(f"{count:,} ({reason})" for reason, count in reasons.most_common())
        return f"Exported {self.written:,} of {plural(self.written + len(self.left_out), 'link')}. Left out: {counts}."


class _Redirect(NamedTuple):
    link: Link
    path: str  # decoded, as web servers compare it
    target: str  # for the Location header


def links_on(links: Iterable[Link], domain: str) -> list[Link]:
    """Return the links that work on a domain: its own links, and links for every domain, unless the domain has its own
    link with the same short code.

    Without a domain, return all links; raise BadInput if any link names a domain.
    """
    all_links = list(links)
    if not domain:
        if domains := sorted({link.domain for link in all_links} - {""}):
            raise BadInput(f"some links belong to a domain ({', '.join(domains[:5])}): choose a domain with --domain.")
        return all_links
    chosen = {link.short_code: link for link in all_links if not link.domain}
    chosen |= {link.short_code: link for link in all_links if link.domain == domain}
    return [chosen[short_code] for short_code in sorted(chosen)]


def nginx_map(links: Iterable[Link]) -> RedirectMap:
    """Return locations for an nginx server block. They are not a `map`, because an nginx map ignores case."""
    redirects, left_out = _redirects(links)
    locations = []
    for link, path, target in redirects:
        word = nginx_word(target).replace("$", f"${{{_DOLLAR}}}")
        try:
            location = nginx_path(path)
        except BadInput as error:
            left_out.append(OmittedLink(link, str(error)))
            continue
        if len(word.encode()) > _MAX_NGINX_WORD:
            left_out.append(OmittedLink(link, "its target is too long for nginx"))
        else:
            locations.append(f"location = {location} {{ return 302 {word}; }}")
    lines = [f"# Redirects for {plural(len(locations), 'short link')}. Include this file in a server block."]
    if any(f"${{{_DOLLAR}}}" in location for location in locations):
        lines.append(f'# The http block needs this line, once: geo ${_DOLLAR} {{ default "$"; }}')
    return RedirectMap("".join(f"{line}\n" for line in [*lines, *locations]), len(locations), left_out)


def caddy_map(links: Iterable[Link]) -> RedirectMap:
    """Return directives for a site in a Caddyfile."""
    redirects, left_out = _redirects(links)
    lines = []
    for link, path, target in redirects:
        if any(character in path for character in "{}`"):
            left_out.append(OmittedLink(link, "a Caddyfile has no way to write {, } or ` in a path"))
        else:
            lines.append(f"\t`{path}` `{target}`\n")
    text = (
        f"# Redirects for {plural(len(lines), 'short link')}. Import this file in a site block.\n"
        f'map {{path}} {{traffic_target}} {{\n{"".join(lines)}\tdefault ""\n}}\n'
        '@traffic_link not vars {traffic_target} ""\n'
        "redir @traffic_link {traffic_target} 302\n"
    )
    return RedirectMap(text, len(lines), left_out)


def _redirects(links: Iterable[Link]) -> tuple[list[_Redirect], list[OmittedLink]]:
    """Return the redirects and the omitted links: links that no web server can serve, and duplicates of a path.

    The limits of a particular web server are not applied here. Among links with the same path, a link for one domain
    takes precedence over a link for every domain; after that, a short code without percent-encoding takes precedence.
    """
    redirects, left_out, taken = list[_Redirect](), list[OmittedLink](), set[str]()
    for link in sorted(links, key=lambda link: (not link.domain, "%" in link.short_code)):
        try:
            path = decoded_path(f"/{link.short_code}")
        except BadInput as error:
            left_out.append(OmittedLink(link, str(error)))
            continue
        if path in taken:
            left_out.append(OmittedLink(link, "another link has the same path when both are decoded"))
        else:
            taken.add(path)
            try:
                redirects.append(_Redirect(link, path, location_of(link.target_url)))
            except BadInput as error:
                left_out.append(OmittedLink(link, str(error)))
    return redirects, left_out


def decoded_path(path: str) -> str:
    """Decode a percent-encoded path as web servers do. Raises BadInput if the result is not UTF-8 or not printable."""
    try:
        decoded = unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise BadInput("its decoded path is not UTF-8") from None
    if not decoded.isprintable():
        raise BadInput("its path contains characters that cannot be printed")
    return decoded


def location_of(target_url: str) -> str:
    """Return a target URL as the value of a Location header.

    Raises BadInput if it contains a control character or a backslash, or is not a valid URL with a valid host.
    """
    if any(character < " " or character in "\x7f\\" for character in target_url):
        raise BadInput("its target contains a control character or a backslash, which browsers read differently")
    try:
        parts = urlsplit(target_url)
        user, at, host = parts.netloc.rpartition("@")
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        raise BadInput("its target is not a valid URL") from None
    name_of_host = normalized_host(host)
    if not name_of_host:
        raise BadInput("its target has no valid host")
    address = parts.netloc if host.isascii() else f"{user}{at}{name_of_host}{port}"
    return quote(target_url.replace(parts.netloc, address, 1), safe=_URL_CHARACTERS)


def nginx_path(path: str) -> str:
    """Quote a decoded path for an nginx location. Raises BadInput if nginx would match it wrongly."""
    if len(path.encode()) > _MAX_NGINX_PATH:
        raise BadInput(f"nginx compares no more than {_MAX_NGINX_PATH} bytes of a path")
    if is_shortened(path):
        raise BadInput("nginx shortens paths with //, /./ or /../ before it compares them")
    return nginx_word(path)


def is_shortened(path: str) -> bool:
    """Return whether web servers shorten a decoded path before they compare it."""
    return "//" in path or not {".", ".."}.isdisjoint(path.split("/"))


def nginx_word(text: str) -> str:
    """Quote a string as a word in an nginx configuration: a backslash escapes backslashes and quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

"""The pages that browser tests open, and an attacker's visits."""

from urllib.parse import quote

HOSTILE = "hostile"
"""The organization with hostile visits."""

PAGES = {
    "overview": "",
    "ai": "ai",
    "ai-source": "ai/ChatGPT",
    "now": "now",
    "robots": "robots?block=OpenAI:trained",
    "invented-links": "invented-links",
    "left-out": "left-out",
    "agents": "agents",
    "agent": "agents/GPTBot",
    "operator": "operators/OpenAI",
    "paths": "paths?traffic_type=ai",
    "people": "people",
    "compared": "people?range=7d&compare=before",
    "agents-compared": "agents?range=7d&compare=before",
    "filtered": "people?f_device_type=desktop&f_referrer=%28direct%29",
    "times": "times",
    "links": "links",
    "links-by-tag": "links?by=tag",
    "links-found": "links?search=e&visits=none&sort=created_at",
    "link": "link?short_code={short_code}",
    "domains": "domains",
    "jobs": "jobs",
    "job": "jobs/{job}",
    "api-keys": "settings/api-keys",
    "sessions": "settings/sessions",
    "shares": "settings/shares",
    "agent-hooks": "settings/agent-hooks",
    "agent-hook": "settings/agent-hooks/{hook}",
    "cache": "settings/cache",
    "storage": "settings/storage",
    "sql": "run/time-series",
}
"""The pages by name: their paths after /app/."""
OF_ACME = {"link", "agent", "operator", "ai-source", "job", "agent-hook"}
"""The pages that only acme has."""

WORDS = (
    '"><script>alert(1)</script>',
    "javascript:alert(1)",
    "<img src=x onerror=alert(1)>",
    "\u202egnp.exe\u202c",
    '=HYPERLINK("http://evil.example","x")',
    "{{ 7 * 7 }}",
    "w" * 8_000,
)
"""An attacker's text for every stored field of a visitor."""


def hostile_lines(day):
    """Return a log in the combined format, with each word in a path, query, referrer and user agent."""
    lines = []
    for number, word in enumerate(WORDS):
        written = word.replace('"', "%22") if number else word.replace('"', "\\x22")
        time = day.strftime(f"%d/%b/%Y:10:{number:02}:00 +0000")
        lines.append(
            f'203.0.113.{number} - - [{time}] "GET /x{number}?utm_source={quote(word)}&utm_campaign={quote(word)}&'
            f'utm_medium={quote(word)} HTTP/1.1" 200 12 "https://{written}/" "Mozilla/5.0 {written}bot/1.0"\n'
        )
        lines.append(f'203.0.113.{number} - - [{time}] "GET /{quote(word)} HTTP/1.1" 404 12 "{written}" "{written}"\n')
    return "".join(lines).encode()

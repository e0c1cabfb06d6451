"""Hypothesis strategies for reported visits, many of which must be rejected."""

from hypothesis import strategies as st

from tests.support.user_agents import CHROME, GPTBOT


def joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map("".join)


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
ODD = TEXTS | st.sampled_from(
    ("%", "%ud800", "\\x", "\\xff\\xfe", "utm_source=%ff%00", "//[", "https://[", "a" * 9_000, "\u202e", "?")
)
BEGINNINGS = ("", "/", "https://", "http://", "//", "HTTPS://", "https://go.example/?", "https://chatgpt.com/")
ADDRESSES = joined(st.sampled_from(BEGINNINGS), TEXTS, st.sampled_from(("", "/", "?", "#", "@", ":80/")), ODD)
SECONDS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 1_772_000_000) | st.integers()
REPORTED = st.fixed_dictionaries(
    {},
    optional={
        "time": SECONDS | TEXTS,
        "ip": st.ip_addresses().map(str) | TEXTS,
        "method": st.sampled_from(("GET", "POST", "head")) | TEXTS,
        "url": ADDRESSES,
        "domain": ODD,
        "path": ADDRESSES | ODD.map("/{}".format),
        "status": st.integers(100, 999) | st.integers(),
        "user_agent": joined(st.sampled_from(("", CHROME, GPTBOT, "Mozilla%2F5.0%20Firefox", "curl/8.9.1")), ODD),
        "referrer": ADDRESSES,
        "country": st.sampled_from(("DE", "xx")) | TEXTS,
        "bytes_sent": st.integers(),
    },
)

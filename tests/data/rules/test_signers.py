"""Agents named by the header `Signature-Agent`, and its precedence."""

import pytest

from data.rules.bots import bot_classification
from data.rules.classifier import Classifier
from data.rules.lake_tables import LakeTables
from data.rules.own_agents import checked_agents
from data.rules.signers import MAX_LENGTH, Signers
from data.rules.tables import Agent, load
from tests.support.own_agents import MONITOR, USER_AGENT, table_of
from tests.support.user_agents import CHROME, GPTBOT

CHATGPT = 'sig1="https://chatgpt.com"'
REGIONAL = '"https://{}.keydirectory.signer.{}.on.aws"'


@pytest.fixture(scope="module")
def signers():
    return Signers()


@pytest.mark.parametrize("header", [
    CHATGPT,
    '"https://chatgpt.com"',
    "https://chatgpt.com",
    "chatgpt.com",
    '"https://ChatGPT.com:443/.well-known/http-message-signatures-directory"',
    "https://chatgpt.com./?a",
    'sig1="https://chatgpt.com";type="a,b";v=1',
    'sig1=https://chatgpt.com;v=1',
    'other="https://nobody.example", \tsig-2*.x="https://chatgpt.com"',
    r"sig1=\x22https://chatgpt.com\x22",
    r"sig1=\"https://chatgpt.com\"",
])  # fmt: skip
def test_each_form_of_the_header_names_its_agent(signers, header):
    assert signers.agent(header).agent == "ChatGPT Agent"


@pytest.mark.parametrize("header", [
    "", "-", "x", "https://", 'sig1=""', '""',
    '"https://nobody.example"',
    '"http://chatgpt.com"',
    '"data:application/http-message-signatures-directory;utf8,{}"',
    '"https://chatgpt.com.nobody.example"',
    '"https://not.chatgpt.com"',
    '"https://nobody@chatgpt.com"',
    '"https://nobody.example/https://chatgpt.com"',
    '"https://chatgpt.com',
    f"{CHATGPT}, sig2=\"https://a",
    f"{CHATGPT} and more",
    f"{CHATGPT};a=\"b",
    f"{CHATGPT}{' ' * MAX_LENGTH}",
    '"https://keydirectory.signer.us-east-1.on.aws"',
])  # fmt: skip
def test_any_other_header_is_ignored(signers, header):
    assert signers.agent(header) is None


@pytest.mark.parametrize(("first", "region"), [("xhah6q48pbxb4", "us-east-1"), ("o42g509c7dlj6", "eu-central-1")])
def test_a_star_in_a_host_stands_for_one_label(signers, first, region):
    assert signers.agent(REGIONAL.format(first, region)).agent == "Bedrock AgentCore Browser"
    assert signers.agent(REGIONAL.format(f"a.{first}", region)) is None


def test_each_signer_host_gives_the_operator_of_its_row(signers):
    rows = [(row, way.partition(":")) for row in load(Agent, "agents") for way in row.verify]
    hosts = [(row, host.replace("*", "a")) for row, (way, _, host) in rows if way == "signature"]
    assert len(hosts) > 40
    assert {row.operator for row, host in hosts if signers.agent(host).operator != row.operator} == set()


def test_a_signature_is_a_claim_of_medium_confidence(signers):
    told = signers.agent('"https://www.browserbase.com"')
    assert (told.bot_category, told.agent_kind, told.confidence) == ("ai_assistant", "agentic_browser", "medium")
    assert (told.detection_method, told.device_type, told.ai_source) == ("signature", "bot", "Browserbase")


# With user agent and address

CHATGPT_USER = "Mozilla/5.0 (compatible; ChatGPT-User/1.0; +https://openai.com/bot)"


@pytest.mark.parametrize(("user_agent", "agent", "method"), [
    (CHROME, "ChatGPT Agent", "signature"),
    ("", "ChatGPT Agent", "signature"),
    ("curl/8.9.1", "ChatGPT Agent", "signature"),
    ("Claude-User/1.0", "ChatGPT Agent", "signature"),
    (CHATGPT_USER, "ChatGPT-User", "user_agent"),
    (GPTBOT, "GPTBot", "user_agent"),
])  # fmt: skip
def test_only_a_user_agent_of_the_same_operator_keeps_its_name(classifier, user_agent, agent, method):
    told = classifier.signers.named(classifier.classify_user_agent(user_agent), CHATGPT)
    assert (told.agent, told.detection_method) == (agent, method)


@pytest.mark.parametrize("confidence", ["verified", "contradicted", "medium"])
def test_results_of_address_verification_are_kept(signers, confidence):
    by_address = bot_classification("other", "Claude-User", confidence, method="ip_range")
    assert signers.named(by_address, CHATGPT) is by_address


def test_a_custom_agent_keeps_its_name():
    own = Classifier(LakeTables(checked_agents("agents.toml", table_of(MONITOR))))
    assert own.signers.named(own.classify_user_agent(USER_AGENT), CHATGPT).agent == "Intranet Monitor"


def test_a_custom_row_may_rename_a_signer():
    row = {**MONITOR, "verify": ["signature:chatgpt.com"]}
    assert Signers(LakeTables(checked_agents("agents.toml", table_of(row)))).agent(CHATGPT).agent == "Intranet Monitor"

"""`traffic hooks`: the same hooks as over HTTP, from the command line."""

import re
from datetime import UTC, datetime

import pytest

from service.hooks.attempts import claim, finish
from service.hooks.delivery import Attempt
from service.hooks.registry import Hooks
from tests.service.commands.runs import refused
from tests.support.control import open_store
from tests.support.tables import examples


@pytest.fixture
def hooks(traffic, lake, monkeypatch):
    """Runs `traffic hooks` for acme."""
    monkeypatch.setenv("TRAFFIC_LAKE", str(lake.root))

    def hooks(*arguments, organization="acme"):
        return traffic("hooks", *arguments, "--org", organization)

    return hooks


@pytest.fixture
def registry(lake):
    with open_store(Hooks, lake) as registry:
        yield registry


def create(hooks, *more):
    run = hooks("create", "--name", "agent", "--url", "https://hooks.example/traffic", *more)
    assert run.code == 0, run.err
    return re.search(r"hook_[0-9a-f]{20}", run.err)[0], run.out.strip()


def attempted(registry, attempt):
    with registry.database.transaction() as connection:
        return finish(connection, claim(connection, datetime.now(UTC)), attempt, datetime.now(UTC))


def test_a_hook_is_created_and_only_its_secret_printed(hooks, registry):
    hook, secret = create(hooks)
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
    (made,) = registry.of("acme")
    assert (made.id, made.secret_last4, made.events, made.created_by) == (hook, secret[-4:], ("job.approved",), None)
    create(hooks, "--event", "job.created", "--event", "job.resolved")
    assert registry.of("acme")[1].events == ("job.created", "job.resolved")
    listed = hooks("list").out
    assert hook in listed
    assert secret[6:] not in listed
    assert hook not in hooks("list", organization="other").out


def test_without_hooks_or_deliveries_a_list_says_how_to_get_some(hooks, registry):
    listed = hooks("list")
    assert (listed.code, listed.out) == (0, "")
    assert listed.err == "acme has no hooks; `traffic hooks create` makes one.\n"
    hook, _ = create(hooks)
    assert (
        hooks("deliveries", hook).err == f"Nothing was sent to {hook} yet; `traffic hooks test` sends a made-up job.\n"
    )


@examples("changed", "message")
def test_a_hook_that_cannot_be_is_refused(traffic, lake, changed, message):
    flags = {"--name": "agent", "--url": "https://hooks.example/", "--org": "acme", "--lake": lake.root} | changed
    assert message in refused(traffic("hooks", "create", *(word for pair in flags.items() for word in pair)))


def test_plain_http_and_ones_own_address_depend_on_the_settings(hooks, monkeypatch, registry):
    monkeypatch.setenv("TRAFFIC_HOOK_NETWORKS", "192.168.7.0/24")
    monkeypatch.setenv("TRAFFIC_PUBLIC_URL", "https://stats.example")
    assert hooks("create", "--name", "n8n", "--url", "http://n8n.home/webhook").code == 0
    assert "itself" in refused(hooks("create", "--name", "x", "--url", "https://stats.example/"))


def test_a_test_waits_in_the_outbox_and_can_be_replayed(hooks, registry):
    registry.store_address("https://stats.example/base")  # as a server does that starts
    hook, _ = create(hooks)
    delivery = hooks("test", hook).out.strip()
    ((body,),) = registry.database.rows("SELECT body FROM deliveries")
    assert b'"https://stats.example/base/jobs/job_' in body
    assert re.search(rf"{delivery} +hook.test +pending +0 ", hooks("deliveries", hook).out)
    assert attempted(registry, Attempt(None, "timed_out", 15_000)) == "failed"
    assert re.search(rf"{delivery} +hook.test +pending +1 +timed_out +15000 ", hooks("deliveries", hook).out)
    run = hooks("replay", hook, delivery)
    assert run.code == 0
    assert attempted(registry, Attempt(204, None, 7)) == "delivered"
    assert re.search(rf"{delivery} +hook.test +delivered +1 +204 +7 ", hooks("deliveries", hook).out)
    assert re.search(rf"{hook} .* yes +20\d\d", hooks("list").out)


def test_a_rotation_prints_the_new_secret(hooks, registry):
    hook, secret = create(hooks)
    rotated = hooks("rotate", hook).out.strip()
    assert rotated != secret
    assert registry.hook("acme", hook).secret_last4 == rotated[-4:]


def test_a_disabled_hook_tells_why(hooks, registry):
    hook, _ = create(hooks)
    hooks("test", hook)
    attempted(registry, Attempt(410, None, 1))
    assert re.search(rf"{hook} .* no\. The receiver answered 410 Gone\.", hooks("list").out)


@pytest.mark.parametrize("command", [["test"], ["deliveries"], ["rotate"], ["replay", "evt_1"]])
def test_an_unknown_hook_is_named(hooks, command):
    unknown = "hook_0123456789abcdef0123"
    create(hooks)
    assert unknown in refused(hooks(command[0], unknown, *command[1:]))
    other = hooks("create", "--name", "x", "--url", "https://b.example/", organization="other")
    foreign = re.search(r"hook_[0-9a-f]{20}", other.err)[0]
    assert foreign in refused(hooks(command[0], foreign, *command[1:]))

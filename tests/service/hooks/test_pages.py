"""The pages Settings > Agent Hooks: a secret is shown only once. test_forms.py tests that only editors see and change
hooks."""

from datetime import timedelta

import pytest

from service.hooks.outbox import deactivate
from service.hooks.pages import EVENT_WORDS
from service.hooks.records import EVENTS, HookChanges
from service.hooks.registry import Hooks
from tests.conftest import NOW
from tests.support.control import open_store
from tests.support.page_reading import read

URL = "https://automation.example/hook?token=t0ken"


@pytest.fixture
def hooks(lake):
    with open_store(Hooks, lake, clock=lambda: NOW) as hooks:
        yield hooks


@pytest.fixture
def hook(hooks):
    return hooks.create("acme", "Chat", URL)[0]


def test_a_hook_secret_is_shown_only_once(acme, hooks):
    def made(path, **fields):
        response = acme.post(path, **fields)
        assert response.status_code == 200
        assert "content-encoding" not in response.headers
        secret = read(response.text).one("div", class_="secret").one("code").text
        (hook,) = hooks.of("acme")
        assert secret.startswith("whsec_")
        assert secret.endswith(hook.secret_last4)
        for shown in ("settings/agent-hooks", f"settings/agent-hooks/{hook.id}"):
            text = acme.get(shown).text
            assert secret not in text
            assert "Chat &lt;b&gt;" in text
        return hook

    fields = {"name": "Chat <b>", "url": URL, "job.approved": "on", "job.created": "on"}
    hook = made("settings/agent-hooks", **fields)
    assert (hook.name, hook.url, hook.events) == ("Chat <b>", URL, ("job.created", "job.approved"))
    assert hook.created_by.startswith("session ")
    assert made(f"settings/agent-hooks/{hook.id}/secret").previous_secret_until == NOW + timedelta(hours=24)


def test_an_invalid_hook_is_rejected_and_the_form_keeps_input(acme, hooks):
    for fields, problem in (
        ({"url": "http://automation.example/", "job.created": "on"}, "https://"),
        ({"url": "https://user:secret@automation.example/", "job.created": "on"}, "password"),
        ({"url": URL}, "choose at least one event"),
    ):
        response = acme.post("settings/agent-hooks", name="Chat", **fields)
        assert response.status_code == 400
        page = read(response.text)
        assert problem in page.one("p", class_="notice bad").text
        assert page.one("input", name="url")["value"] == fields["url"]
        ticked = [box.attributes.get("name", "") for box in page.all("input", type="checkbox", checked=True)]
        assert [name for name in ticked if name.startswith("job.")] == [name for name in fields if name != "url"]
    assert hooks.of("acme") == []


def test_a_test_is_sent_and_a_delivery_replayed(acme, hooks, hook):
    path = f"settings/agent-hooks/{hook.id}"
    assert acme.post(f"{path}/test").headers["location"] == f"/app/{path}"
    (delivery,) = hooks.deliveries("acme", hook.id)
    assert delivery.event == "hook.test"
    again = acme.post(f"{path}/test")
    assert (again.status_code, delivery.id in again.text) == (409, True)
    acme.read(path).row("hook.test")
    hooks.change("acme", hook.id, HookChanges(active=False))  # pending messages are then dead
    action = acme.read(path).row("not sent").one("form")["action"]
    assert acme.post(action).status_code == 303
    assert hooks.deliveries("acme", hook.id)[0].status == "pending"
    assert acme.post(f"{path}/deliveries/evt_00000000000000000000/replay").status_code == 404


def test_an_inactive_hook_has_a_plain_notice(acme, hooks, hook):
    hooks.change("acme", hook.id, HookChanges(active=False))
    page = acme.read(f"settings/agent-hooks/{hook.id}")
    assert page.all("p", class_="notice bad") == []
    assert page.one("p", class_="notice plain").text == "Inactive: messages are not sent. Make it active to resume."
    assert acme.read("settings/agent-hooks").one("span", class_="badge inactive").text.split() == ["○", "inactive"]


def test_an_undeliverable_message_is_shown_as_given_up(acme, hooks, hook):
    hooks.send_test("acme", hook.id)
    with hooks.database.transaction() as connection:
        connection.execute("UPDATE deliveries SET status = 'dead', attempts = 10")
    assert acme.read(f"settings/agent-hooks/{hook.id}").row("gave up")


def test_every_event_has_a_readable_label(acme):
    assert EVENT_WORDS.keys() == {*EVENTS}
    labels = [
        one.text.split()
        for one in acme.read("settings/agent-hooks").one("fieldset", class_="checks equal").all("label")
    ]
    assert labels[1] == ["A", "job", "was", "approved", "job.approved"]


def test_a_hook_is_deleted_only_after_confirmation(acme, hooks, hook):
    path = f"settings/agent-hooks/{hook.id}"
    response = acme.post(f"{path}/delete")
    assert response.status_code == 400
    assert "Nothing was deleted" in response.text
    assert hooks.of("acme") == [hook]
    assert acme.post(f"{path}/delete", confirmed="on").headers["location"] == "/app/settings/agent-hooks"
    assert hooks.of("acme") == []
    assert acme.get(path).status_code == 404


def test_a_disabled_hook_has_a_banner_and_can_be_reactivated(acme, hooks, hook):
    with hooks.database.transaction() as connection:
        deactivate(connection, hook.id, "the receiver answered 410", NOW)
    notices = [one.text for one in acme.read("settings/agent-hooks").all("p", class_="notice bad")]
    assert notices == ["Chat gets no messages: the receiver answered 410"]
    path = f"settings/agent-hooks/{hook.id}"
    assert "the receiver answered 410" in acme.read(path).one("p", class_="notice bad").text
    acme.post(f"{path}/active", active="on")
    assert hooks.hook("acme", hook.id).active
    assert acme.read("settings/agent-hooks").all("p", class_="notice bad") == []
    acme.post(f"{path}/active")
    assert not hooks.hook("acme", hook.id).active

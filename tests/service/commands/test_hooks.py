"""`traffic hooks` after attempts to deliver; what it prints before is in transcripts/hooks.txt."""

import re
from datetime import UTC, datetime

from service.hooks.attempts import claim, finish
from service.hooks.delivery import Attempt
from service.hooks.registry import Hooks
from tests.support.control import open_store


def test_a_test_is_pending_then_replayed_and_a_disabled_hook_says_why(traffic, lake):
    def hooks(*words):
        run = traffic("hooks", *words, "--org", "acme")
        assert run.code == 0, run
        return run

    with open_store(Hooks, lake) as registry:

        def attempted(attempt):
            with registry.database.transaction() as connection:
                return finish(connection, claim(connection, datetime.now(UTC)), attempt, datetime.now(UTC))

        registry.store_address("https://stats.example/base")  # as a server does that starts
        made = hooks("create", "--name", "agent", "--url", "https://hooks.example/traffic")
        hook, secret = re.search(r"hook_[0-9a-f]{20}", made.err)[0], made.out.strip()
        assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
        assert secret[6:] not in hooks("list").out
        delivery = hooks("test", hook).out.strip()
        ((body,),) = registry.database.rows("SELECT body FROM deliveries")
        assert b'"https://stats.example/base/jobs/job_' in body
        assert re.search(rf"{delivery} +hook.test +pending +0 ", hooks("deliveries", hook).out)
        assert attempted(Attempt(None, "timed_out", 15_000)) == "failed"
        assert re.search(rf"{delivery} +hook.test +pending +1 +timed_out +15000 ", hooks("deliveries", hook).out)
        hooks("replay", hook, delivery)
        assert attempted(Attempt(204, None, 7)) == "delivered"
        assert re.search(rf"{delivery} +hook.test +delivered +1 +204 +7 ", hooks("deliveries", hook).out)
        assert re.search(rf"{hook} .* yes +20\d\d", hooks("list").out)
        rotated = hooks("rotate", hook).out.strip()
        assert registry.hook("acme", hook).secret_last4 == rotated[-4:] != secret[-4:]
        hooks("test", hook)
        attempted(Attempt(410, None, 1))
        assert re.search(rf"{hook} .* no\. The receiver answered 410 Gone\.", hooks("list").out)

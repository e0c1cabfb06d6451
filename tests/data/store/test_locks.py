"""Locks between programs: who waits long says so, and who does not wait is told at once."""

import logging
import threading
import time

from data.store import locks


def wait_for(lock):
    """A thread that waits for a lock of a lake."""

    def take():
        with lock():
            pass

    thread = threading.Thread(target=take)
    thread.start()
    return thread


def may_rewrite(lake, organization):
    """Whether nobody else rewrites these files now."""
    with lake.rewrite_lock(False, organization) as has_lock:
        return has_lock


def test_a_lock_that_takes_long_is_waited_for_with_a_warning(lake, monkeypatch, caplog):
    monkeypatch.setattr(locks, "NOTICE_AFTER_SECONDS", 0.01)
    with lake.write_lock():
        waiting = wait_for(lake.write_lock)
        while not caplog.messages:
            time.sleep(0.005)
        assert waiting.is_alive()
    waiting.join()
    assert caplog.messages == [
        f"{lake.root} is locked by another program, such as an import, a merge or a rebuild; waiting until it is done."
    ]


def test_files_of_organizations_are_rewritten_side_by_side_but_not_beside_those_of_all(lake):
    with lake.rewrite_lock(organization="acme"):
        assert [may_rewrite(lake, name) for name in ("other", "acme", None)] == [True, False, False]
    with lake.rewrite_lock():
        assert [may_rewrite(lake, name) for name in ("other", "acme", None)] == [False] * 3


def test_who_waits_to_rewrite_files_of_all_organizations_is_not_overtaken(lake):
    with lake.rewrite_lock(organization="acme"):
        waiting = wait_for(lake.rewrite_lock)
        while may_rewrite(lake, "other"):
            time.sleep(0.005)
        assert waiting.is_alive()
    waiting.join()
    assert may_rewrite(lake, "other")


def test_a_lock_that_is_free_or_soon_free_is_taken_in_silence(lake, caplog):
    caplog.set_level(logging.DEBUG)
    with lake.rewrite_lock() as has_lock:
        assert has_lock
        waiting = wait_for(lake.rewrite_lock)
        with lake.rewrite_lock(wait=False) as has_it_too:
            assert not has_it_too
    waiting.join()
    assert caplog.messages == []

"""No client's address is written anywhere, whatever goes wrong.

test_disturbed_commands.py also looks for these addresses, and for an expired salt, after kills and failing calls.
"""

import pytest

from tests.faults.lakes import ADDRESSES, assert_no_address, batches, found_in, inflated, line, log
from tests.faults.servers import serving
from tests.faults.victims import INTO, nothing
from tests.support.lakes import opened
from tests.support.manifests import database_of
from tests.support.visits import land, visit

V4, V6 = (address.encode() for address in ADDRESSES)
SPOILT = (
    b'{"path": "/a", "ip": "%s.1"}' % V4,
    b'{"path": "/a", "ip": ["%s"]}' % V4,
    b'{"path": "/a", "adress": "%s"}' % V6,
    b'{"path": "/a", "ip": "%s", "time": "never"}' % V6,
    b'[{"path": "/a", "ip": "%s"' % V4,
    b"%s\xff\x00" % V4,
)
"""Bodies that report no valid visit, but contain an address."""


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_search_finds_an_address_in_a_database(address, lake):
    assert_no_address(lake.root)
    with database_of(lake.manifest).transaction() as db:
        db.execute("INSERT INTO epochs VALUES (?, 1)", [f"x{address}x"])
    with pytest.raises(AssertionError, match="manifest"):
        assert_no_address(lake.root)


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_search_finds_an_address_in_a_compressed_column(address, lake):
    paths = ["/#", "/z", *(f"/{address}/{number}" for number in range(300))]  # the footer names the first and last
    land(lake, "acme", [visit(path=path) for path in paths])
    (path,) = lake.root.glob("visits/organization=acme/*/*.parquet")
    assert not found_in(path.read_bytes(), [address.encode()])
    assert any(found_in(content, [address.encode()]) for content in inflated(path.read_bytes()))


def test_invalid_requests_and_logs_leave_no_address(program, tell, tmp_path):
    nothing(tmp_path)
    spoilt = f"{ADDRESSES[0]} is not a line\n{line('/a/x', address=ADDRESSES[1] + ':')}"
    (tmp_path / "a.log").write_text(log("a", 60) + spoilt)
    (tmp_path / "none.log").write_text("".join(f"{address}\n" for address in ADDRESSES))
    told, requests = [], 0
    with serving(program, tmp_path) as server:
        for number in range(8):  # fewer than 60 requests from each address, the limit per minute
            for body in SPOILT:
                answer = server.ask("POST", "/visits", body, source=ADDRESSES[number % 2])
                assert answer.status in (202, 400)
                told.append(answer.body.decode())
            assert server.report(f"batch{number}").status == 202
            paths = ("/nothing", "/analytics/devices?range=1", "/analytics/top-links?range=90d")
            told += [server.ask("GET", path, source=ADDRESSES[1]).body.decode() for path in paths]
            requests += len(SPOILT) + 4
        words = ("traffic", "import", "a.log", "none.log", *INTO)
        runs = [program.run(tmp_path, *words, *flags) for flags in ((), ("--dry-run",))]
        assert [run.code for run in runs] == [2, 2]
        server.child.kill()
        told += [run.told for run in (server.child.wait(), *runs)]
    assert_no_address(tmp_path, *told)
    with opened(tmp_path / "lake") as lake:
        assert batches(lake)["a"] >= 60
    tell(requests=requests, imports=len(runs), addresses=0)

"""`traffic sign-in` for a server that runs; what it prints otherwise is in transcripts/sign-in.txt."""

import shlex

import httpx2


def test_the_command_that_a_server_prints_makes_a_link_to_that_server(traffic, lake, serving):
    with serving(lake, base_path="/v1") as server:
        assert server.monitor is None  # which is only there with a port of its own
        line = server.process.stderr.readline()
        words = shlex.split(line.partition("Sign in to its dashboard: traffic ")[2].replace("ORGANIZATION", "acme"))
        link = traffic(*words, "--new").out.strip()
        assert link.startswith(f"{server.address}/app/enter?code=")
        assert "Sign in to acme" in httpx2.get(link, trust_env=False).text

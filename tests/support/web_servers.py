"""A real nginx, Apache, Caddy or HAProxy with a test's configuration."""

import os
import shutil
from contextlib import contextmanager

import pytest

from tests.support.programs import accepts, checked, free_port, running

SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/client;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {outside}
    server {{
        listen 127.0.0.1:{port};
        {inside}
    }}
}}
"""
CADDY = """
{{
    admin off
    auto_https off
    storage file_system {folder}/storage
}}
http://127.0.0.1:{port} {{
    {inside}
}}
"""
HAPROXY = """
global
    {outside}
defaults
    mode http
    timeout client 60s
    timeout connect 10s
    timeout server 10s
frontend web
    bind 127.0.0.1:{port}
    {inside}
"""


APACHE = """
ServerRoot {folder}
DefaultRuntimeDir {folder}
PidFile {folder}/pid
ErrorLog {folder}/error.log
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule alias_module /usr/lib/apache2/modules/mod_alias.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
User daemon
Group daemon
{outside}
<VirtualHost *>
{inside}
</VirtualHost>
"""


CONFIGURATIONS = {"nginx": NGINX, "apache2": APACHE, "caddy": CADDY, "haproxy": HAPROXY}


def installed(name):
    """Return the path of a program; skip the test if it is missing."""
    program = shutil.which(name, path=SBIN)
    if not program:
        package = {
            "nginx": "nginx-light",
            "apache2": "apache2-bin",
            "promtool": "prometheus",
            "rsyslogd": "rsyslog",
            "systemd-analyze": "systemd",
            "systemd-nspawn": "systemd-container",
            "docker": "docker.io",
            "dockerd": "docker.io",
            "ip": "iproute2",
        }.get(name, name)
        pytest.skip(f"{name} is missing: apt-get install {package} (Debian package {package})")
    return program


def commands(name, folder, configuration):
    """Return the commands that check a web server's configuration and run it."""
    program = installed(name)
    if name == "haproxy":
        run = [program, "-db", "-f", configuration]
        return [*run, "-c"], run
    if name == "nginx":
        run = [program, "-p", folder, "-e", folder / "error.log", "-c", configuration]
        return [*run, "-t"], run
    if name == "apache2":
        run = [program, "-X", "-f", configuration]
        return [*run, "-t"], run
    options = ["--config", configuration, "--adapter", "caddyfile"]
    return [program, "validate", *options], [program, "run", *options]


@contextmanager
def serving(name, folder, inside, outside="", **environment):
    """Run a web server with these lines inside and (except for Caddy) outside its server block; yield its port once it
    accepts connections.
    """
    port, configuration = free_port(), folder / "configuration"
    configuration.write_text(CONFIGURATIONS[name].format(folder=folder, port=port, inside=inside, outside=outside))
    check, run = commands(name, folder, configuration)
    home = {"PATH": SBIN, "HOME": str(folder), **environment}
    checked(*check, env=home)
    with running(run, lambda: accepts(port), folder / "log", env=home):
        yield port

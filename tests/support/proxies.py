"""The proxies of service/deploy: each starts with its own file, on free ports, in front of a server if there is one.

With TLS, HAProxy and nginx get the settings that the comments in their files recommend for the open internet; Caddy
gets a certificate.
"""

from contextlib import ExitStack, contextmanager

from tests.support.programs import DEPLOY, accepts, checked, free_port, moved, running
from tests.support.web_servers import commands, installed

LINKS, DASHBOARD = "go.example.com", "dashboard.example.com"


class Site:
    """Ports and files that replace those in the files of service/deploy."""

    def __init__(self, root, service=8000, authority=None):
        """`service` is the port of the server behind the proxy. With an `authority`, the dashboard is served over
        TLS."""
        self.root, self.links, self.dashboard, self.log = root, free_port(), free_port(), root / "links.log"
        self.service, self.certificate = service, authority and authority.certificate(DASHBOARD)
        self.address = f"{'https' if authority else 'http'}://{DASHBOARD}:{self.dashboard}"

    def configured(self, name, replaced, before="", after=""):
        """Write a file of service/deploy with other ports and paths, and with lines before and after it that its
        program needs; return the new file's path."""
        path = self.root / name
        path.write_text(before + moved((DEPLOY / name).read_text(), replaced) + after)
        return path

    def running(self, name, configuration):
        """Check a proxy's configuration; return a context manager that runs the proxy with it."""
        check, run = commands(name, self.root, configuration)
        checked(*check)
        return running(run, lambda: accepts(self.links), self.root / "output", cwd=self.root)


def nginx(site):
    """Run nginx, with one worker."""
    replaced = {"/var/log/nginx/links.log": site.log, "127.0.0.1:8000": f"127.0.0.1:{site.service}"}
    folders = "".join(
        f"{name}_temp_path {site.root}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    before = f"daemon off; master_process off; pid {site.root}/pid; events {{}} http {{ {folders} access_log off;"
    path = site.configured("nginx.conf", replaced, before, "}")
    text = path.read_text().replace("listen 80;", f"listen 127.0.0.1:{site.links};", 1)
    tls = f" ssl http2; ssl_certificate {site.certificate}; ssl_certificate_key {site.certificate}"
    end = tls if site.certificate else ""
    path.write_text(text.replace("listen 80;", f"listen 127.0.0.1:{site.dashboard}{end};"))
    return site.running("nginx", path)


@contextmanager
def haproxy(site):
    """Run HAProxy, with an rsyslogd that writes its log."""
    rsyslogd = installed("rsyslogd")
    checked(installed("haproxy"), "-c", "-f", DEPLOY / "haproxy.cfg")
    socket_path = site.root / "socket"
    replaced = {"/var/log/haproxy/links.log": site.log, "/var/lib/haproxy/dev/traffic": socket_path}
    owner = {'fileOwner="root" fileGroup="adm"': ""}  # only root may give files away
    debian = f'global(workDirectory="{site.root}")\nmodule(load="imuxsock" SysSock.Use="off")\n'
    rsyslog = site.configured("haproxy-rsyslog.conf", replaced | owner, debian)
    checked(rsyslogd, "-N1", "-f", rsyslog)
    tls = f" ssl crt {site.certificate} alpn h2,http/1.1" if site.certificate else ""
    ports = {":80": f"127.0.0.1:{site.links}", ":8080": f"127.0.0.1:{site.dashboard}{tls}"}
    ports |= {"/dev/traffic": socket_path, "127.0.0.1:8000": f"127.0.0.1:{site.service}"}
    configuration = site.configured("haproxy.cfg", ports)
    with ExitStack() as programs:
        receiver = [rsyslogd, "-n", "-f", rsyslog, "-i", site.root / "pid"]
        programs.enter_context(running(receiver, socket_path.exists, site.root / "rsyslog", cwd=site.root))
        yield programs.enter_context(site.running("haproxy", configuration))


def caddy(site):
    """Run Caddy, without redirects from port 80."""
    tls = f"\n\ttls {site.certificate} {site.certificate}" if site.certificate else ""
    replaced = {
        "/var/log/caddy/access": site.log,
        "admin off": f"admin off\n\tauto_https disable_redirects\n\tstorage file_system {site.root}/storage",
        "{$LINKS_HOST:go.localhost} {": f"http://{LINKS}:{site.links} {{",
        "{$DASHBOARD_HOST:dashboard.localhost} {": f"{site.address} {{{tls}",
        "traffic:8000": f"127.0.0.1:{site.service}",
    }
    return site.running("caddy", site.configured("Caddyfile", replaced))

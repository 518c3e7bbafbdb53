"""`whatif serve`: the explorer in a browser."""

from __future__ import annotations

import ipaddress
import re
import secrets
import shlex
import socket
import sys
from pathlib import Path
from typing import Final

import click

from whatif.cli.echo import echo
from whatif.cli.options import scenario_options
from whatif.cli.values import Whole
from whatif.errors import UsageError
from whatif.extras import install_command

_LOCAL: Final = "127.0.0.1"
_TEMPLATES: Final = Path(__file__).with_name("templates")
"""Folder of the page, which focuses the terminal and loads nothing from elsewhere."""
_EVERYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - to recognise, not to bind


@click.command("serve")
@scenario_options
@click.option("--port", type=Whole(0, 65535), default=8000, show_default=True, help="Port; 0: any free one.")
@click.option("--host", default=_LOCAL, show_default=True, help="Address to listen at.")
@click.option("--public-url", metavar="URL", help="Address for browsers, behind a tunnel or proxy: http://..")
def command(
    scenario: str,
    platform: str | None,
    platform_dirs: tuple[Path, ...],
    overrides: dict[str, str],
    port: int,
    host: str,
    public_url: str | None,
) -> None:
    """Show the explorer on SCENARIO in a browser, one for each page that is opened, until Ctrl+C.

    The address is a link with a secret token: whoever has it acts with your rights.
    """
    from whatif.cli.open import opened_source
    from whatif.tui.config import read_config

    # Errors in the files are reported here, not on an empty page.
    _ = opened_source(scenario, platform, platform_dirs, overrides)[0].program
    _ = read_config()
    explorer = _explorer(scenario, platform, platform_dirs, overrides)
    with _listener(host, port) as listener:
        url = _url(public_url, host, listener.getsockname()[1])
        if not _is_local(host) and not url.startswith("https:"):
            echo("warning: the link crosses the network unencrypted; an SSH tunnel avoids that", err=True)
        _serve(explorer, scenario, url, listener)


def _explorer(scenario: str, platform: str | None, platform_dirs: tuple[Path, ...], overrides: dict[str, str]) -> str:
    """Command line that opens the explorer with the same arguments, quoted for a shell."""
    words = [sys.executable, "-m", "whatif", "open"]
    words += [] if platform is None else [f"--platform={platform}"]
    words += [f"--platform-dir={folder}" for folder in platform_dirs]
    words += [f"--set={path}={value}" for path, value in overrides.items()]
    return shlex.join([*words, "--", scenario])


def _listener(host: str, port: int) -> socket.socket:
    """A listening socket; refuse a port that is taken, and an address that is not here."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise UsageError(f"cannot listen at {host}, port {port}: {reason}; try another --port or --host") from None


def _is_local(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _url(public_url: str | None, host: str, port: int) -> str:
    """Address of the server for browsers; the host name if it listens on all interfaces."""
    if public_url is None:
        name = socket.gethostname() if host in _EVERYWHERE else host
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
    if not re.fullmatch(r"https?://([\w.-]+|\[[0-9a-fA-F:]+\])(:\d+)?(/\S*)?", public_url):
        raise UsageError(f"--public-url {public_url}: expected http://NAME or https://NAME, with port and path if any")
    return public_url.rstrip("/")


def _serve(explorer: str, title: str, url: str, listener: socket.socket) -> None:
    """Answer browsers that know the token until Ctrl+C: an explorer for each page, ended with it.

    All addresses begin with the token, so that neither other users of the machine nor pages of other sites in the same
    browser reach an explorer.
    """
    try:
        from aiohttp import web
        from textual_serve import app_service, server
    except ModuleNotFoundError:
        raise UsageError(f"`whatif serve` needs textual-serve: {install_command('serve')}") from None

    host, port = listener.getsockname()[:2]
    token = secrets.token_urlsafe(24)

    class Explorer(app_service.AppService):
        async def run(self) -> None:
            await super().run()
            # The event loop has to close the pipes of the process, and must not end before it.
            self.stdin.close()
            if self._process is not None:
                await self._process.wait()

    class Explorers(server.Server):
        async def on_startup(self, app: web.Application) -> None:
            echo(f"{url}/{token}/", err=True)
            echo(f"anyone with this link can use the explorer ({host}, port {port}); Ctrl+C ends it", err=True)

        async def _make_app(self) -> web.Application:
            app = web.Application()
            app.router.add_get(f"/{token}", _complete)
            app.add_subapp(f"/{token}", await super()._make_app())
            app.router.add_get("/{path:.*}", _refuse)
            return app

        def run(self) -> None:
            # A page that stays open would otherwise hold up the end for a minute.
            web.run_app(self._make_app(), sock=listener, print=None, access_log=None, shutdown_timeout=1.0)

    async def _complete(_: web.Request) -> web.Response:
        """A link that lost its last slash."""
        raise web.HTTPFound(f"{token}/")

    async def _refuse(_: web.Request) -> web.Response:
        raise web.HTTPForbidden(text="Open the link that `whatif serve` printed.\n")

    server.AppService = Explorer  # type: ignore[attr-defined] # the package has no option for it
    Explorers(explorer, title=f"whatif {title}", public_url=url, templates_path=_TEMPLATES).run()

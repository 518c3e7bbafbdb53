"""The explorer in a browser: a real one, driven over its DevTools, and what the server refuses."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib.util
import itertools
import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest

from whatif.cli import open as opening
from whatif.cli import serve
from whatif.extras import install_command
from whatif.tui.labels import duration

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SWITCHES = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--window-size=1200,800", "--remote-debugging-port=0",
    # The page asks for nothing from elsewhere: no name but that of this machine is to be found.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip
PATIENCE = 60
EVERYWHERE = "0.0.0.0"  # noqa: S104 - seen from this machine only

served = pytest.mark.skipif(importlib.util.find_spec("textual_serve") is None, reason="textual-serve is not installed")
browsed = pytest.mark.skipif(CHROMIUM is None, reason="no chromium to look through")

# How many colours a picture has, and how much of it the most frequent one covers.
COLOURS = """(async () => {
    const picture = await createImageBitmap(await (await fetch("data:image/png;base64,%s")).blob());
    const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
    canvas.drawImage(picture, 0, 0);
    const counts = new Map();
    for (const pixel of new Uint32Array(canvas.getImageData(0, 0, picture.width, picture.height).data.buffer))
        counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
    return [counts.size, Math.max(...counts.values()) / picture.width / picture.height];
})()"""


@contextlib.contextmanager
def serving(*options):
    """Run `whatif serve jacobi2d`: what it printed, its port and the path with the token; Ctrl+C must end it."""
    words = [sys.executable, "-m", "whatif", "serve", "jacobi2d", "--port", "0", *options]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        told = ""
        try:
            while "Ctrl+C" not in told:
                line = process.stderr.readline()
                assert line, told
                told += line
            path = urlsplit(re.search(r"^http\S+", told, re.MULTILINE)[0]).path
            yield told, int(re.search(r"port (\d+)\)", told)[1]), path
        finally:
            process.send_signal(signal.SIGINT)
            try:
                out, err = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
    assert (process.returncode, "Traceback" in err + out) in ((0, False), (130, False)), err + out


@contextlib.contextmanager
def chromium(folder):
    """A headless browser: the port of its DevTools."""
    with subprocess.Popen(
        [CHROMIUM, *SWITCHES, f"--user-data-dir={folder}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            end = time.monotonic() + PATIENCE
            while not (folder / "DevToolsActivePort").is_file():
                assert process.poll() is None, "chromium ended"
                assert time.monotonic() < end, "chromium does not start"
                time.sleep(0.1)
            yield int((folder / "DevToolsActivePort").read_text().split()[0])
        finally:
            process.terminate()


class Page:
    """A page of the browser, what it told, and what its terminal received."""

    def __init__(self, connection):
        self.connection = connection
        self.numbers = itertools.count()
        self.received = b""
        self.events = []

    async def call(self, method, **parameters):
        number = next(self.numbers)
        await self.connection.send_json({"id": number, "method": method, "params": parameters})
        while (message := await self.connection.receive_json()).get("id") != number:
            self.events += [message] if "method" in message else []
            if message.get("method") == "Network.webSocketFrameReceived":
                frame = message["params"]["response"]
                self.received += base64.b64decode(frame["payloadData"]) if frame["opcode"] == 2 else b""
        assert "error" not in message, message
        return message["result"]

    async def evaluate(self, expression):
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until_received(self, text):
        end = time.monotonic() + PATIENCE
        while text.encode() not in self.received:
            assert time.monotonic() < end, self.received[-2000:]
            await asyncio.sleep(0.1)
            await self.evaluate("0")

    async def press(self, key, code, text=""):
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **typed)

    async def picture(self):
        """The picture once it no longer changes."""
        end = time.monotonic() + PATIENCE
        last, now = None, (await self.call("Page.captureScreenshot", format="png"))["data"]
        while now != last:
            assert time.monotonic() < end, "the picture never comes to rest"
            await asyncio.sleep(0.5)
            last, now = now, (await self.call("Page.captureScreenshot", format="png"))["data"]
        return now


@contextlib.asynccontextmanager
async def opened(devtools, url):
    """A page at an address."""
    from aiohttp import ClientSession

    async with ClientSession() as session:
        async with session.put(f"http://127.0.0.1:{devtools}/json/new?about:blank") as answer:
            address = (await answer.json())["webSocketDebuggerUrl"]
        async with session.ws_connect(address, max_msg_size=0) as connection:
            page = Page(connection)
            for domain in ("Page", "Network", "Runtime"):
                await page.call(f"{domain}.enable")
            await page.call("Page.navigate", url=url)
            yield page


@served
@browsed
def test_a_browser_shows_the_explorer_and_an_edit_in_it_gives_the_number_of_the_command_line(tmp_path, whatif_main):
    def told(gpu_count):
        code, out, _ = whatif_main(
            "run", "jacobi2d", "--point", "--format", "json", "--set", f"platform.node.gpu_count={gpu_count}"
        )
        assert code == 0
        return duration(json.loads(out)["rows"][0]["iteration_time"])

    six, seven = told(6), told(7)
    assert six != seven

    async def looked_at(devtools, url):
        async with asyncio.timeout(3 * PATIENCE), opened(devtools, url) as page:
            await page.until_received(six)
            first = await page.picture()
            assert seven.encode() not in page.received
            # One GPU more is the first thing the right arrow does, without a click before.
            await page.press("ArrowRight", 39)
            await page.until_received(seven)
            second = await page.picture()
            await page.press("ArrowDown", 40)
            third = await page.picture()
            looks = [await page.evaluate(COLOURS % picture) for picture in (first, second, third)]
            return (first, second, third), looks

    with chromium(tmp_path / "profile") as devtools, serving() as (_, port, path):
        pictures, looks = asyncio.run(looked_at(devtools, f"http://127.0.0.1:{port}{path}"))
        for number, picture in enumerate(pictures):
            (tmp_path / f"{number}.png").write_bytes(base64.b64decode(picture))
    assert len(set(pictures)) == 3, "a key changed nothing"
    assert all(count > 20 for count, _ in looks), looks
    assert all(share < 0.98 for _, share in looks), looks


def reachable(address, port):
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=5):
        return True
    return False


@served
@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is this machine on Linux only")
def test_it_listens_at_the_loopback_address_alone_unless_told_otherwise():
    with serving() as (told, port, _):
        assert "warning" not in told
        assert (reachable("127.0.0.1", port), reachable("127.0.0.2", port)) == (True, False)
    with serving("--host", EVERYWHERE) as (told, port, _):
        assert told.startswith("warning: the link crosses the network unencrypted")
        assert (reachable("127.0.0.1", port), reachable("127.0.0.2", port)) == (True, True)


@served
def test_an_explorer_opens_with_the_token_only():
    async def answer(port, path):
        from aiohttp import ClientSession, WSServerHandshakeError

        # Pings go on and on, so that waiting for a message alone would never end.
        async with asyncio.timeout(PATIENCE), ClientSession() as session:
            try:
                async with session.ws_connect(f"http://127.0.0.1:{port}{path}ws") as connection:
                    return (await connection.receive()).type.name
            except WSServerHandshakeError as error:
                return error.status

    async def status(port, path):
        from aiohttp import ClientSession

        async with ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
            return response.status, await response.text()

    with serving() as (_, port, path), serving() as (_, _, other):
        assert len(path) > 30
        assert path != other
        for wrong in ("/", other, path.upper(), path[:-2] + "/"):
            assert asyncio.run(answer(port, wrong)) == 403
            assert asyncio.run(status(port, wrong)) == (403, "Open the link that `whatif serve` printed.\n")
        assert asyncio.run(status(port, "/static/js/textual.js"))[0] == 403
        assert asyncio.run(status(port, path.removesuffix("/")))[0] == 200
        assert asyncio.run(status(port, f"{path}static/js/textual.js"))[0] == 200
        assert asyncio.run(answer(port, path)) == "BINARY"


@served
def test_a_page_names_the_public_address():
    from urllib.request import urlopen

    with (
        serving("--public-url", "https://hub.example/whatif/") as (told, _, hub),
        serving() as (_, port, path),
    ):
        assert hub.startswith("/whatif/")
        assert told.startswith(f"https://hub.example{hub}\nanyone with this link ")
        with urlopen(f"http://127.0.0.1:{port}{path}") as page:
            text = page.read().decode()
        assert f"ws://127.0.0.1:{port}{path}ws" in text
        assert {urlsplit(address).hostname for address in re.findall(r"\w+://[^\"']+", text)} == {"127.0.0.1"}


@served
def test_a_port_in_use_is_told_in_a_sentence(whatif_main):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = whatif_main("serve", "jacobi2d", "--port", port)
    assert (code, out) == (2, "")
    assert err == (
        f"whatif: cannot listen at 127.0.0.1, port {port}: Address already in use; try another --port or --host\n"
    )


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("nosuch",), 3, "nosuch: no such file"),
        (("jacobi2d", "--platform", "sumit"), 3, "did you mean `summit`"),
        (("jacobi2d", "--set", "platform.node.gpu_count=x"), 3, "platform.node.gpu_count"),
        (("jacobi2d", "--port", "70000"), 2, "70000"),
        (("successor", "--platform", "summit"), 2, "no effect on a study"),
        (("successor", "--set", "limits.power=x"), 3, "limits.power"),
        (("jacobi2d", "--host", "192.0.2.1"), 2, "cannot listen at 192.0.2.1, port 8000: "),
        (("jacobi2d", "--port", "0", "--public-url", "hub.example"), 2, "--public-url hub.example: expected http"),
        (("jacobi2d", "--port", "0", "--public-url", "ftp://hub"), 2, "--public-url ftp://hub: expected http"),
        (("jacobi2d", "--port", "0", "--public-url", "http://[::1"), 2, "--public-url http://[::1: expected http"),
    ],
)
def test_what_is_wrong_is_said_before_the_server_starts(whatif_main, options, code, words):
    found, out, err = whatif_main("serve", *options)
    assert (found, out) == (code, "")
    assert words in err
    assert "Ctrl+C" not in err


def test_preferences_that_cannot_be_are_said_before_the_server_starts(whatif_main, monkeypatch, tmp_path):
    (tmp_path / "mine.toml").write_text('theme = "whatif-drak"')
    monkeypatch.setenv("WHATIF_CONFIG", str(tmp_path / "mine.toml"))
    code, _, err = whatif_main("serve", "jacobi2d", "--port", "0")
    assert code == 3
    assert "mine.toml:1:1: theme: `whatif-drak`: no such theme; did you mean `whatif-dark`" in err


def test_without_textual_serve_the_extra_is_named(whatif_main, monkeypatch):
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    code, _, err = whatif_main("serve", "jacobi2d", "--port", "0")
    assert code == 2
    assert err == f"whatif: `whatif serve` needs textual-serve: {install_command('serve')}\n"


def test_the_shell_takes_the_command_of_the_explorer_apart_as_it_was_given(tmp_path):
    folder = tmp_path / "it's; a $(touch here) `folder`"
    sets = {"platform.node.gpu_count": "8", "application.name": "a 'b' \"c\" $HOME \\ ; & | > x"}
    text = serve._explorer("-odd name.toml", "summit", (folder,), sets)
    script = f"for word in {text}; do printf '%s\\0' \"$word\"; done"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    words = done.stdout.split("\0")[:-1]
    assert words[:4] == [sys.executable, "-m", "whatif", "open"]
    folder.mkdir()
    context = opening.command.make_context("open", words[4:])
    given = {"scenario": "-odd name.toml", "platform": "summit", "platform_dirs": (folder,), "overrides": sets}
    assert {name: context.params[name] for name in given} == given
    assert shlex.split(text) == words
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True), (EVERYWHERE, False),
         ("::", False), ("", False), ("192.168.1.7", False), ("login1", False),
    ],
)  # fmt: skip
def test_only_addresses_of_this_machine_go_without_a_warning(host, local):
    assert serve._is_local(host) is local


def test_addresses_are_written_as_browsers_read_them():
    assert serve._url(None, "127.0.0.1", 8000) == "http://127.0.0.1:8000"
    assert serve._url(None, "::1", 8000) == "http://[::1]:8000"
    assert serve._url(None, EVERYWHERE, 80) == f"http://{socket.gethostname()}:80"
    assert serve._url("https://hub.example/a/", "127.0.0.1", 8000) == "https://hub.example/a"
    assert serve._url("http://[::1]:9000", "127.0.0.1", 8000) == "http://[::1]:9000"

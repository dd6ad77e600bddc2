"""Debian's chromium as a Python object, driven by the DevTools protocol over two pipes: no port and no other program.

The page is one that a person would use: keys and clicks are those of the browser's input, not calls of the script.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

AXE = Path(__file__).parent / "data" / "axe-core" / "axe.min.js"
PATIENCE_S = 20.0
#: The codes of keys that are no letters.
KEYS = {
    "Enter": 13,
    "Escape": 27,
    "Tab": 9,
    "ArrowDown": 40,
    "ArrowUp": 38,
    "Home": 36,
    "End": 35,
}
_OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-sandbox",  # in a container, and as root; it only ever shows our own page
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)


class BrowserFailed(AssertionError):
    """The browser refused a command, or what was waited for did not happen."""


class Chromium:
    """A running chromium, while its context lasts."""

    def __init__(self) -> None:
        program = shutil.which("chromium")
        if program is None:
            raise BrowserFailed("there is no chromium: `make test-tools` installs Debian's")
        self._home = tempfile.TemporaryDirectory(prefix="chromium-")
        reads, self._to = os.pipe()
        self._from, writes = os.pipe()
        # It has its commands from descriptor 3, and writes to 4.
        shell = f'exec "$@" 3<&{reads} 4>&{writes}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "-", program, *_OPTIONS, f"--user-data-dir={self._home.name}", "about:blank"],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._buffer, self._sent = b"", 0
        self._pages: dict[str, BrowserPage] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.command("Browser.close")
            self._process.wait(10)
        except (BrowserFailed, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._home.cleanup()

    @contextmanager
    def page(
        self, width: int = 1400, height: int = 900, *, dark: bool = False, headers: Mapping[str, str] | None = None
    ) -> "Iterator[BrowserPage]":
        """A page of that size with nothing in common with others; `headers` are what a reverse proxy would add."""
        context = self.command("Target.createBrowserContext")["browserContextId"]
        target = self.command("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = BrowserPage(self, session)
        for domain in ("Page", "Runtime", "Log", "Network", "Performance"):
            page.command(f"{domain}.enable")
        page.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        page.prefer(dark=dark)
        page.command("Network.setExtraHTTPHeaders", headers=dict(headers or {}))
        try:
            yield page
        finally:
            del self._pages[session]
            self.command("Target.disposeBrowserContext", browserContextId=context)

    def command(self, method: str, session: str | None = None, **params: Any) -> Any:
        """Send a command and wait for its answer; what happens meanwhile is noted in the pages."""
        self._sent += 1
        number = self._sent
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline_s = time.monotonic() + PATIENCE_S
        while (told := self._next(deadline_s - time.monotonic())) is not None:
            if told.get("id") == number:
                if "error" in told:
                    raise BrowserFailed(f"{method}: {told['error']['message']}")
                return told["result"]
            self._note(told)
        raise BrowserFailed(f"{method}: no answer within {PATIENCE_S:g} s")

    def wait(self, seconds: float) -> None:
        """Note what happens for so long."""
        deadline_s = time.monotonic() + seconds
        while (told := self._next(deadline_s - time.monotonic())) is not None:
            self._note(told)

    def _next(self, within_s: float) -> dict[str, Any] | None:
        deadline_s = time.monotonic() + within_s
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline_s - time.monotonic()))
            if not ready:
                return None
            part = os.read(self._from, 1 << 20)
            if not part:
                raise BrowserFailed("chromium has ended")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        return told

    def _note(self, told: dict[str, Any]) -> None:
        page = self._pages.get(told.get("sessionId", ""))
        if page is not None:
            page.note(told["method"], told["params"])


class BrowserPage:
    """One page in the browser."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser, self._session = browser, session
        #: What the browser complained about: errors of scripts, of the security policy, answers that failed.
        self.complaints: list[str] = []

    def command(self, method: str, **params: Any) -> Any:
        """A command of the DevTools protocol to this page."""
        return self._browser.command(method, self._session, **params)

    def note(self, method: str, params: Any) -> None:
        """Note an event."""
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(each.get("value")) for each in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def goto(self, url: str) -> None:
        """Load a page and wait until it is loaded."""
        problem = self.command("Page.navigate", url=url).get("errorText")
        if problem:
            raise BrowserFailed(f"{url}: {problem}")
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; of a promise what it gives."""
        done = self.command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise BrowserFailed(f"{expression[:200]}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def wait_for(self, expression: str, within_s: float = PATIENCE_S) -> None:
        """Wait until the expression is true, or what it finds is there."""
        deadline_s = time.monotonic() + within_s
        while not self.evaluate(f"Boolean({expression})"):
            if time.monotonic() > deadline_s:
                raise BrowserFailed(f"not within {within_s:g} s: {expression}; shown: {self.text('body')[-700:]}")
            self._browser.wait(0.02)

    def text(self, selector: str) -> str:
        """What a person reads there."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def press(self, key: str, times: int = 1, *, shift: bool = False) -> None:
        """Press a key, such as Tab or Enter or a letter."""
        about: dict[str, Any] = {"key": key, "modifiers": 8 if shift else 0}
        if key in KEYS:
            about |= {"code": key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        for _ in range(times):
            self.command("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **about)
            self.command("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        for key in text:
            self.press(key)

    def click(self, selector: str) -> None:
        """Click into the middle of what the selector finds, once it is in view."""
        place = self.evaluate(
            f"(() => {{const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            " e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]})()"
        )
        if place is None:
            raise BrowserFailed(f"nothing to click: {selector}")
        for kind in ("mousePressed", "mouseReleased"):
            self.command(
                "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", buttons=1, clickCount=1
            )

    def prefer(self, *, dark: bool) -> None:
        """Prefer dark or light pages, and none that move."""
        features = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        self.command(
            "Emulation.setEmulatedMedia", features=[{"name": name, "value": of} for name, of in features.items()]
        )

    def screenshot(self, path: Path) -> None:
        """What is in view, as a PNG."""
        shown = self.command("Page.captureScreenshot", format="png", optimizeForSpeed=False)
        path.write_bytes(base64.b64decode(shown["data"]))

    def accessibility_findings(self) -> list[str]:
        """What axe-core finds that is serious or critical."""
        self.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
        found = self.evaluate(
            "axe.run().then((r) => r.violations.map((v) => [v.impact, v.id, v.nodes.map((n) => n.html)]))"
        )
        return [f"{impact}: {name}: {html}" for impact, name, html in found if impact in ("serious", "critical")]

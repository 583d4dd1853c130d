"""A page opened in headless Chromium, driven over its DevTools pipe; needs no further package."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE = 600.0  # seconds: an end to what hangs


def find_browser():
    """Path of a Chromium, or None."""
    named = os.environ.get("STEADYTREE_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One tab of one browser; messages from the page are kept in `events`."""

    def __init__(self, path, profile):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def place_pipes():
            # the browser reads from file 3 and writes to file 4; copies keep them from colliding
            source, target = os.dup(to_read), os.dup(to_write)
            os.dup2(source, 3)
            os.dup2(target, 4)

        command = [path, *FLAGS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=place_pipes,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number, self.events, self._session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        with contextlib.suppress(OSError):
            os.close(self._write)
            os.close(self._read)
        self._process.terminate()
        self._process.wait(PATIENCE)

    def call(self, method, **parameters):
        """Ask the browser for something and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda found: found.get("id") == self._number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, address, width, dark=False):
        """Load a page at a width; returns when all of it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=address)
        if not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._until(lambda found: found.get("method") == "Page.loadEventFired")

    def run(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def picture(self, width):
        """The whole page as PNG."""
        height = self.run("Math.ceil(document.documentElement.scrollHeight)")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def pdf(self):
        """The page as it is printed."""
        printed = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)
        return base64.b64decode(printed["data"])

    def complaints(self):
        """Errors and messages in the console."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event for event in self.events if event["method"] in kinds]

    def requests(self):
        """Addresses the page asked for; what stands in the page itself is not among them."""
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        asked = [event["params"]["request"]["url"] for event in sent]
        return [address for address in asked if not address.startswith("data:")]

    def _until(self, wanted):
        end = time.monotonic() + PATIENCE
        while True:
            message, found, rest = self._buffer.partition(b"\0")
            if found:
                self._buffer = rest
                content = json.loads(message)
                if "method" in content:
                    self.events.append(content)
                if wanted(content):
                    return content
                continue
            if not select.select([self._read], [], [], max(end - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer.")
            received = os.read(self._read, 1 << 20)
            if not received:
                raise RuntimeError("the browser has ended.")
            self._buffer += received

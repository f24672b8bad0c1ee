"""A headless Chromium: what the tests of the site drive it by."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import time

import numpy as np
import pytest

#: No network is asked for anything; WebGL is drawn by the processor.
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
#: What Chromium says of its own drawing without a graphics card.
OWN = ("GPU stall due to ReadPixels", "GL Driver Message")


class Browser:
    """A window of a given width."""

    def __init__(
        self, width: int = 1280, height: int = 900, dark: bool = False, still: bool = False
    ) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        self._profile = tempfile.TemporaryDirectory()
        for flag in (*FLAGS, f"--user-data-dir={self._profile.name}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = Service(shutil.which("chromedriver"))
        self.driver = webdriver.Chrome(options=options, service=driver)
        self.resize(width, height)
        self.prefer(dark, still)

    def prefer(self, dark: bool = False, still: bool = False) -> None:
        """What the reader prefers: dark pages, and pages without motion."""
        motion = "reduce" if still else "no-preference"
        features = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": motion,
        }
        listed = [{"name": name, "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": listed})

    def resize(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, path, fragment: str = "") -> None:
        self.driver.get(path.as_uri() + fragment)

    def run(self, script: str):
        """The value of some JavaScript."""
        return self.driver.execute_script(script)

    def wait(self, script: str, seconds: float = 20.0):
        """The value of some JavaScript as soon as it is true."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            if time.monotonic() > end:
                raise AssertionError(f"after {seconds:g} s not true in the page: {script}")
            time.sleep(0.05)
        return value

    def errors(self) -> list[str]:
        """What the console says since it was asked last, of errors."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] == "SEVERE" and not any(words in entry["message"] for words in OWN)
        ]

    def requests(self) -> list[str]:
        """The addresses on a network that were asked for since the last call."""
        entries = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        asked = [
            entry["params"]["request"]["url"]
            for entry in entries
            if entry["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in asked if url.startswith(("http:", "https:", "ws:", "wss:"))]

    def pixels(self) -> np.ndarray:
        """What is seen, (height, width, 3)."""
        from PIL import Image

        with Image.open(io.BytesIO(self.driver.get_screenshot_as_png())) as picture:
            return np.array(picture.convert("RGB")).astype(int)

    def close(self) -> None:
        self.driver.quit()
        self._profile.cleanup()


def need_browser() -> None:
    """Skip where there is no Chromium to drive."""
    pytest.importorskip("selenium", reason="no selenium: pip install -e '.[tests]'")
    for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: apt-get install {package} (Debian's package)")

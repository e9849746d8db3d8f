"""A real Chromium without a window, for tests of the page.

It and its driver are found by their names, or by UNFOG_CHROMIUM and UNFOG_CHROMEDRIVER.
Without it these tests are skipped and say so; where UNFOG_SERVICES=required that is a failure.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 20  # seconds
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en-GB")
SCRIPTS = Path(__file__).parent / "scripts"


def program(variable: str, *names: str) -> str | None:
    """Where a program is."""
    told = os.environ.get(variable)
    return told or next((path for path in map(shutil.which, names) if path), None)


def missing(what: str) -> None:
    """Skip, or fail where services are required."""
    said = f"no {what}: run make services"
    if os.environ.get("UNFOG_SERVICES") == "required":
        pytest.fail(said)
    pytest.skip(said)


class Page:
    """The page in a browser, and what can be asked of it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        """An address, from scratch: a hash by itself would load nothing."""
        self.driver.get("about:blank")
        self.driver.get(address)

    def run(self, script: str, *given: Any) -> Any:
        return self.driver.execute_script(script, *given)

    def script(self, name: str) -> Any:
        """One of those in files beside this."""
        return self.run((SCRIPTS / f"{name}.js").read_text("utf-8"))

    def wait(self, script: str, *given: Any) -> Any:
        """Until a script gives something true."""
        return self.until(lambda: self.run(script, *given), script)

    def until(self, found: Callable[[], Any], what: str = "what was waited for") -> Any:
        """Until something is found."""
        return WebDriverWait(self.driver, PATIENCE, 0.05).until(lambda _: found(), f"never: {what}")

    def shown(self) -> None:
        """Until the view is there."""
        self.wait("return document.querySelector('.status.lives')")
        self.wait("return document.querySelector('.panel .look:not(:empty), .problems')")

    def unfold(self) -> None:
        """All numbers."""
        self.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    def numbers(self) -> list[dict[str, Any]]:
        """Every number on the page, with where it is from."""
        found: list[dict[str, Any]] = self.script("numbers")
        return found

    def words(self) -> list[str]:
        """Every text that is no number of an answer."""
        found: list[str] = self.script("words")
        return found

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> str:
        """What has the focus: its tag, identity and text."""
        found: str = self.run(
            "const one = document.activeElement; return `${one.localName}#${one.id} ${one.textContent}`"
        )
        return found

    def tell(self, command: str, given: Mapping[str, Any]) -> None:
        """A command of Chromium's own protocol."""
        self.driver.execute_cdp_cmd(command, dict(given))

    def wide(self, width: int, height: int = 900) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.tell("Emulation.setDeviceMetricsOverride", size)

    def scheme(self, name: str) -> None:
        """A light ground, or a dark one."""
        self.tell(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]}
        )

    def _logged(self, kind: str) -> list[dict[str, Any]]:
        driver: Any = self.driver
        found: list[dict[str, Any]] = driver.get_log(kind)
        return found

    def errors(self) -> list[str]:
        """What the console complained of since it was last asked."""
        return [one["message"] for one in self._logged("browser") if one["level"] == "SEVERE"]

    def requests(self) -> list[str]:
        """Every address that was asked for since that was last asked."""
        told = [json.loads(one["message"])["message"] for one in self._logged("performance")]
        return [
            one["params"]["request"]["url"] for one in told if one["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture(scope="session")
def browser() -> Iterator[Page]:
    """One for all tests."""
    chromium = program("UNFOG_CHROMIUM", "chromium", "chromium-browser", "google-chrome")
    driver = program("UNFOG_CHROMEDRIVER", "chromedriver")
    if chromium is None or driver is None:
        missing("Chromium with its driver")
    assert chromium is not None
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options, Service(driver))
    yield Page(found)
    found.quit()


@pytest.fixture
def page(browser: Page) -> Page:
    """As a new tab has it: wide, light, nothing kept, nothing complained of."""
    browser.wide(1280)
    browser.scheme("light")
    browser.errors()
    browser.requests()
    return browser

"""The docs page works where there is no other host: a real browser, every request elsewhere refused and noted."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from app.routes import ALL

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        if os.environ.get("CI") == "true":
            pytest.fail("chromium is missing: apt-get install chromium")
        pytest.skip("chromium is missing")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, server_url: str) -> Iterator[tuple[Page, list[str]]]:
    """The page, shown, and the addresses it asked for elsewhere."""
    foreign: list[str] = []

    def only_ours(route: Route) -> None:
        if route.request.url.startswith((server_url, "data:")):
            route.continue_()
        else:
            foreign.append(route.request.url)
            route.abort()

    page = browser.new_page(viewport={"width": 1280, "height": 1600})
    page.route("**/*", only_ours)
    page.goto(f"{server_url}/docs")
    yield page, foreign
    page.close()


def test_it_lists_every_operation_and_asks_no_other_host(page: tuple[Page, list[str]]) -> None:
    shown, foreign = page
    shown.wait_for_selector(".opblock")
    assert shown.locator(".opblock").count() == sum(len(routes.operations) for routes in ALL)
    assert shown.locator("text=Claim a batch").count() >= 1
    if folder := os.environ.get("TEST_SCREENSHOTS"):
        shown.screenshot(path=f"{folder}/docs.png")
    assert foreign == []


def test_a_call_can_be_tried_from_it(page: tuple[Page, list[str]]) -> None:
    shown, _ = page
    shown.locator("#operations-server-server").click()
    shown.locator("button:has-text('Try it out')").click()
    shown.locator("button:has-text('Execute')").click()
    shown.wait_for_selector(".live-responses-table .response-col_status")
    assert "200" in shown.locator(".live-responses-table .response .response-col_status").inner_text()
    assert '"name": "batchmeta"' in shown.locator(".live-responses-table").inner_text()

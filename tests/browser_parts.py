"""Debian's chromium for tests of pages: opened where it is, and watched while a page is used."""

import shutil
from contextlib import contextmanager

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
expect = sync_api.expect
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="needs a chromium: apt-get install chromium"
)
PATIENCE = 60_000  # milliseconds; a busy machine is no failure


@contextmanager
def chromium():
    with sync_api.sync_playwright() as tool:
        made = tool.chromium.launch(executable_path=CHROMIUM)
        yield made
        made.close()


@contextmanager
def page_of(browser, **how):
    """Give a page that notes what it complains of and whom it asks."""
    context = browser.new_context(**how)
    context.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    page = context.new_page()
    page.complaints, page.asked = [], []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on(
        "console",
        lambda said: page.complaints.append(said.text) if said.type == "error" else None,
    )
    page.on("request", lambda request: page.asked.append(request.url))
    yield page
    context.close()

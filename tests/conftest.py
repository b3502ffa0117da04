"""Settings for every test."""

from hypothesis import settings

# The first example of a test may pay for importing torch; slowness is not what we test for.
settings.register_profile("crossgaze", deadline=None)
settings.load_profile("crossgaze")

# Files that take longest are begun first, so that in the end no process waits for one of them.
LONG = (
    *("web/test_browser.py", "cli/test_help.py", "search/test_durability.py", "test_guides.py"),
    *("reliability/test_no_room.py", "training/test_trainer.py", "reliability/test_killed.py"),
    *("web/test_browser_scrolling.py", "web/test_browser_servers.py"),
    "vision/test_extract_regions.py",
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONG))

"""What several test files need: where the real data lies, and how to skip without it."""

import os
from pathlib import Path

import pytest

# CI and developers have the real data beside the checkout; CROSSGAZE_SHARED points elsewhere.
SHARED = Path(os.environ.get("CROSSGAZE_SHARED", Path(__file__).resolve().parents[2] / "shared"))

needs_shared = pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason=f"needs the real data in {SHARED / 'data'}"
)

"""Settings for every test."""

from hypothesis import settings

# The first example of a test may pay for importing torch; slowness is not what we test for.
settings.register_profile("crossgaze", deadline=None)
settings.load_profile("crossgaze")

"""`python -m crossgaze`."""

import sys

from crossgaze.cli import main

if __name__ == "__main__":
    sys.exit(main())

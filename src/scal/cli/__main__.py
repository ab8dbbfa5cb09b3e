"""`python -m scal.cli`."""

import sys

from scal.cli import main

sys.exit(main())

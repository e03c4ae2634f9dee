"""`python -m dynabench.client`: the command `dynabench` of a checkout."""

import sys

from dynabench.client.commands import main

sys.exit(main())

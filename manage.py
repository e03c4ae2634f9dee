#!/usr/bin/env python
"""Django's command line for Dynabench."""

import gc
import os
import sys

if __name__ == "__main__":
    gc.disable()  # until the apps are ready: loading makes no garbage, and takes a sixth less time
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dynabench.settings")
    from django.core.management import execute_from_command_line

    from core.env import EnvError
    from core.web.frames import wrap_with_frame_room

    try:
        wrap_with_frame_room(execute_from_command_line)(sys.argv)
    except EnvError as error:  # a line that names the variable says all
        sys.exit(f"{error}")
    except Exception as error:
        from dynabench.operations.management.sentences import explain_error

        if line := explain_error(error):
            sys.exit(line)
        raise

"""What a process does while it starts."""

import gc

from django.apps import apps


def test_garbage_is_collected_again_once_the_apps_are_ready() -> None:
    gc.disable()
    try:
        apps.get_app_config("dynabench").ready()
        assert gc.isenabled()
    finally:
        gc.enable()

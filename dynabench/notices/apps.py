from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "dynabench.notices"
    label = "notices"

    def ready(self) -> None:
        """Import the modules that register notices and news."""
        import dynabench.notices.kinds  # noqa: F401

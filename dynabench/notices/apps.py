from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "dynabench.notices"
    label = "notices"

    def ready(self) -> None:
        """Import all notices and news, which registers them."""
        import dynabench.notices.kinds  # noqa: F401

from django.apps import AppConfig


class AdversariesConfig(AppConfig):
    name = "dynabench.adversaries"
    label = "adversaries"

    def ready(self) -> None:
        import dynabench.adversaries.answers_to_evaluation  # noqa: F401  # registers them

from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    name = "evaluation"

    def ready(self) -> None:
        import evaluation.scoring.metrics  # noqa: F401  # configurations may name them

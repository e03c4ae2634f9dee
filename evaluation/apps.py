from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    name = "evaluation"

    def ready(self) -> None:
        import evaluation.scoring.metrics  # because configurations may name them
        import evaluation.submissions.kinds  # noqa: F401  # rows and the API name them

"""The job that fills the demo's task on request from a page."""

from django.db import models

from evaluation.models import Job
from tasks.models import Task


class DemoRun(Job):
    """A job that fills the demo's task. Deleting the task deletes the job."""

    function = "dynabench.operations.demo.jobs.fill"

    task = models.OneToOneField(Task, on_delete=models.CASCADE, related_name="demo_run")
    report = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"filling of {self.task.code}"

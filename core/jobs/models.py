"""Models of the site's own state. Nothing here belongs to a person or a task."""

from django.db import models


class LastSuccess(models.Model):
    """A scheduled job and the time of its last success."""

    job = models.CharField(max_length=60, primary_key=True)
    succeeded_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.job} at {self.succeeded_at:%Y-%m-%d %H:%M}"


class PeriodicWork(models.Model):
    """Periodic work of the site and the time when a process last claimed it."""

    work = models.CharField(max_length=60, primary_key=True)
    claimed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.work


class Incident(models.Model):
    """An administrators' message about a problem with the site. Everybody sees the latest one."""

    title = models.CharField(max_length=120)
    text = models.TextField(max_length=2000, blank=True)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-began_at", "-pk"]

    def __str__(self) -> str:
        return self.title

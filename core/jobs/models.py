"""The state of the site itself; nothing here is of a person or a task."""

from django.db import models


class LastSuccess(models.Model):
    """A job that a clock starts, and when it last ended well."""

    job = models.CharField(max_length=60, primary_key=True)
    succeeded_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.job} at {self.succeeded_at:%Y-%m-%d %H:%M}"


class PeriodicWork(models.Model):
    """Work that the site does every so often, and when a process last claimed it."""

    work = models.CharField(max_length=60, primary_key=True)
    claimed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.work


class Incident(models.Model):
    """A message of administrators about trouble on the site; everybody sees the latest one."""

    title = models.CharField(max_length=120)
    text = models.TextField(max_length=2000, blank=True)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-began_at", "-pk"]

    def __str__(self) -> str:
        return self.title

"""Drafts of studies for tests: the fields of a design, sent as a browser sends them."""

from django.core.files.uploadedfile import SimpleUploadedFile

from dynabench.studies.jobs import play_pilot, simulate_plan
from dynabench.studies.models import Pilot, PlanSimulation, StudyDraft

ANSWERS = ("true", "false")


def write_case_file(count=24):
    """A table of cases with their answers, as a spreadsheet saves it."""
    rows = [f"Claim number {n} about the world.,{ANSWERS[n % 2]}" for n in range(count)]
    return "\n".join(["case,answer", *rows]).encode()


def begin(client, template="with-or-without"):
    """A new draft of a design, and its address."""
    response = client.post("/new/study/", {"template": template})
    assert response.status_code == 302
    return StudyDraft.objects.latest("pk"), response.url


def send(client, draft, do="save", cases=None, **changes):
    """Send the fields of a draft with some changes."""
    draft.refresh_from_db()
    typed = {name: value for name, value in draft.values.items() if value not in ("", None)}
    # As its table has 24 cases; a study of few people is enough for a test.
    typed |= {"contexts": "24", "people": "48", "each": "2", "do": do} | changes
    if cases is not None:
        typed["cases"] = SimpleUploadedFile("cases.csv", cases)
    return client.post(f"/new/study/{draft.pk}/", typed)


def work_off():
    """Simulate and play whatever waits, as a worker would."""
    for simulation in PlanSimulation.objects.filter(state="queued"):
        simulate_plan(simulation.pk)
    for pilot in Pilot.objects.filter(state="queued"):
        play_pilot(pilot.pk)

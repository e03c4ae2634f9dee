"""The numbers of a task in a browser: charts with their tables, definitions one press away."""

import json
from io import StringIO

from django.core.management import call_command
from playwright.sync_api import expect

from tasks.models import Round
from tests.browser.conftest import audit, visit
from tests.support.factories import TaskFactory

LABELS = ("entailment", "neutral", "contradiction")


def line(number, round):
    label, said = LABELS[number % 3], LABELS[(number + (number < 6)) % 3]
    return {
        "task": "nli",
        "round": round,
        "uid": f"{round}-{number}",
        "context": {"premise": "The shop opens at nine."},
        "input": {"hypothesis": f"Statement {number}."},
        "author": f"a{number % 4}",
        "author_label": label,
        "model_prediction": {"model": "m", "label": said, "probs": None},
        "model_wrong": said != label,
        "validations": [{"worker": f"w{n}", "label": label} for n in range(3)],
        "metadata": {},
    }


def test_the_task_page_with_numbers(open_page, transactional_db, tmp_path):
    TaskFactory(code="nli", name="Inference")
    file = tmp_path / "nli.jsonl"
    rows = [line(number, round) for round in (1, 2, 3) for number in range(12 * round)]
    file.write_text("\n".join(map(json.dumps, rows)))
    call_command("import_examples", str(file), stdout=StringIO(), stderr=StringIO())
    Round.objects.filter(number=3).update(max_collected=400, state="open")
    page = open_page()
    visit(page, "/")
    expect(page.get_by_text("36 of 400").first).to_be_visible()
    audit(page)
    visit(page, "/t/nli/")
    audit(page)
    visit(page, "/t/nli/data/")
    audit(page)
    visit(page, "/t/nli/data/")
    expect(page.locator("#chart-catch-rate svg.figure")).to_be_visible()
    expect(page.locator("table", has=page.locator("#by-round"))).to_contain_text("50.0%")
    audit(page)
    page.emulate_media(forced_colors="active")
    colour = "getComputedStyle(document.querySelector('svg.figure .people.dot')).fill"
    text = "getComputedStyle(document.querySelector('h1')).color"
    assert page.evaluate(colour) == page.evaluate(text)
    page.get_by_role("link", name="12 tries").click()
    expect(page.locator("#vmer")).to_be_in_viewport()

"""A study set up on pages by a person without code: fields, cases, power, pilot, opening."""

import pytest
from allauth.account.models import EmailAddress
from django.test import Client

from annotation.models import Example
from core.accounts.models import Annotator, User
from dynabench.campaigns.models import Campaign, Place
from dynabench.studies import pilot_services, power_services
from dynabench.studies.models import Pilot, PlanSimulation, Study, StudyDraft, StudyDraw
from dynabench.studies.rules.builder import TEMPLATES
from dynabench.studies.services import get_campaign_slug
from tasks.making.proposal_services import decide_proposal
from tasks.models import Round, Task, TaskMember, TaskProposal
from tests.support.factories import UserFactory
from tests.support.study_drafts import begin, send, work_off, write_case_file

pytestmark = pytest.mark.django_db


def sign_in(user):
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def owner(settings, monkeypatch):
    """Somebody without a task, who may create some."""
    settings.NEW_TASKS = "everybody"
    monkeypatch.setattr(power_services, "MAX_STUDIES", 20)
    user = UserFactory()
    EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)
    return user


def create(client, template="with-or-without", **changes):
    """A study of a design, not opened, and its address."""
    draft, _url = begin(client, template)
    response = send(client, draft, "create", write_case_file(), **changes)
    assert response.status_code == 302, response.context["form"].errors
    return Study.objects.latest("pk"), response.url


def test_a_psychologist_walks_from_a_design_to_a_report(owner):
    client = sign_in(owner)
    # 1. From the page of new tasks to a design.
    assert 'href="/new/study/"' in client.get("/new/").text
    draft, url = begin(client)
    assert client.get(url).status_code == 200
    # 2. A wrong number is refused at its field, and what was typed stays.
    page = send(client, draft, people="many", title="Do people reason better?")
    assert page.status_code == 422
    assert set(page.context["form"].errors) == {"people"}
    again = client.get(url).text
    assert 'value="many"' in again
    assert "Do people reason better?" in again
    # 3. The cases are shown before anything is made of them.
    page = client.get(send(client, draft, cases=write_case_file()).url)
    assert (page.context["summary"].new_count, len(page.context["rows"])) == (24, 5)
    # 4. The power comes from the queue.
    assert send(client, draft, "power").status_code == 302
    assert 'id="power-waits"' in client.get(url).text
    work_off()
    simulation = client.get(url).context["simulation"]
    assert simulation.planned_power == 0.8
    assert (simulation.state, simulation.studies) == ("done", 20)
    assert 0 < simulation.power < 1
    # 5. The study is made, and its page offers a pilot.
    study_url = send(client, draft, "create").url
    study = Study.objects.get()
    assert study.state == "draft"
    assert client.get(study_url).context["simulation"] == simulation
    client.post(f"{study_url}pilot/", {"do": "start"})
    assert 'id="pilot-waits"' in client.get(study_url).text
    work_off()
    page = client.get(study_url)
    assert 'id="pilot-done"' in page.text
    # 6. Its report is of simulated people, and says so.
    rehearsal = page.context["rehearsal"]
    report_url = f"/own/{rehearsal.task.code}/studies/{rehearsal.code}/"
    pilot_page = client.get(report_url)
    assert 'id="is-simulated"' in pilot_page.text
    assert pilot_page.context["counts"] == {"drawn": 5, "began": 5, "submitted": 5}
    assert client.get(f"{report_url}report.json").json()["is_simulated"] is True
    # 7. One click deletes all of it.
    client.post(f"{study_url}pilot/", {"do": "delete"})
    assert Study.objects.get() == study
    assert not Example.objects.exists()
    # 8. The study opens, and nobody of the pilot is in its report.
    assert client.post(f"{study_url}open/", {"ethics_name": ""}).status_code == 422
    assert client.post(f"{study_url}open/", {"ethics_name": "Dr Ito"}).status_code == 302
    study.refresh_from_db()
    assert study.state == "frozen"
    assert set(Campaign.objects.values_list("state", flat=True)) == {"open"}
    report = client.get(f"{study_url}report.json").json()
    assert report["is_simulated"] is False
    assert [arm["drawn"] for arm in report["arms"].values()] == [0, 0]


@pytest.mark.parametrize("template", list(TEMPLATES))
def test_each_design_gives_a_study_that_five_simulated_people_finish(owner, template):
    client = sign_in(owner)
    study, url = create(client, template, people="96")
    client.post(f"{url}pilot/", {"do": "start"})
    work_off()
    pilot = Pilot.objects.get()
    assert (pilot.state, pilot.error) == ("done", "")
    parts = len(study.plan.arms) if study.plan.design == "within" else 1
    assert Place.objects.filter(state="submitted").count() == 5 * parts
    # Instructions of an arm are those of its task.
    for arm in study.plan.arms:
        task = Task.objects.get(code=get_campaign_slug(study.plan, arm))
        assert not arm.instructions or task.config.instructions == arm.instructions


def test_a_pilot_needs_no_approval_and_gives_none(owner, settings):
    settings.NEW_TASKS = "approval"
    client = sign_in(owner)
    _study, url = create(client)
    client.post(f"{url}pilot/", {"do": "start"})
    work_off()
    assert (Pilot.objects.get().state, Pilot.objects.get().error) == ("done", "")
    # Its tasks are as private as any new one, and the study still waits for its approval.
    assert set(Task.objects.values_list("is_unapproved", "is_visible")) == {(True, False)}
    assert client.post(f"{url}open/", {"ethics_name": "Dr Ito"}).status_code in (409, 422)
    assert not Campaign.objects.filter(state="open").exists()


def test_a_study_is_approved_before_anything_of_it_freezes(owner, settings):
    settings.NEW_TASKS = "approval"
    client = sign_in(owner)
    study, url = create(client)
    page = client.post(f"{url}open/", {"ethics_name": "Dr Ito"})
    assert page.status_code == 422
    study.refresh_from_db()
    assert (study.state, study.plan_hash) == ("draft", "")
    assert set(Round.objects.values_list("state", flat=True)) == {"draft"}
    # One click asks for all arms; a second one asks nobody twice.
    for _ in range(2):
        client.post(f"{url}approval/")
    proposals = TaskProposal.objects.all()
    assert {(p.task.code, p.state, p.show) for p in proposals} == {
        (get_campaign_slug(study.plan, arm), "waiting", False) for arm in study.plan.arms
    }
    assert "open-study" not in client.get(url).text
    admin = UserFactory(is_superuser=True)
    for proposal in proposals:
        decide_proposal(proposal=proposal, actor=admin, approve=True, reason="")
    assert client.post(f"{url}open/", {"ethics_name": "Dr Ito"}).status_code == 302
    assert set(Campaign.objects.values_list("state", flat=True)) == {"open"}


def test_a_killed_pilot_goes_on_with_the_people_who_are_missing(owner, monkeypatch):
    client = sign_in(owner)
    _study, url = create(client)
    client.post(f"{url}pilot/", {"do": "start"})
    real = pilot_services.play_people

    def play_two(study, names, crowd):
        for step in real(study, names, crowd):
            # In the middle of the third person.
            if (step.person, step.example) == (3, 2):
                raise ConnectionError
            yield step

    monkeypatch.setattr(pilot_services, "play_people", play_two)
    work_off()
    assert Pilot.objects.get().state == "queued"
    monkeypatch.setattr(pilot_services, "play_people", real)
    Pilot.objects.update(not_before=None)
    work_off()
    assert Pilot.objects.get().state == "done"
    assert set(Place.objects.values_list("state")) == {("submitted",)}
    assert (Place.objects.count(), StudyDraw.objects.count()) == (5, 5)
    assert Example.objects.count() == 10
    assert Study.objects.filter(pilot_of__isnull=False).count() == 1


def test_a_deleted_pilot_leaves_no_row(owner):
    client = sign_in(owner)
    before = {
        model: model.objects.count() for model in (User, Annotator, Task, Campaign, StudyDraw)
    }
    _study, url = create(client)
    made = {model: model.objects.count() for model in before}
    client.post(f"{url}pilot/", {"do": "start"})
    work_off()
    assert User.objects.count() == before[User] + 5
    # A second pilot comes only after the first.
    client.post(f"{url}pilot/", {"do": "start"})
    assert Pilot.objects.count() == 1
    client.post(f"{url}pilot/", {"do": "delete"})
    assert {model: model.objects.count() for model in before} == made
    client.post(f"{url}pilot/", {"do": "delete"})
    assert client.post(f"{url}pilot/", {"do": "other"}).status_code == 404


def test_no_person_comes_into_a_pilot(owner):
    client = sign_in(owner)
    _study, url = create(client)
    client.post(f"{url}pilot/", {"do": "start"})
    work_off()
    rehearsal = Pilot.objects.get().rehearsal
    Study.objects.filter(pk=rehearsal.pk).update(state="frozen")
    Campaign.objects.filter(study_arm__study=rehearsal).update(state="open")
    assert Client().get(f"/s/{rehearsal.code}/", {"pid": "person-1"}).status_code == 404
    slug = rehearsal.arms.first().campaign.slug
    response = Client().get(f"/c/{slug}/", {"pid": "person-1"})
    assert response.url.startswith(f"/s/{rehearsal.code}/")
    assert StudyDraw.objects.count() == 5


def test_a_model_that_fails_ends_the_pilot_in_words(owner):
    client = sign_in(owner)
    _study, url = create(client, **{"arm-1-model": "api", "arm-1-url": "https://models.test/v1",
                                    "arm-1-model_name": "large"})  # fmt: skip
    client.post(f"{url}pilot/", {"do": "start"})
    work_off()
    pilot = Pilot.objects.get()
    assert pilot.state == "failed"
    assert pilot.error
    assert 'id="pilot-error"' in client.get(url).text


@pytest.mark.parametrize(
    ("row", "line"),
    [("A claim without an answer,", 26), ("A claim,perhaps", 26), (",true", 26)],
)
def test_a_wrong_case_is_named_by_its_line(owner, row, line):
    client = sign_in(owner)
    draft, url = begin(client)
    send(client, draft, cases=write_case_file() + f"\n{row}".encode())
    assert [error.line for error in client.get(url).context["summary"].errors] == [line]
    page = send(client, draft, "create")
    assert page.status_code == 422
    assert str(line) in page.context["form"].errors["cases"][0]
    assert not Study.objects.exists()


def test_files_that_are_no_table_of_cases_are_refused(owner):
    client = sign_in(owner)
    draft, _url = begin(client)
    # Without cases, with too few of them, with too much, and with something else.
    assert "cases" in send(client, draft, "create").context["form"].errors
    assert "cases" in send(client, draft, cases=b"x" * 2_200_000).context["form"].errors
    assert "cases" in send(client, draft, cases=b"\xff\xfe\x00").context["form"].errors
    send(client, draft, cases=write_case_file(20))
    assert "cases" in send(client, draft, "create").context["form"].errors
    assert not Study.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"people": "20"}, "people"),
        ({"outcome-correct": ""}, "outcome-correct"),
        ({"hypothesis-0-arm": ""}, "hypothesis-0-arm"),
        ({"hypothesis-0-arm": "0"}, "hypothesis-0-arm"),
        ({"hypothesis-0-outcome": "seconds"}, "hypothesis-0-outcome"),
        ({"mean-correct": "0.99"}, None),
        ({"arm-1-name": "Without"}, "arm-1-name"),
        ({"arm-1-model": "api"}, "arm-1-url"),
        ({"answers": "true"}, "answers"),
    ],
)
def test_a_wrong_field_is_named(owner, changes, field):
    client = sign_in(owner)
    draft, _url = begin(client)
    page = send(client, draft, **changes)
    assert page.status_code == 422
    errors = page.context["form"].errors
    assert field in errors if field else errors
    draft.refresh_from_db()
    assert all(draft.values[name] == value for name, value in changes.items())


def test_arms_and_hypotheses_are_added_without_losing_what_was_typed(owner):
    client = sign_in(owner)
    draft, url = begin(client)
    assert send(client, draft, "arm", title="Mine", people="many").url.startswith(url)
    send(client, draft, "hypothesis", title="Mine", people="many")
    form = client.get(url).context["form"]
    assert (form.arm_count, form.hypothesis_count) == (3, 2)
    draft.refresh_from_db()
    assert (draft.values["title"], draft.values["people"]) == ("Mine", "many")


def test_an_expert_edits_the_yaml(owner):
    client = sign_in(owner)
    draft, url = begin(client)
    send(client, draft, "yaml", write_case_file())
    draft.refresh_from_db()
    text = draft.plan_text
    # A mistake is refused with its line, and the text stays in its field.
    page = client.post(url, {"plan_text": text.replace("correct", "corect"), "do": "save"})
    assert page.status_code == 422
    assert "corect" in page.text
    other = text.replace(draft.code, "another")
    assert client.post(url, {"plan_text": other, "do": "save"}).status_code == 422
    assert client.get(url).context["summary"].new_count == 24
    made = client.post(url, {"plan_text": text.replace("people: 48", "people: 60"), "do": "create"})
    assert made.status_code == 302
    assert Study.objects.get().plan.size.people == 60
    client.post(url, {"do": "fields"})
    assert client.get(url).context["form"].arm_count == 2


def test_a_draft_replaces_its_study_until_the_plan_is_frozen(owner):
    client = sign_in(owner)
    study, url = create(client)
    draft = StudyDraft.objects.get()
    client.post(f"{url}pilot/", {"do": "start"})
    work_off()
    assert f'href="/new/study/{draft.pk}/"' in client.get(url).text
    assert send(client, draft, "create", title="Another title").status_code == 302
    changed = Study.objects.get()
    assert (changed.code, changed.plan.title) == (study.code, "Another title")
    assert Task.objects.count() == 2
    client.post(f"{url}open/", {"ethics_name": "Dr Ito"})
    # A plan does not change once people may come.
    page = send(client, draft, "create", title="Late")
    assert page.status_code in (409, 422)
    changed.refresh_from_db()
    assert changed.plan.title == "Another title"


def test_only_who_may_create_tasks_is_offered_a_study(owner, settings):
    draft, url = begin(sign_in(owner))
    stranger = sign_in(UserFactory())
    # Drafts are their owner's alone.
    assert stranger.get(url).status_code == 404
    assert stranger.post(f"{url}delete/").status_code == 404
    assert stranger.post("/new/study/", {"template": "absent"}).status_code == 404
    for path in ("/new/study/", url):
        assert Client().get(path).status_code in (302, 404)
    settings.NEW_TASKS = "nobody"
    assert stranger.get("/new/study/").status_code == 404
    settings.NEW_TASKS = "everybody"
    sign_in(UserFactory()).post("/new/study/", {"template": "within"})
    assert StudyDraft.objects.get() == draft
    sign_in(owner).post(f"{url}delete/")
    assert not StudyDraft.objects.exists()


def test_only_owners_of_all_arms_act_on_a_study(owner):
    study, url = create(sign_in(owner))
    helper = UserFactory()
    TaskMember.objects.create(task=study.task, user=helper, role="owner")
    actions = {"power/": {}, "pilot/": {"do": "start"}, "open/": {"ethics_name": "Dr Ito"}}
    for user in (UserFactory(), helper):
        if user is helper:
            # The arms of a draft are known by their tasks.
            sign_in(owner).post(f"{url}state/", {"to": "frozen"})
        for path, values in actions.items():
            assert sign_in(user).post(url + path, values).status_code in (403, 404)
    assert not PlanSimulation.objects.exists()
    assert not Pilot.objects.exists()

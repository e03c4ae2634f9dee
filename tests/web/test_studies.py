"""Studies on a site: the frozen plan, the draw, what is measured, the report, and who sees it."""

import json
from io import BytesIO
from zipfile import ZipFile

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from annotation.models import Assignment, Report
from core.accounts.counting import find_counted_person
from core.accounts.models import PersonAccount
from core.accounts.services import get_annotator
from core.errors import Invalid, Refused
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.place_services import NoPlace
from dynabench.studies import services
from dynabench.studies.models import Study, StudyDraw
from dynabench.studies.rules.bundle import find_bundle_problems
from tasks.models import TaskMember
from tests.support.campaigns import agree, open_campaign, paid_place, take_part
from tests.support.factories import UserFactory
from tests.support.judging import write
from tests.support.studies import PLAN, arrive, plan_study, write_in_study
from validation.models import Consensus

pytestmark = pytest.mark.django_db


@pytest.fixture
def frozen():
    """A frozen study and its owner."""
    study, owner, _ = plan_study()
    services.freeze_study(study=study, actor=owner)
    study.refresh_from_db()
    return study, owner


def sign_in(user):
    client = Client()
    client.force_login(user)
    return client


def play(study, people=12):
    """People of both arms take part: those who are helped fool the model, the others don't."""
    for person in range(people):
        arrive(study, person)
    services.match_draws()
    for draw in StudyDraw.objects.select_related("arm", "place__campaign__task"):
        is_helped = draw.arm.name == "helped"
        outcomes = ["fooled", "fooled" if is_helped else "not_fooled", "not_fooled"]
        write_in_study(draw.place, outcomes[: 2 + draw.pk % 2])


def read_report(study, capsys):
    call_command("study_report", study.code, "--json")
    return json.loads(capsys.readouterr().out)


def test_people_are_drawn_in_balance_and_measured(frozen, capsys):
    study, _ = frozen
    play(study)
    report = read_report(study, capsys)
    assert report["plan_hash"] == study.plan_hash
    assert report["joined_without_draw"] == 0
    for arm in report["arms"].values():
        assert arm["drawn"] == arm["began"] == 6
        assert arm["means"]["confidence"] == 2
        # The first example of each has another label than the key.
        assert 0.5 <= arm["means"]["right_answers"] <= 0.67
    fooled, confidence = report["planned"]
    assert fooled["difference"] > 0.2
    assert fooled["low"] < fooled["difference"] < fooled["high"]
    assert fooled["corrected_p"] >= fooled["p"]
    # Nobody differs, so there is no interval.
    assert confidence["p"] is None
    assert {comparison["outcome"] for comparison in report["exploratory"]} == {
        "catches",
        "right_answers",
    }
    assert all("corrected_p" not in comparison for comparison in report["exploratory"])


def test_a_person_keeps_the_arm(frozen):
    study, _ = frozen
    _, slug = arrive(study, 1)
    assert arrive(study, 1)[1] == slug
    services.match_draws()
    # The draw knows the person by the place now, and keeps no hash.
    assert StudyDraw.objects.get().id_hash == ""
    assert arrive(study, 1)[1] == slug
    assert StudyDraw.objects.count() == 1


def test_the_probability_of_each_draw_is_kept(frozen):
    study, _ = frozen
    for person in range(6):
        arrive(study, person)
    probabilities = list(StudyDraw.objects.values_list("probability", flat=True))
    # An urn holds each arm once.
    assert probabilities == [0.5, 1.0] * 3


def test_nobody_chooses_an_arm_by_its_campaign(frozen, capsys):
    study, _ = frozen
    ids = {"pid": "person-1"}
    # The address of an arm leads a newcomer to the draw, and who was drawn elsewhere, too.
    for slug in ("arm-alone", "arm-helped"):
        assert Client().get(f"/c/{slug}/", ids).url == "/s/helped/?pid=person-1"
    _, own_slug = arrive(study, 1)
    other_slug = "arm-helped" if own_slug == "arm-alone" else "arm-alone"
    assert Client().get(f"/c/{other_slug}/", ids).url == "/s/helped/?pid=person-1"
    assert Client().get(f"/c/{own_slug}/", ids).url == f"/c/{own_slug}/"
    with pytest.raises(Refused):
        agree(Campaign.objects.get(slug=other_slug), "person-1")
    with pytest.raises(Refused):
        agree(Campaign.objects.get(slug=other_slug), "somebody")
    services.match_draws()
    assert read_report(study, capsys)["joined_without_draw"] == 0


def test_a_second_account_of_a_person_gets_the_same_arm():
    study, owner, _ = plan_study(way="account")
    services.freeze_study(study=study, actor=owner)
    first, second = UserFactory(), UserFactory()
    arm = services.draw_person(study=study, user=first)
    person = find_counted_person(first)
    PersonAccount.objects.update_or_create(user=second, defaults={"person": person})
    assert services.draw_person(study=study, user=second) == arm
    assert StudyDraw.objects.count() == 1
    with pytest.raises(Refused):
        agree(Campaign.objects.exclude(pk=arm.campaign_id).get(), second)


def test_one_account_of_a_person_takes_the_place(capsys):
    study, owner, _ = plan_study(way="account")
    services.freeze_study(study=study, actor=owner)
    first, second = UserFactory(), UserFactory()
    campaign = services.draw_person(study=study, user=first).campaign
    person = find_counted_person(first)
    PersonAccount.objects.update_or_create(user=second, defaults={"person": person})
    services.draw_person(study=study, user=second)
    # The draw is the second account's now, so that its place is the one that counts.
    with pytest.raises(Refused):
        agree(campaign, first)
    agree(campaign, second)
    with pytest.raises(NoPlace) as caught:
        services.draw_person(study=study, user=first)
    assert caught.value.code == "account"
    assert 'id="' in sign_in(first).get("/s/helped/").text
    services.match_draws()
    assert StudyDraw.objects.get().place.annotator.user == second
    assert read_report(study, capsys)["joined_without_draw"] == 0


def test_who_joined_before_there_was_a_guard_is_not_analysed(frozen, capsys):
    study, _ = frozen
    paid_place(Campaign.objects.get(slug="arm-alone"), 1)
    report = read_report(study, capsys)
    assert report["joined_without_draw"] == 1
    assert report["arms"]["alone"]["drawn"] == 0
    assert all(comparison["p"] is None for comparison in report["planned"])


def test_a_stranger_recomputes_every_number(frozen, tmp_path, capsys):
    study, owner = frozen
    play(study)
    content = sign_in(owner).get(f"/own/alone/studies/{study.code}/bundle.zip").content
    assert find_bundle_problems(BytesIO(content)) == []
    path = tmp_path / "bundle.zip"
    call_command("study_report", study.code, "--json", "--bundle", str(path))
    capsys.readouterr()
    assert find_bundle_problems(path.open("rb")) == []
    assert b"person-1" not in content


@pytest.mark.parametrize(
    ("name", "old", "new", "problems"),
    [
        ("plan.yaml", "people: 40", "people: 42", 1),
        ("people.csv", "0.5", "0.4", 6),
        ("values.csv", "fooled,", "catches,", 3),
    ],
)
def test_a_changed_bundle_is_found(frozen, name, old, new, problems):
    study, owner = frozen
    play(study)
    content = sign_in(owner).get(f"/own/alone/studies/{study.code}/bundle.zip").content
    changed = BytesIO()
    with ZipFile(BytesIO(content)) as archive, ZipFile(changed, "w") as copy:
        for entry in archive.namelist():
            text = archive.read(entry).decode()
            copy.writestr(entry, text.replace(old, new) if entry == name else text)
    assert len(find_bundle_problems(changed)) == problems


def test_a_frozen_plan_does_not_change(frozen):
    study, owner = frozen
    with pytest.raises(Refused):
        services.change_study(study=study, actor=owner, plan_text=PLAN.replace("40", "42"))
    with pytest.raises(Refused):
        services.freeze_study(study=study, actor=owner)
    page = sign_in(owner).post(
        f"/own/alone/studies/{study.code}/change/", {"plan_text": PLAN.replace("40", "42")}
    )
    assert page.status_code == 422
    study.refresh_from_db()
    assert study.plan_text == PLAN


def test_a_new_study_starts_from_a_plan_with_its_own_campaigns():
    study, owner, rounds = plan_study()
    client, url = sign_in(owner), "/own/alone/studies/new/"
    assert "campaign: arm-alone" in client.get(url).context["form"].initial["plan_text"]
    second_slug = open_campaign(rounds[0].task, slug="second", places=40).slug
    plan_text = client.get(url).context["form"].initial["plan_text"]
    assert client.post(url, {"plan_text": plan_text}).status_code == 302
    made_plan = Study.objects.exclude(pk=study.pk).get().plan
    assert [arm.campaign for arm in made_plan.arms] == [second_slug, "arm-alone"]


def test_each_problem_of_a_plan_has_a_line_of_its_own():
    study, owner, _ = plan_study()
    url = f"/own/alone/studies/{study.code}/change/"
    page = sign_in(owner).post(
        url, {"plan_text": PLAN.replace("assume: {mean: 0.", "assume: {mean: 7.")}
    )
    assert page.status_code == 422
    problems = page.context["form"].errors["plan_text"][0].splitlines()
    assert len(problems) > 1
    assert all("line" in problem for problem in problems)


def test_comparisons_appear_when_there_are_people(frozen):
    study, owner = frozen
    client, url = sign_in(owner), f"/own/alone/studies/{study.code}/"
    page = client.get(url)
    assert 'id="too-few"' in page.text
    assert page.context["counts"] == {"drawn": 0, "began": 0, "submitted": 0}
    play(study)
    page = client.get(url)
    assert 'id="too-few"' not in page.text
    assert page.context["counts"]["drawn"] == 12
    (row,) = client.get("/own/alone/studies/").context["page"].rows
    assert row.people_count == 12


def test_a_plan_comes_before_the_data():
    study, owner, _ = plan_study()
    take_part(Campaign.objects.get(slug="arm-helped"))
    with pytest.raises(Refused):
        services.freeze_study(study=study, actor=owner)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("arm-helped", "arm-alone"),
        ("arm-helped", "absent"),
        ("study: helped", "study: Helped"),
        ("measure: caught", "measure: cost"),
    ],
)
def test_a_plan_that_a_site_cannot_carry_out_is_refused(old, new):
    study, owner, _ = plan_study()
    with pytest.raises(Invalid):
        services.change_study(study=study, actor=owner, plan_text=PLAN.replace(old, new))


def test_all_arms_recruit_in_one_way():
    study, owner, _ = plan_study()
    Campaign.objects.filter(slug="arm-helped").update(way="account")
    with pytest.raises(Invalid):
        services.freeze_study(study=study, actor=owner)


def test_without_a_place_in_each_arm_nobody_is_drawn(frozen):
    Campaign.objects.filter(slug="arm-helped").update(state="paused")
    assert Client().get("/s/helped/", {"pid": "person-1"}).status_code == 200
    assert not StudyDraw.objects.exists()


def test_a_closed_study_draws_nobody_and_forgets_who_never_joined(frozen):
    study, owner = frozen
    _, slug = arrive(study, 1)
    Client().get("/s/helped/", {"pid": "person-2"})
    page = sign_in(owner).post(f"/own/alone/studies/{study.code}/state/", {"to": "closed"})
    assert page.status_code == 302
    assert not StudyDraw.objects.exclude(id_hash="").exists()
    assert arrive(study, 1)[1] == slug
    arrive(study, 3)
    assert StudyDraw.objects.count() == 2
    with pytest.raises(Refused):
        services.close_study(study=study, actor=owner)


def test_people_with_accounts_sign_in_first():
    study, owner, _ = plan_study(way="account")
    services.freeze_study(study=study, actor=owner)
    page = Client().get("/s/helped/")
    assert page.status_code == 302
    assert "/c/" not in page.url
    person = UserFactory()
    page = sign_in(person).get("/s/helped/")
    assert page.url.startswith("/c/arm-")
    assert StudyDraw.objects.get().annotator.user == person


def test_a_preview_and_a_link_without_ids_draw_nobody(frozen):
    assert Client().get("/s/helped/", {"pid": "{{id}}"}).url.startswith("/c/arm-alone/")
    assert Client().get("/s/helped/").status_code == 400
    assert not StudyDraw.objects.exists()


def test_skill_is_a_block():
    plan = PLAN.replace("between\n", "between\nblocks: [skill]\n")
    study, owner, rounds = plan_study(plan, way="account")
    services.freeze_study(study=study, actor=owner)
    people = [UserFactory() for _ in range(4)]
    for person in people[:2]:
        example = write(rounds[0], person)
        Consensus.objects.create(
            example=example, round=rounds[0], state="decided", votes=1, still_needed=0,
            is_verified=True,
        )  # fmt: skip
    for person in people:
        services.draw_person(study=study, user=person)
    draws = set(StudyDraw.objects.values_list("stratum", "arm__name"))
    assert draws == {
        ("new", "alone"),
        ("new", "helped"),
        ("skilled", "alone"),
        ("skilled", "helped"),
    }


def test_a_draft_has_no_door_and_no_report(capsys):
    _, owner, _ = plan_study()
    client = sign_in(owner)
    assert client.get("/s/helped/").status_code == 404
    for page in ("report.json", "bundle.zip"):
        assert client.get(f"/own/alone/studies/helped/{page}").status_code == 404
    for code in ("helped", "absent"):
        with pytest.raises(CommandError):
            call_command("study_report", code)


def test_only_owners_of_all_arms_see_a_study(frozen):
    study, owner = frozen
    stranger, owner_of_one = UserFactory(), UserFactory()
    TaskMember.objects.create(task=study.task, user=owner_of_one, role="owner")
    pages = ["", "change/", "report.json", "bundle.zip"]
    for page in pages:
        url = f"/own/alone/studies/helped/{page}"
        assert sign_in(stranger).get(url).status_code in (403, 404)
        assert sign_in(owner_of_one).get(url).status_code == 403
        assert sign_in(owner).get(url).status_code == 200
    for user in (stranger, owner_of_one):
        url = "/own/alone/studies/helped/state/"
        assert sign_in(user).post(url, {"to": "closed"}).status_code in (403, 404)
    with pytest.raises(Refused):
        services.close_study(study=study, actor=stranger)
    # Whoever owns one arm can't plan a study with the other.
    open_campaign(study.task, slug="third")
    plan = PLAN.replace("study: helped", "study: other").replace("arm-alone", "third")
    with pytest.raises((Refused, Invalid)):
        services.make_study(task=study.task, actor=owner_of_one, plan_text=plan)
    assert Study.objects.count() == 1
    page = sign_in(owner_of_one).post("/own/alone/studies/new/", {"plan_text": plan})
    # A refusal that belongs to no field is shown, too.
    (reason,) = page.context["form"].non_field_errors() or page.context["form"].errors["plan_text"]
    assert (page.status_code, escape(reason) in page.text) == (422, True)


def test_an_owner_plans_and_freezes_on_pages():
    study, owner, _ = plan_study()
    Study.objects.all().delete()
    client = sign_in(owner)
    assert client.get("/own/alone/studies/").status_code == 200
    page = client.post("/own/alone/studies/new/", {"plan_text": PLAN.replace("caught", "cauht")})
    assert page.status_code == 422
    page = client.post("/own/alone/studies/new/", {"plan_text": PLAN})
    assert page.url == "/own/alone/studies/helped/"
    assert client.post("/own/alone/studies/new/", {"plan_text": PLAN}).status_code == 422
    changed = PLAN.replace("Do suggestions help?", "Does help help?")
    client.post("/own/alone/studies/helped/change/", {"plan_text": changed})
    assert client.post("/own/alone/studies/helped/state/", {"to": "absent"}).status_code == 404
    client.post("/own/alone/studies/helped/state/", {"to": "frozen"})
    study = Study.objects.get()
    assert (study.state, study.plan_text) == ("frozen", changed.strip())
    assert study.frozen_at <= timezone.now()
    assert client.get("/own/alone/studies/helped/").status_code == 200
    assert client.get("/own/alone/studies/").status_code == 200


def test_the_report_is_a_table_of_latex_and_lines(frozen, capsys):
    study, _ = frozen
    play(study)
    call_command("study_report", study.code, "--latex")
    latex = capsys.readouterr().out
    assert latex.count("\\\\") == 5
    assert r"right\_answers" in latex
    call_command("study_report", study.code)
    assert len(capsys.readouterr().out.splitlines()) == 7


def test_coverage_and_harm_are_values_of_each_person(capsys):
    outcomes = "  - {name: covered, measure: coverage, assume: {mean: 0.1, sd: 0.1}}\n"
    outcomes += "  - {name: harm, measure: harm, assume: {mean: 1}}\nhypotheses:"
    study, owner, rounds = plan_study(PLAN.replace("hypotheses:", outcomes))
    services.freeze_study(study=study, actor=owner)
    play(study, people=2)
    draws = {draw.arm.name: draw for draw in StudyDraw.objects.select_related("place", "arm")}
    # Both fooled the model; the helped person twice, on two of eight texts with one cell each.
    cells = 8 * (1 + len(rounds[0].task.config.challenges))
    helped = draws["helped"].place.annotator
    contexts = list(rounds[1].contexts.order_by("pk"))
    for context in contexts[:3]:
        Assignment.objects.create(
            annotator=helped, round=rounds[1], context=context, left_at=timezone.now()
        )
    for context in (contexts[0], contexts[7]):
        Report.objects.create(annotator=get_annotator(owner), context=context, reason="harmful")
    report = read_report(study, capsys)
    assert report["arms"]["helped"]["means"]["covered"] == pytest.approx(2 / cells)
    assert report["arms"]["alone"]["means"]["covered"] == pytest.approx(1 / cells)
    assert report["coverage"] == {
        "helped": pytest.approx(2 / cells),
        "alone": pytest.approx(1 / cells),
    }
    # One of the two harmful texts was shown, and to one person.
    assert report["arms"]["helped"]["means"]["harm"] == 1
    assert report["arms"]["alone"]["means"]["harm"] == 0

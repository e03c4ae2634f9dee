"""People of a panel take part in a study and belong to no task."""

from tasks.members.assignments.selectors import list_assignable_people
from tasks.models import TaskMember
from tasks.permissions import can_write
from tests.support.campaigns import agree, open_campaign
from validation.discussion.services import find_readers


def test_people_of_a_panel_are_no_members_at_any_door(nli, as_alice, alice):
    """They are listed by pseudonym with their study; nobody gives them a role."""
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    campaign = open_campaign(nli.task)
    person = agree(campaign, "panel-person").annotator
    (row,) = nli.task.members.filter(user=person.user)
    page = as_alice.get("/own/nli/access/")
    assert [member.user for member in page.context["members"]] == [alice]
    assert person.pseudonym in page.text
    assert campaign.name in page.text
    assert "panel.invalid" not in page.text
    assert person.pseudonym not in as_alice.get("/own/nli/access/assignments/").text
    api = as_alice.get("/api/v1/tasks/nli/members/").json()
    assert [member["email"] for member in api["results"]] == [alice.email]
    for change in ({"role": "owner"}, {"role": "owner", "remove": "1"}):
        assert as_alice.post(f"/own/nli/access/members/{row.pk}/", change).status_code == 404
    door = f"/api/v1/tasks/nli/members/{row.pk}/"
    assert as_alice.patch(door, {"role": "owner"}, "application/json").status_code == 404
    assert as_alice.delete(door).status_code == 404
    asked = {"kind": "write", "amount": 2, "names": [person.pseudonym]}
    assignment = as_alice.post("/api/v1/tasks/nli/duties/", asked, "application/json")
    assert assignment.status_code == 422
    TaskMember.objects.filter(pk=row.pk).update(role="owner")  # by an earlier release
    assert person.user not in list_assignable_people(nli.task, "write")
    assert find_readers(nli.task).keys() == {str(alice.annotator).casefold()}
    assert can_write(person.user, nli.task)

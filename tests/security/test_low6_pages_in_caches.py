"""No cache, of a proxy or a browser, keeps what somebody signed in was shown."""

import pytest

from core.accounts.tokens import create_token

pytestmark = pytest.mark.django_db
PRIVATE = "private, no-store"


@pytest.mark.parametrize("page", ["/", "/me/", "/account/", "/t/nli/", "/accounts/email/", "/no/"])
def test_pages_of_people_are_kept_nowhere(as_alice, nli, page):
    assert as_alice.get(page)["Cache-Control"] in (
        PRIVATE,
        "max-age=0, no-cache, no-store, must-revalidate, private",
    )


def test_parts_and_refusals_too(as_alice, nli):
    for answer in (
        as_alice.get("/me/", headers={"HX-Request": "true"}),
        as_alice.post("/account/ranking/", {"on": "1"}),
        as_alice.get("/own/nli/"),
        as_alice.get("/api/v1/me/"),
    ):
        assert answer["Cache-Control"] == PRIVATE


def test_answers_to_tokens_too(client, alice):
    _token, key = create_token(user=alice, name="t", scopes=["read"], days=1)
    answer = client.get("/api/v1/me/", headers={"Authorization": f"Bearer {key}"})
    assert answer["Cache-Control"] == PRIVATE


def test_public_pages_stay_as_they_were(client, nli):
    for page in ("/", "/t/nli/", "/help/", "/healthz/", "/api/v1/tasks/"):
        assert "Cache-Control" not in client.get(page), page


def test_what_a_view_says_itself_stays(as_alice, nli):
    """A board has an ETag, so that the browser asks only whether it changed."""
    answer = as_alice.get("/api/v1/tasks/nli/statistics/")
    assert answer["Cache-Control"] == "private, no-cache"
    again = as_alice.get("/api/v1/tasks/nli/statistics/", headers={"If-None-Match": answer["ETag"]})
    assert again.status_code == 304

"""Pages in another language: as the browser asks, by choice, and English where there is none."""

import re

import pytest
from django.conf import settings
from django.urls import reverse
from django.utils import translation
from django.utils.html import strip_tags

from core.text.languages import list_languages
from tests.support.admin_forms import ADDRESSES
from tests.support.factories import PASSWORD, scripted_target
from tests.support.marked import esperanto  # noqa: F401
from tests.support.writing import NLI_PROB, open_form

# ruff: noqa: F811  (fixtures are named where they are used)

EO = {"HTTP_ACCEPT_LANGUAGE": "eo,en;q=0.5"}
DE = {"HTTP_ACCEPT_LANGUAGE": "de"}


def without_footer(page):
    """The page without its footer, where each language has its own name."""
    return page.partition("<footer")[0]


def words_of(page, tag):
    """What stands in each of these elements, without tags within."""
    found = re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", page, re.DOTALL)
    assert found
    plain = [re.sub(r"<[^>]*>", "", text) for text in found]
    return [text for text in plain if re.search(r"\w", text)]  # not a sign such as ⋯


@pytest.mark.parametrize("path", ["/", "/help/", "/help/numbers/", "/accounts/login/"])
def test_a_page_is_in_the_language_of_the_browser(client, esperanto, nli, path):
    nli.task.allow_try_out = False  # the first page's try-out has the task's own words
    nli.task.save()
    response = client.get(path, **EO)
    assert response["Content-Language"] == "eo"
    assert '<html lang="eo">' in response.text
    page = without_footer(response.text)
    for tag in ("h1", "button", "label"):
        if f"<{tag}" in page:
            assert all("⟦" in words for words in words_of(page, tag)), tag
    assert "⟦" not in client.get(path).text


def test_the_write_page_of_an_annotator_is(as_alice, esperanto, nli):
    scripted_target(nli, output={"label": "entailment"}, prob=NLI_PROB)
    response = as_alice.get("/t/nli/write/", **EO)
    page = without_footer(response.text)
    assert '<html lang="eo">' in page
    assert all("⟦" in words for words in words_of(page, "button"))
    own_words = {strip_tags(one.title) for one in response.context["instructions"]}  # of the task
    assert not [words for words in {*words_of(page, "summary")} - own_words if "⟦" not in words]
    assert re.search('<a class="skip"[^>]*>⟦', page)
    page = as_alice.post("/t/nli/write/", open_form(as_alice, text=""), **EO).text
    assert re.search(r'id="error-summary"[^>]*>\s*<h2[^>]*>\s*⟦', page)
    page = as_alice.post("/t/nli/write/", open_form(as_alice), follow=True, **EO)
    assert page.context["heading"].startswith("⟦")


def test_every_page_can_be_shown(client, esperanto, bob, nli):
    """No placeholder is missing and no lazy text stands where only plain ones may."""
    bob.is_superuser = True
    bob.save()
    for address in ADDRESSES:
        if address.startswith("/api/v1/") and not address.endswith("/docs/"):
            continue  # the API answers in English
        if "_auth_user_id" not in client.session:
            client.force_login(bob)
        assert client.get(address, **EO).status_code < 500, address


def languages_of(page):
    """The languages in the footer: whether the page is in each."""
    button = (
        r'<button class="link" name="language" value="(\w+)" lang="\w+"( aria-current="true")?>'
    )
    return {code: bool(lit) for code, lit in re.findall(button, page)}


def test_one_chooses_in_the_footer_and_comes_back(client, esperanto):
    page = client.get("/help/").text
    assert languages_of(page) == {"en": True, "eo": False}
    assert f'action="{reverse("set_language")}"' in page
    response = client.post(
        reverse("set_language"), {"language": "eo"}, HTTP_REFERER="http://testserver/help/?a=b"
    )
    assert (response.status_code, response.url) == (302, "http://testserver/help/?a=b")
    assert response.cookies["django_language"].value == "eo"
    page = client.get("/help/", **DE).text
    assert '<html lang="eo">' in page
    assert languages_of(page) == {"en": False, "eo": True}


def test_nobody_is_sent_to_another_site(client, esperanto):
    told = {"language": "eo", "next": "https://elsewhere.example/"}
    assert client.post(reverse("set_language"), told).url == "/"


def test_the_languages_are_those_that_have_a_catalogue():
    assert list_languages(settings.LOCALE_PATHS[0]) == settings.LANGUAGES


def test_with_one_language_there_is_no_choice(client, settings, db):
    settings.LANGUAGES = [("en", "English")]
    assert reverse("set_language") not in client.get("/").text


def test_who_asks_for_a_language_that_is_not_there_gets_english(client, as_alice, settings, nli):
    settings.LANGUAGES = [("en", "English")]
    for path in ("/", "/help/", "/t/nli/write/"):
        assert '<html lang="en">' in as_alice.get(path, **DE).text
    as_alice.post("/accounts/reauthenticate/", {"password": PASSWORD})
    response = as_alice.post("/account/tokens/", {}, **DE)
    assert '<html lang="en">' in response.text
    client.logout()
    response = client.post("/accounts/login/", {}, **DE)
    assert '<html lang="en">' in response.text


def test_a_page_is_mirrored_for_a_language_from_right_to_left(client, settings, db):
    settings.LANGUAGES = [("en", "English"), ("he", "עברית")]
    page = client.get("/", HTTP_ACCEPT_LANGUAGE="he").text
    translation.deactivate()
    assert '<html lang="he" dir="rtl">' in page


def test_the_api_answers_in_english_and_its_docs_do_not(as_alice, esperanto):
    as_alice.post("/accounts/reauthenticate/", {"password": PASSWORD})
    response = as_alice.post("/api/v1/tokens/", {}, content_type="application/json", **EO)
    assert response["Content-Language"] == "en"
    assert response.json()["error"]["fields"]
    assert "⟦" not in response.text
    assert "⟦" in as_alice.get("/api/v1/docs/", **EO).text


def test_an_error_of_ours_is_told_in_ones_language(client, esperanto, monkeypatch):
    client.raise_request_exception = False
    monkeypatch.setattr("dynabench.pages.find_visible_tasks", lambda user: 1 / 0)
    page = client.get("/", **EO)
    assert page.status_code == 500
    assert '<html lang="eo">' in page.text
    assert "⟦Something went wrong⟧" in page.text
    assert page["X-Request-Id"] in page.text

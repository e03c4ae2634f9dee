"""A language is there when its catalogue is."""

from core.text.languages import list_languages


def test_english_is_always_there(tmp_path):
    assert list_languages(tmp_path / "locale") == [("en", "English")]


def test_a_catalogue_adds_its_language_by_its_own_name(tmp_path):
    for name, file in [("pt_BR", "django.po"), ("de", "django.po"), ("fr", "django.pot")]:
        folder = tmp_path / name / "LC_MESSAGES"
        folder.mkdir(parents=True)
        (folder / file).touch()
    expected = [("en", "English"), ("de", "Deutsch"), ("pt-br", "Português Brasileiro")]
    assert list_languages(tmp_path) == expected


def test_a_language_that_django_does_not_know_goes_by_its_code(tmp_path):
    (tmp_path / "tlh" / "LC_MESSAGES").mkdir(parents=True)
    (tmp_path / "tlh" / "LC_MESSAGES" / "django.po").touch()
    assert list_languages(tmp_path)[1:] == [("tlh", "tlh")]

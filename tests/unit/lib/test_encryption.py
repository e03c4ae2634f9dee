"""Secrets: unreadable as stored, readable with the key or an older one, and with nothing else."""

import pytest

from core.data.encryption import UnreadableSecret, decrypt, encrypt


def test_what_is_encrypted_comes_back_and_never_looks_the_same(settings):
    stored = encrypt("a tökén")
    assert "tök" not in stored
    assert stored != encrypt("a tökén")
    assert decrypt(stored) == "a tökén"
    assert encrypt("") == decrypt("") == ""


def test_an_older_key_still_reads_and_a_foreign_one_does_not(settings):
    stored = encrypt("token")
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another"
    assert decrypt(stored) == "token"
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(UnreadableSecret):
        decrypt(stored)

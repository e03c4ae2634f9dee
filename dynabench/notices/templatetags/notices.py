"""Notices on pages and in mails."""

from django.template import Library

from dynabench.notices import said

register = Library()
register.filter("sentence", said.sentence)
register.filter("address", said.address)

"""A template tag that counts what waits for administrators, for the home page and the admin."""

from django import template

from dynabench.waiting import count_waiting_decisions

register = template.Library()
register.simple_tag(count_waiting_decisions, name="waiting_decisions")

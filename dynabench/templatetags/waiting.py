"""What waits for administrators, on their home page and in the admin."""

from django import template

from dynabench.waiting import waiting_decisions

register = template.Library()
register.simple_tag(waiting_decisions)

"""Small charts inside of tables and tiles."""

from django import template

from core.charts import sparkline, whisker

register = template.Library()
register.filter("sparkline", sparkline)
register.filter("whisker", whisker)

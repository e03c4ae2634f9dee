"""Django's admin with a site of our own; a module of its own, as an app has one configuration."""

from django.contrib.admin.apps import AdminConfig


class DeskConfig(AdminConfig):
    default_site = "tasks.desk.Desk"

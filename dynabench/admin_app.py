"""Django's admin with the site's own admin site class.

It has a module of its own, because Django accepts one default configuration per module.
"""

from django.contrib.admin.apps import AdminConfig


class SiteAdminConfig(AdminConfig):
    default_site = "tasks.admin_site.TaskAdminSite"

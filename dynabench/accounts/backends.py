"""Signing in."""

from allauth.account.auth_backends import AuthenticationBackend

from dynabench.accounts.models import User


class Backend(AuthenticationBackend):  # type: ignore[misc]
    """allauth's, which reads the annotator with the user: nearly each page needs both."""

    def get_user(self, user_id: str) -> User | None:
        """The active user of a session."""
        user = User.objects.select_related("annotator").filter(pk=user_id, is_active=True)
        return user.first()

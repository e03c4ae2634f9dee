"""Signing in."""

from allauth.account.auth_backends import AuthenticationBackend

from dynabench.accounts.models import User


class Backend(AuthenticationBackend):  # type: ignore[misc]
    """allauth's, which reads the annotator with the user: nearly each page needs both."""

    def get_user(self, user_id: str) -> User | None:
        """The active user of a session."""
        try:
            user = User.objects.select_related("annotator").get(pk=user_id)
        except User.DoesNotExist:
            return None
        return user if self.user_can_authenticate(user) else None

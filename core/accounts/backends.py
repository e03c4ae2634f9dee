"""The authentication backend of people who sign in."""

from allauth.account.auth_backends import AuthenticationBackend

from core.accounts.models import User
from core.data.prepared import PreparedRead, Slot

USER_WITH_ANNOTATOR = PreparedRead(
    lambda: User.objects.select_related("annotator").filter(pk=Slot("user"))
)


class Backend(AuthenticationBackend):  # type: ignore[misc]
    """An allauth backend that reads the annotator with the user; most pages need both."""

    def get_user(self, user_id: str) -> User | None:
        """Return the active user of a session; None for an inactive or unknown one."""
        user = USER_WITH_ANNOTATOR.first(user=user_id)
        return user if user and self.user_can_authenticate(user) else None

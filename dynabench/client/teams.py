"""The methods about teams: members, invitations, and models that were submitted for a team."""

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Asking


class Teaming(Asking):
    """The methods about teams."""

    @method
    def teams(self) -> Flow[list[types.Team]]:
        """Return one's teams, with their members."""
        return self._all("/teams/")

    @method
    def make_team(self, name: str) -> Flow[types.Team]:
        """Create a team with an unused name, whose owner one is. Raises Invalid."""
        return self._write("POST", "/teams/", {"name": name})

    @method
    def team_models(self, team_id: int) -> Flow[list[types.Model]]:
        """Return the models that were submitted for a team, also unpublished ones."""
        return self._all(f"/teams/{team_id}/models/")

    @method
    def invite_to_team(self, team_id: int, email: str) -> Flow[types.TeamMember]:
        """Invite an address to a team; for owners. Raises Invalid."""
        return self._write("POST", f"/teams/{team_id}/members/", {"email": email})

    @method
    def change_team_member(self, team_id: int, member_id: int, is_owner: bool) -> Flow[types.Team]:
        """Make a member an owner, or not any more; for owners.

        Raises Refused for the last owner.
        """
        body = {"is_owner": is_owner}
        return self._write("PATCH", f"/teams/{team_id}/members/{member_id}/", body)

    @method
    def remove_team_member(self, team_id: int, member_id: int) -> Flow[None]:
        """Remove a member, or an invitation; for owners. Raises Refused for the last owner."""
        return self._write("DELETE", f"/teams/{team_id}/members/{member_id}/")

    @method
    def leave_team(self, team_id: int) -> Flow[None]:
        """Leave a team; one's models of the team stay its models.

        Raises Refused for the last owner.
        """
        return self._write("POST", f"/teams/{team_id}/leave/")

    @method
    def invitations(self) -> Flow[list[types.TeamInvitation]]:
        """Return the teams that invite one of one's confirmed addresses."""
        return self._all("/me/invitations/")

    @method
    def answer_invitation(self, invitation_id: int, accept: bool) -> Flow[None]:
        """Join the team, or decline."""
        answer = "accept" if accept else "decline"
        return self._write("POST", f"/me/invitations/{invitation_id}/{answer}/")

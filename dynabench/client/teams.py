"""Teams that submit models: members, invitations, and the models that were submitted for them."""

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Asking


class Teaming(Asking):
    """The methods about teams."""

    @method
    def teams(self) -> Flow[list[types.Team]]:
        """One's teams, with their members."""
        return self._all("/teams/")

    @method
    def make_team(self, name: str) -> Flow[types.Team]:
        """Make a team of a name that nobody has; one owns it. Raises Invalid."""
        return self._write("POST", "/teams/", {"name": name})

    @method
    def team_models(self, team_id: int) -> Flow[list[types.Model]]:
        """What was submitted for a team, unpublished models among it."""
        return self._all(f"/teams/{team_id}/models/")

    @method
    def invite_to_team(self, team_id: int, email: str) -> Flow[types.TeamMember]:
        """Invite an address, whose person accepts it or does not; for owners. Raises Invalid."""
        return self._write("POST", f"/teams/{team_id}/members/", {"email": email})

    @method
    def change_team_member(self, team_id: int, member_id: int, is_owner: bool) -> Flow[types.Team]:
        """Make a member an owner, or no longer one; for owners. Raises Refused for the last."""
        body = {"is_owner": is_owner}
        return self._write("PATCH", f"/teams/{team_id}/members/{member_id}/", body)

    @method
    def remove_team_member(self, team_id: int, member_id: int) -> Flow[None]:
        """Take out a member, or an invitation back; for owners. Raises Refused for the last."""
        return self._write("DELETE", f"/teams/{team_id}/members/{member_id}/")

    @method
    def leave_team(self, team_id: int) -> Flow[None]:
        """Leave; one's models of the team stay its models. Raises Refused for the last owner."""
        return self._write("POST", f"/teams/{team_id}/leave/")

    @method
    def invitations(self) -> Flow[list[types.TeamInvitation]]:
        """Teams that invite one of one's confirmed addresses."""
        return self._all("/me/invitations/")

    @method
    def answer_invitation(self, invitation_id: int, accept: bool) -> Flow[None]:
        """Join the team, or turn it down."""
        said = "accept" if accept else "decline"
        return self._write("POST", f"/me/invitations/{invitation_id}/{said}/")

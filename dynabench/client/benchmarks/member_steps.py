"""Plan the people: invite those who are missing, and change roles."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from dynabench.client import types
from dynabench.client.benchmarks.folder import MEMBERS_FILE, Folder, MemberLine
from dynabench.client.benchmarks.site import ChangedMeanwhile, Site
from dynabench.client.benchmarks.steps import Kind, PlannedStep
from dynabench.client.client import DynabenchClient

Role = Literal["owner", "editor", "reviewer", "viewer", "annotator", "writer", "judge"]


def plan_members(
    client: DynabenchClient,
    folder: Folder,
    site: Site | None,
    *,
    is_pruning: bool = False,
    is_inviting_again: bool = False,
) -> Iterator[PlannedStep]:
    """Yield a step for each person of the file, and for each one that only the site has.

    is_pruning: whether to remove people whom the file lacks. is_inviting_again: whether to invite
    people again whose invitation ended.
    """
    if folder.members is None:
        return
    inviter = _Inviter(client, folder.task)
    if site is None:
        # Of a new task only the person who applies is a member. Their own line sends no mail.
        for line in folder.members:
            yield _build_invitation(inviter, line, "")
        return
    if site.members is None or site.invitations is None:
        sentence = "not compared, because only owners see and change members"
        yield PlannedStep(Kind.UNCHANGED, MEMBERS_FILE, sentence)
        return
    planner = _MemberPlanner(
        client, folder, inviter, site.members, site.invitations, own_name=site.own_name
    )
    for line in folder.members:
        yield planner.plan_line(line, is_inviting_again=is_inviting_again)
    yield from planner.plan_others(is_pruning=is_pruning)


def _place(line: MemberLine) -> str:
    return f"{MEMBERS_FILE} line {line.line}"


class _MemberPlanner:
    """The members and invitations of a task, compared with the lines of the file."""

    def __init__(
        self,
        client: DynabenchClient,
        folder: Folder,
        inviter: "_Inviter",
        members: Sequence[types.Member],
        invitations: Sequence[types.Invitation],
        own_name: str,
    ) -> None:
        self.client, self.folder, self.inviter = client, folder, inviter
        self.invitations, self.own_name = invitations, own_name
        self.members = {str(member["email"]).casefold(): member for member in members}
        self.named_ids: set[int] = set()
        """The ids of the members whom the file names."""

    def plan_line(self, line: MemberLine, *, is_inviting_again: bool) -> PlannedStep:
        """Return the step of a person."""
        # People may accept with an account of another address, and the invitation knows which.
        invitation = self._find_invitation(line.email)
        member = self.members.get(line.email.casefold()) or self._find_accepted(invitation)
        if member:
            self.named_ids.add(member["id"])
            return self._plan_role(line, member)
        if invitation is None:
            return _build_invitation(self.inviter, line, "")
        if invitation["state"] == "open":
            if invitation["role"] == line.role:
                sentence = f"{line.email} is invited as {line.role}"
                return PlannedStep(Kind.UNCHANGED, _place(line), sentence)
            return _build_invitation(self.inviter, line, invitation["role"])
        # An owner may have revoked it on purpose, or the person does not want to.
        if is_inviting_again:
            return _build_invitation(self.inviter, line, "")
        reasons = {
            "used": "accepted an invitation and is no longer a member",
            "revoked": "was invited, and an owner revoked the invitation",
            "ended": "did not accept the invitation in time",
        }
        sentence = f"{line.email} {reasons[invitation['state']]}. --invite-again sends a new one"
        return PlannedStep(Kind.UNCHANGED, _place(line), sentence)

    def _find_invitation(self, email: str) -> types.Invitation | None:
        """Return the open invitation to an address, otherwise the newest one, or None."""
        # Newest first, as the site lists them.
        own_invitations = []
        for invitation in self.invitations:
            if invitation["email"].casefold() == email.casefold():
                own_invitations.append(invitation)
        for invitation in own_invitations:
            if invitation["state"] == "open":
                return invitation
        return own_invitations[0] if own_invitations else None

    def _find_accepted(self, invitation: types.Invitation | None) -> types.Member | None:
        """Return the member who accepted an invitation with an account of another address."""
        for email in invitation["accepted_by"] if invitation else ():
            if member := self.members.get(email.casefold()):
                return member
        return None

    def _plan_role(self, line: MemberLine, member: types.Member) -> PlannedStep:
        """Return the step that gives a member the file's role."""
        if member["role"] == line.role:
            return PlannedStep(Kind.UNCHANGED, _place(line), f"{line.email} is {line.role}")
        # The site refuses this, too. Said in the plan, so that nobody wonders at the end.
        owner_count = sum(each["role"] == "owner" for each in self.members.values())
        if member["role"] == "owner" and owner_count == 1:
            sentence = f"make {line.email} {line.role}: a task needs an owner"
            return PlannedStep(Kind.IMPOSSIBLE, _place(line), sentence)
        client, code, old_role = self.client, self.folder.task, member["role"]

        def check() -> None:
            for each in client.members(code):
                if each["id"] == member["id"] and each["role"] == old_role:
                    return
            raise ChangedMeanwhile(f"the role of {line.email}")

        def do() -> str:
            client.change_member(code, member["id"], _read_role(line.role))
            return ""

        sentence = f"make {line.email} {line.role} instead of {old_role}"
        return PlannedStep(Kind.CHANGE, _place(line), sentence, do=do, check=check)

    def plan_others(self, *, is_pruning: bool) -> Iterator[PlannedStep]:
        """Yield a step for each person whom only the site has, or one that counts them."""
        emails = {line.email.casefold() for line in self.folder.members or ()}
        others = []
        for member in self.members.values():
            # Nobody removes themselves with a file.
            is_self = member["name"] == self.own_name
            if member["id"] not in self.named_ids and not is_self:
                others.append(member)
        waiting = []
        for invitation in self.invitations:
            # Links for many people have no address, and are made on the page.
            is_for_one = invitation["state"] == "open" and invitation["email"]
            if is_for_one and invitation["email"].casefold() not in emails:
                waiting.append(invitation)
        if not is_pruning:
            if count := len(others) + len(waiting):
                # Said in each plan, so that nobody thinks the file is complete.
                noun = "person stays" if count == 1 else "people stay"
                sentence = f"{count} more {noun} on the site. --prune removes them"
                yield PlannedStep(Kind.UNCHANGED, MEMBERS_FILE, sentence)
            return
        for member in others:
            yield self._build_removal(member)
        for invitation in waiting:
            yield self._build_revocation(invitation)

    def _build_removal(self, member: types.Member) -> PlannedStep:
        """Return the step that removes a member."""
        client, code = self.client, self.folder.task

        def do() -> str:
            client.remove_member(code, member["id"])
            return ""

        sentence = f"remove {member['email']} ({member['role']})"
        return PlannedStep(Kind.REMOVE, MEMBERS_FILE, sentence, do=do)

    def _build_revocation(self, invitation: types.Invitation) -> PlannedStep:
        """Return the step that revokes an invitation."""
        client, code = self.client, self.folder.task

        def do() -> str:
            client.revoke_invitation(code, invitation["id"])
            return ""

        sentence = f"revoke the invitation of {invitation['email']}"
        return PlannedStep(Kind.REMOVE, MEMBERS_FILE, sentence, do=do)


class _Inviter:
    """The sender of invitations, who looks once at who has one already."""

    def __init__(self, client: DynabenchClient, code: str) -> None:
        self.client, self.code = client, code
        self.known_people: set[tuple[str, str]] | None = None
        """The addresses and roles of members and open invitations; None before the first mail."""

    def invite(self, line: MemberLine) -> None:
        """Invite a person, unless they are a member or have this invitation already."""
        if self.known_people is None:
            # Looked at again: people who were invited before a stop get no second mail.
            self.known_people = self._find_known_people()
        address = line.email.casefold()
        if not self.known_people & {(address, ""), (address, line.role)}:
            self.client.invite(self.code, line.email, _read_role(line.role))

    def _find_known_people(self) -> set[tuple[str, str]]:
        """Return the pairs of address and role. A member's role is "", because any will do."""
        known_people = set()
        for member in self.client.members(self.code):
            known_people.add((str(member["email"]).casefold(), ""))
        for invitation in self.client.task_invitations(self.code):
            if invitation["state"] == "open":
                known_people.add((invitation["email"].casefold(), str(invitation["role"])))
        return known_people


def _build_invitation(inviter: _Inviter, line: MemberLine, former_role: str) -> PlannedStep:
    """Return the step that invites a person. former_role: of an open invitation, which ends."""

    def do() -> str:
        inviter.invite(line)
        return ""

    if former_role:
        sentence = f"invite {line.email} as {line.role} instead of {former_role}"
        return PlannedStep(Kind.CHANGE, _place(line), sentence, do=do)
    return PlannedStep(Kind.CREATE, _place(line), f"invite {line.email} as {line.role}", do=do)


def _read_role(role: str) -> Role:
    """Return a role that the folder's reader has checked."""
    checked_role: Any = role
    return checked_role  # type: ignore[no-any-return]

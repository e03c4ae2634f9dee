"""Teams that submit models: members, invitations, leaving. Submissions import it."""

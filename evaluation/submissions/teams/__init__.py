"""Teams that submit models: members, invitations, leaving. Submissions build on this."""

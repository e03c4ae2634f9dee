"""The ways for people to join a campaign, with one adapter per panel."""

"""What votes come to: consensus rows, policies and their preview, the owners' review."""

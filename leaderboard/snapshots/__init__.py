"""Snapshots of boards: taking and showing them, previews, and what changed between two."""

"""What a person is given to write about: a context, a goal, a challenge. For attempts and pages."""

"""The ranking of people, weekly goals and badges."""

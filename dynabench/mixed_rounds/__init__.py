"""Mixed rounds: people, people with help, drafts of a machine and machines, compared fairly."""

"""Running a site: its commands, backups, what operators watch, and the demo."""

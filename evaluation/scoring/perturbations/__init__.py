"""Change texts: each kind of perturbation proposes edits of a text."""

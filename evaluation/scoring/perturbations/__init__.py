"""How texts are changed: each kind of perturbation proposes edits of a text."""

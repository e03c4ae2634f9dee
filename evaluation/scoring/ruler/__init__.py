"""One ruler for all rounds: properties of items, anchors, and scores that a model never earned."""

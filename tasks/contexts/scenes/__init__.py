"""Pictures of the official task vqa: scenes of shapes, drawn by program, and questions on them."""

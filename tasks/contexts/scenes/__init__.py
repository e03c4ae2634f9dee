"""Pictures for the official task vqa: generated scenes of shapes, and questions about them."""

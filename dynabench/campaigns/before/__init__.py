"""What comes before the work: questions, a guided tour, a test of gold items."""

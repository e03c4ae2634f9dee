"""What those who may read a task say to each other about its examples."""

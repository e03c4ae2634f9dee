"""API views of datasets, evaluation sets, submitted models and their measurements."""

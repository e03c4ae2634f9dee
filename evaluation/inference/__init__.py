"""One evaluation without a database: requests out, answers strictly read, scores."""

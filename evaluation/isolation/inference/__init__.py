"""One evaluation without a database: examples out, answers checked, scores. For runs and checks."""

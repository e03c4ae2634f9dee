"""The steps before the work: a questionnaire, a guided tour and a test of gold items."""

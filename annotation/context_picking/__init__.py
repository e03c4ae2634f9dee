"""Assignment of contexts, goals and challenges to writers, for attempts and pages."""

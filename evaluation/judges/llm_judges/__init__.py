"""Language models as judges of free-text answers: chosen, asked, calibrated against people.

A judge's score is always shown with the judge's agreement with people. It affects no ranking until
this agreement is measured on enough examples.
"""

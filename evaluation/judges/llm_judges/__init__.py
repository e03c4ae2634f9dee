"""Language models as judges of free answers: chosen, asked, calibrated against people.

A score of such a judge never stands without its agreement with people, and ranks nobody before that
is measured on enough examples.
"""

"""Effects of arms with intervals clustered by person and context, for many studies at once. Pure.

An effect is the difference of two arms' means within strata (least squares with a mean for each
stratum). Its variance is clustered by person and by context (Cameron, Gelbach and Miller 2011),
with a small-sample factor for each arm and Satterthwaite's degrees of freedom.
docs/statistics.md has the formulas.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import stdtr, stdtrit

MIN_PART = 0.8
"""The least part of the variance by people that the variance by both may be."""

Values = NDArray[np.float64]
Codes = NDArray[np.intp]


class Layout(NamedTuple):
    """Who gave each value on what, the same in all studies. Each has the shape (values,).

    contexts: None if values are not about contexts. strata: what is compared like with like.
    """

    people: Codes
    contexts: Codes | None
    strata: Codes


class Effects(NamedTuple):
    """Differences of two arms, one per study: shapes (studies,).

    A standard error is NaN where a study has too few people or contexts to compute it.
    """

    difference: Values
    standard_error: Values
    degrees_of_freedom: Values

    @property
    def p(self) -> Values:
        """Return the two-sided p of each difference. NaN where there is no standard error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(self.difference) / self.standard_error
        p_values: Values = 2 * stdtr(self.degrees_of_freedom, -t)
        return p_values

    @property
    def half_width(self) -> Values:
        """Return the half-width of each 95% interval."""
        half_widths: Values = stdtrit(self.degrees_of_freedom, 0.975) * self.standard_error
        return half_widths


def estimate_effects(
    values: Values, is_treated: NDArray[np.bool_], is_included: NDArray[np.bool_], layout: Layout
) -> Effects:
    """Estimate the difference between the treated and the other included values of each study.

    values, is_treated, is_included: shapes (studies, values). What is not included counts nowhere,
    whatever its value.
    """
    # Weights keep one layout for all studies, although each leaves out other people.
    weights = is_included.astype(float)
    strata = _build_indicator(layout.strata)
    stratum_sizes = weights @ strata
    # An effect is compared within strata, so each stratum's mean is taken out of both sides.
    treatment = _center(is_treated * weights, weights, strata, stratum_sizes, layout.strata)
    centered = _center(np.where(is_included, values, 0.0), weights, strata, stratum_sizes,
                       layout.strata)  # fmt: skip
    information = (treatment**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = (treatment * centered).sum(axis=1) / information
        residuals = centered - difference[:, None] * treatment
        influence = treatment * residuals / information[:, None]
    variance, degrees = _compute_variance(
        influence, weights * is_treated, weights * ~is_treated, layout
    )
    is_known = (degrees > 0) & (information > 0) & (variance > 0)
    standard_error = np.sqrt(np.where(is_known, variance, np.nan))
    return Effects(
        difference=np.where(information > 0, difference, np.nan),
        standard_error=standard_error,
        # Student's t has no value below one degree of freedom.
        degrees_of_freedom=np.maximum(degrees, 1.0),
    )


def _center(
    values: Values, weights: Values, indicator: csr_array, sizes: Values, codes: Codes
) -> Values:
    """Subtract the stratum's weighted mean from each included value. Others become 0."""
    means = (values @ indicator) / np.maximum(sizes, 1)
    centered: Values = weights * (values - means[:, codes])
    return centered


def _compute_variance(
    influence: Values, is_treated: Values, is_other: Values, layout: Layout
) -> tuple[Values, Values]:
    """Return the variance of each difference, and its degrees of freedom.

    influence: what each value adds to the difference, shape (studies, values). Both are NaN or 0
    where an arm has only one cluster, which says nothing about how much clusters differ.
    """
    arms = (is_treated, is_other)
    variance, degrees = _sum_clusters(influence, arms, layout.people)
    if layout.contexts is None:
        return variance, degrees
    context_variance, context_degrees = _sum_clusters(influence, arms, layout.contexts)
    pairs = layout.people * (layout.contexts.max() + 1) + layout.contexts
    pair_codes = np.unique(pairs, return_inverse=True)[1]
    pair_variance, _ = _sum_clusters(influence, arms, pair_codes)
    # People and contexts both contain the pairs of the two, so these are subtracted once.
    both = variance + context_variance - pair_variance
    # A part's degrees of freedom count by how much of the variance it makes (Satterthwaite 1946).
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = variance**2 / degrees + context_variance**2 / context_degrees
        joint_degrees = both**2 / inverse
    # `both` is an estimate that can be far too small, even negative: then the people alone decide.
    is_plausible = both > MIN_PART * variance
    return np.where(is_plausible, both, variance), np.where(is_plausible, joint_degrees, degrees)


def _sum_clusters(
    influence: Values, arms: tuple[Values, Values], codes: Codes
) -> tuple[Values, Values]:
    """Return the clustered variance by one kind of cluster, and its degrees of freedom.

    arms: for each of the two arms, 1 where a value belongs to it, else 0.
    """
    indicator = _build_indicator(codes)
    counts = []
    corrected = np.zeros_like(influence)
    # Where a factor is undefined an arm has one cluster, and the caller gives no interval.
    with np.errstate(divide="ignore", invalid="ignore"):
        for arm in arms:
            clusters = (arm @ indicator > 0).sum(axis=1).astype(float)
            counts.append(clusters)
            # An arm's mean is nearer to its own clusters than the true mean is, by this factor.
            corrected += arm * influence * np.sqrt(clusters / (clusters - 1))[:, None]
    variance: Values = ((corrected @ indicator) ** 2).sum(axis=1)
    all_clusters = ((arms[0] + arms[1]) @ indicator > 0).sum(axis=1)
    # The smaller arm limits what is known. Within people, both arms have the same clusters.
    degrees: Values = np.minimum(2 * np.minimum(*counts) - 2, all_clusters - 1)
    return variance, degrees


def _build_indicator(codes: Codes) -> csr_array:
    """Return the matrix whose column g marks the values of cluster g: shape (values, clusters)."""
    # Sparse, as each value belongs to one of many clusters.
    rows = np.arange(len(codes))
    return csr_array((np.ones(len(codes)), (rows, codes)), shape=(len(codes), codes.max() + 1))


def correct_for_several(p_values: Values) -> Values:
    """Correct the p values of each study's comparisons for their number (Holm 1979).

    p_values: shape (studies, comparisons). NaN counts as a comparison that found nothing.
    """
    p_values = np.where(np.isnan(p_values), 1.0, p_values)
    order = np.argsort(p_values, axis=1)
    sorted_p = np.take_along_axis(p_values, order, axis=1)
    # The smallest is multiplied by the number of comparisons, the next by one less, and so on.
    multiplied = sorted_p * np.arange(p_values.shape[1], 0, -1)
    # No comparison is corrected to less than one with a smaller p.
    stepped = np.minimum(np.maximum.accumulate(multiplied, axis=1), 1.0)
    corrected: Values = np.empty_like(stepped)
    np.put_along_axis(corrected, order, stepped, axis=1)
    return corrected

"""Store a ruler as bytes, so that a new model is predicted without fitting anything again. Pure."""

import io
from typing import get_args

import numpy as np

from evaluation.scoring.ruler.linking import Ruler
from evaluation.scoring.ruler.prediction import AnchoredPredictor, Trend, TrendShape


def pack_ruler(ruler: Ruler) -> bytes:
    """Return the ruler as a NumPy archive. `unpack_ruler` reads it."""
    predictor, buffer = ruler.predictor, io.BytesIO()
    np.savez_compressed(
        buffer,
        anchors=ruler.anchors,
        intercepts=ruler.intercepts,
        slopes=ruler.slopes,
        half_widths=ruler.half_widths,
        even_half_widths=ruler.even_half_widths,
        known_answers=predictor.known_answers.astype(bool),
        median_difference=np.array(predictor.median_difference),
        # In the order of `TrendShape`, in which `fit_predictor` makes them.
        trends=np.array([(trend.centre, trend.scale) for trend in predictor.trends]),
        trend_coefficients=np.array(predictor.trend_coefficients),
        kernel_coefficients=np.array(predictor.kernel_coefficients),
    )
    return buffer.getvalue()


def unpack_ruler(content: bytes) -> Ruler:
    """Return the ruler that `pack_ruler` stored."""
    # Without pickle: the bytes are arrays of numbers, whatever somebody may have written there.
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        trends = tuple(
            Trend(shape, float(centre), float(scale))
            for shape, (centre, scale) in zip(get_args(TrendShape), arrays["trends"], strict=True)
        )
        predictor = AnchoredPredictor(
            # Stored as bits, but multiplied as numbers.
            known_answers=arrays["known_answers"].astype(float),
            median_difference=float(arrays["median_difference"]),
            trends=trends,
            trend_coefficients=tuple(arrays["trend_coefficients"]),
            kernel_coefficients=tuple(arrays["kernel_coefficients"]),
        )
        return Ruler(
            arrays["anchors"],
            predictor,
            arrays["intercepts"],
            arrays["slopes"],
            arrays["half_widths"],
            arrays["even_half_widths"],
        )

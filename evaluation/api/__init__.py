"""The API's views of data, evaluation sets, submitted models and what was measured of them."""

"""Measurements to parameters: values with covariance, the range they hold in, and how good they are."""

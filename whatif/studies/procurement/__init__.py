"""Procurement studies: bids for a machine, compared over a mix of applications within limits."""

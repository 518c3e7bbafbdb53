"""Simulation of scenarios and traces, message by message."""

"""Measures the speed of the project against alternatives."""

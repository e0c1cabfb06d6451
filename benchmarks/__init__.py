"""Measures the project's speed and memory against alternatives, and the quality of its classification and jobs."""

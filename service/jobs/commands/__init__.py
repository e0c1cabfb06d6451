"""Commands that show jobs and run detectors."""

"""The pages of jobs: the list, and one job with its evidence and outcome."""

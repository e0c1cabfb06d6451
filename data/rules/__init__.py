"""Classifies requests using tables of rules; every row cites the evidence for it."""

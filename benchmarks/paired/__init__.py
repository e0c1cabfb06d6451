"""Compares this tree with another revision in pairs, to detect cases that a change made slower."""

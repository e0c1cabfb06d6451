"""Compares this tree with another revision in pairs, to detect cases made slower by a change."""

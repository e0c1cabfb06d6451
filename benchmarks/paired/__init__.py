"""Compares this tree with another revision in pairs, to see whether a change has made a case slower."""

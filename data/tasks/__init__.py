"""Tasks that merge, judge, reclassify, expire and erase stored visits."""

"""A lake is kept in order: merged, reclassified, erased from, checked, backed up."""

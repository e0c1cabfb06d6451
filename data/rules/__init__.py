"""A request becomes a classification: fact tables with evidence, and how they are applied."""

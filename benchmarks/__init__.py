"""How fast the project is, measured beside what people would use instead."""

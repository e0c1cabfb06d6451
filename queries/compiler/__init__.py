"""Writes reports, detectors and rollup relations in Spark SQL, from the SQL files of this floor.

A cluster has no rollups, so every relation counts visits. Each text is one statement over the relations of
INPUTS, with the fields of Scope as named parameters. Needs the extra `cluster`.

What DuckDB alone knows, such as the names behind `*`, is written out as DuckDB describes it (names.py). Table macros
become CTEs and scalar macros are expanded (statements.py). Constructs of DuckDB become those that Spark and Sail read
alike (rewrites.py, selects.py). Any other construct that was not checked is an error (constructs.py).
"""

from queries.compiler.constructs import Unsupported
from queries.compiler.statements import INPUTS, Compiler

__all__ = ["INPUTS", "Compiler", "Unsupported"]

"""Translates this floor's SQL files for reports, detectors and rollup relations into Spark SQL.

A cluster has no rollups, so every relation counts visits. Each translation is one statement that reads the relations in
INPUTS, with `behaviour`, `aside` and the fields of Scope as named parameters. Needs the extra `cluster`.

Names that only DuckDB can resolve, such as the columns of `*`, are written out as DuckDB describes them (names.py).
Table macros become CTEs and scalar macros are expanded (statements.py). DuckDB's constructs are rewritten into
constructs that Spark and Sail interpret alike (rewrites.py, selects.py). Any construct that has not been checked is an
error (constructs.py).
"""

from queries.compiler.constructs import Unsupported
from queries.compiler.statements import INPUTS, Compiler

__all__ = ["INPUTS", "Compiler", "Unsupported"]

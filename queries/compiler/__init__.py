"""Writes every report, detector and rollup relation in the words of Apache Spark, from the SQL files of this floor.

`python -m queries.compiler` writes queries/spark/, which is checked in: nothing imports this package at run time. On a
cluster there are no rollups, so every relation counts visits. Each text is one statement over the relations of
`statements.INPUTS`, with the fields of Scope as named parameters.

What DuckDB alone knows, such as the names behind `*`, is written out as DuckDB describes it (names.py). Table macros
become CTEs and scalar macros are expanded (statements.py). Constructs of DuckDB become those that Spark and Sail read
alike (rewrites.py, selects.py). What is left and was never looked at is an error (constructs.py).
"""

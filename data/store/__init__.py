"""Storage: the Parquet files of a lake, the SQLite manifest that lists them, and transactions over both."""

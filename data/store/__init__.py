"""What lies on disk: Parquet files, the SQLite manifest that knows them, and how both change together."""

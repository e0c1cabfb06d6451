"""A lake's Parquet files contain only the values of their own rows."""

import pyarrow as pa
import pyarrow.parquet as pq

from data.disk.files import write_parquet


def test_a_file_has_no_values_from_rows_in_other_files(tmp_path):
    both = pa.table({"path": pa.array(["/kept", "/erased", None]).dictionary_encode()})
    kept = both.filter(pa.array([True, False, True]))
    write_parquet([kept], kept.schema, tmp_path / "kept.parquet", compression="none", statistics=["path"])
    assert pq.read_table(tmp_path / "kept.parquet")["path"].to_pylist() == ["/kept", None]
    assert b"/erased" not in (tmp_path / "kept.parquet").read_bytes()

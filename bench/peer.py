#!/usr/bin/env python3
"""One peer converts one file to Parquet with declared types; prints the seconds of its own work.

    peer.py PEER jsonl|csv INPUT OUTPUT_FOLDER

Peers: duckdb (order kept), duckdb_unordered, polars, pyarrow, dlt. Two threads, zstd level 3. Each is set up
as its documentation says for declared types; what a peer cannot convert by itself is read as text and
converted with its own functions.
"""

import os
import sys
import time

THREADS = 2
SQL_TYPES = {
    "id": "BIGINT", "title": "VARCHAR", "url": "VARCHAR", "city": "VARCHAR", "price": "DECIMAL(12,2)", "area": "DOUBLE",
    "rooms": "BIGINT", "owner": "BOOLEAN", "posted_at": "TIMESTAMPTZ", "floor": "BIGINT", "description": "VARCHAR",
}
NESTED_TYPES = {"tags": "VARCHAR[]", "agent": "STRUCT(name VARCHAR, phone VARCHAR)"}


def duckdb(form: str, source: str, target: str, ordered: bool = True) -> None:
    import duckdb as engine
    con = engine.connect()
    con.execute(f"SET threads = {THREADS}; SET enable_progress_bar = false; SET TimeZone = 'UTC'; "
                f"SET preserve_insertion_order = {str(ordered).lower()}")
    types = SQL_TYPES | NESTED_TYPES if form == "jsonl" else SQL_TYPES
    columns = ", ".join(f"'{n}': '{t}'" for n, t in types.items())
    if form == "jsonl":
        table = f"read_json('{source}', format = 'newline_delimited', columns = {{{columns}}})"
    else:
        table = f"read_csv('{source}', header = true, delim = ',', quote = '\"', escape = '\"', columns = {{{columns}}})"
    con.execute(f"COPY (SELECT *, 'rentals' AS source FROM {table}) TO '{target}/out.parquet' "
                "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3)")


def polars(form: str, source: str, target: str) -> None:
    import polars as pl
    text = {"price", "posted_at"} if form == "jsonl" else {"posted_at"}
    kinds = {"BIGINT": pl.Int64, "VARCHAR": pl.String, "DOUBLE": pl.Float64, "BOOLEAN": pl.Boolean,
             "DECIMAL(12,2)": pl.Decimal(12, 2), "TIMESTAMPTZ": pl.String}
    schema = {n: pl.String if n in text else kinds[t] for n, t in SQL_TYPES.items()}
    if form == "jsonl":
        schema |= {"tags": pl.List(pl.String), "agent": pl.Struct({"name": pl.String, "phone": pl.String})}
        frame = pl.scan_ndjson(source, schema=schema)
        frame = frame.with_columns(pl.col("price").cast(pl.Decimal(12, 2)))
    else:
        frame = pl.scan_csv(source, schema=schema)
    frame = frame.with_columns(pl.col("posted_at").str.to_datetime("%+", time_unit="us", time_zone="UTC"),
                               pl.lit("rentals").alias("source"))
    frame.sink_parquet(os.path.join(target, "out.parquet"), compression="zstd", compression_level=3)


def pyarrow(form: str, source: str, target: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet as pq
    pa.set_cpu_count(THREADS)
    kinds = {"BIGINT": pa.int64(), "VARCHAR": pa.string(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_(),
             "DECIMAL(12,2)": pa.decimal128(12, 2), "TIMESTAMPTZ": pa.timestamp("us", "UTC")}
    types = {n: kinds[t] for n, t in SQL_TYPES.items()}
    if form == "jsonl":
        # Its JSON reader takes decimals and instants with an offset from texts only.
        types |= {"price": pa.float64(), "posted_at": pa.string(), "tags": pa.list_(pa.string()),
                  "agent": pa.struct([("name", pa.string()), ("phone", pa.string())])}
        options = pa.json.ParseOptions(explicit_schema=pa.schema(types), unexpected_field_behavior="error")
        batches = pa.json.open_json(source, parse_options=options)
    else:
        batches = pa.csv.open_csv(source, parse_options=pa.csv.ParseOptions(newlines_in_values=True),
                                  convert_options=pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True,
                                                                        quoted_strings_can_be_null=False))
    final = pa.schema({n: kinds.get(SQL_TYPES.get(n), t) for n, t in types.items()} | {"source": pa.string()})
    with pq.ParquetWriter(os.path.join(target, "out.parquet"), final, compression="zstd", compression_level=3) as out:
        for batch in batches:
            columns = []
            for name, column in zip(batch.schema.names, batch.columns):
                if form == "jsonl" and name == "price":
                    column = pc.round(column, 2).cast(pa.decimal128(12, 2), safe=False)
                elif form == "jsonl" and name == "posted_at":
                    column = pc.strptime(column, "%Y-%m-%dT%H:%M:%S%z", "us").cast(pa.timestamp("us", "UTC"))
                columns.append(column)
            columns.append(pa.repeat("rentals", batch.num_rows))
            out.write_batch(pa.record_batch(columns, schema=final))


def dlt(form: str, source: str, target: str) -> None:
    import dlt as tool
    from dlt.sources.filesystem import filesystem, read_jsonl
    assert form == "jsonl", "dlt is measured with JSON lines alone"
    os.environ["RUNTIME__LOG_LEVEL"] = "ERROR"
    os.environ["NORMALIZE__WORKERS"] = str(THREADS)
    pipeline = tool.pipeline("bench", destination=tool.destinations.filesystem(f"file://{target}"), dataset_name="d",
                             pipelines_dir=os.path.join(target, ".state"))
    folder, name = os.path.split(source)
    rows = (filesystem(bucket_url=f"file://{folder}", file_glob=name) | read_jsonl()).with_name("rentals")
    rows.apply_hints(columns={n: {"data_type": t} for n, t in {
        "id": "bigint", "price": "decimal", "area": "double", "posted_at": "timestamp", "floor": "bigint"}.items()})
    pipeline.run(rows, loader_file_format="parquet")


PEERS = {
    "duckdb": duckdb,
    "duckdb_unordered": lambda form, source, target: duckdb(form, source, target, ordered=False),
    "polars": polars,
    "pyarrow": pyarrow,
    "dlt": dlt,
}

if __name__ == "__main__":
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    peer, form, source, target = sys.argv[1:]
    # What is imported is not work: it is loaded before the clock starts.
    __import__(peer.removesuffix("_unordered"))
    started = time.perf_counter()
    PEERS[peer](form, source, target)
    print(time.perf_counter() - started)

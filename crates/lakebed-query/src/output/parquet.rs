//! A Parquet file in zstd, with the result's own types.

use std::io::Write;
use std::sync::Arc;

use lakebed::{Error, Result};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::result::QueryResult;

fn failed(e: ParquetError) -> Error {
    match e {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(io) => super::write_error(*io),
            Err(other) => {
                Error::unavailable(format!("write the rows as Parquet: {other}")).caused_by(other)
            }
        },
        ParquetError::NYI(_) | ParquetError::ArrowError(_) => {
            Error::invalid(format!("write the rows as Parquet: {e}"))
                .hint("cast the column to a type that Parquet has, such as VARCHAR or BIGINT")
                .caused_by(e)
        }
        other => Error::unavailable(format!("write the rows as Parquet: {other}")).caused_by(other),
    }
}

/// Writes all rows; returns how many. What was written before an error is not a Parquet file.
pub async fn write_parquet(mut result: QueryResult, out: &mut (dyn Write + Send)) -> Result<u64> {
    let level = ZstdLevel::try_new(3).map_err(failed)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .build();
    let schema = Arc::clone(result.schema());
    let mut writer = ArrowWriter::try_new(&mut *out, schema, Some(properties)).map_err(failed)?;
    let mut rows: u64 = 0;
    while let Some(batch) = result.next_batch().await? {
        rows += u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
        writer.write(&batch).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    out.flush().map_err(super::write_error)?;
    Ok(rows)
}

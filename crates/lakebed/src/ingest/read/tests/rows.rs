//! Parquet inputs.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use super::*;
use crate::ingest::read::Form;
use crate::spec::InputFormat;

fn parquet() -> Vec<u8> {
    let mut file = Vec::new();
    let batch = |from: i64| {
        let numbers: Int64Array = (from..from + 1000).collect();
        let texts: StringArray = (from..from + 1000).map(|n| Some(format!("t{n}"))).collect();
        RecordBatch::try_from_iter([
            ("n", Arc::new(numbers) as Arc<dyn Array>),
            ("t", Arc::new(texts)),
        ])
        .unwrap()
    };
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(700))
        .build();
    let mut writer = ArrowWriter::try_new(&mut file, batch(0).schema(), Some(properties)).unwrap();
    writer.write(&batch(0)).unwrap();
    writer.write(&batch(1000)).unwrap();
    writer.close().unwrap();
    file
}

fn numbers(chunks: &[Chunk]) -> Vec<i64> {
    let mut all = Vec::new();
    for chunk in chunks {
        let ChunkBody::Batch(batch) = &chunk.body else {
            panic!("rows expected")
        };
        assert_eq!(chunk.first_line, all.len() as u64 + 1);
        let column = batch
            .column(0)
            .as_any()
            .downcast_ref::<Int64Array>()
            .unwrap();
        all.extend(column.values().iter().copied());
    }
    all
}

#[test]
fn rows_arrive_in_order_from_files_and_packed_files() {
    let bytes = parquet();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&bytes).unwrap();
    let packed = encoder.finish().unwrap();
    for (name, content) in [("a.parquet", &bytes), ("a.parquet.gz", &packed)] {
        for size in [1, 1000, 1 << 20] {
            let (chunks, facts) = input(name, content).read(&options(size)).unwrap();
            assert_eq!(numbers(&chunks), (0..2000).collect::<Vec<_>>());
            assert_eq!(facts.content, crate::name::ContentHash::of(&bytes));
            assert_eq!(facts.bytes, bytes.len() as u64);
            assert_eq!(
                (facts.form, facts.records_hint),
                (Form::Parquet, Some(2000))
            );
            assert!(facts.warnings.is_empty());
        }
    }
    let (_, facts) = input("a.csv", &bytes).read(&options(1 << 20)).unwrap();
    assert_eq!(facts.form, Form::Parquet);
    assert_eq!(facts.warnings.len(), 1);
}

#[test]
fn a_cut_file_fails_and_so_does_one_that_is_none() {
    let bytes = parquet();
    for end in [1, 3, 4, 8, 100, bytes.len() / 2, bytes.len() - 1] {
        failed(&input("a.parquet", &bytes[..end]), &options(1 << 20));
    }
    failed(&input("a.parquet", b"k\n1\n"), &options(100));
    let options = with(100, |s| s.format = Some(InputFormat::Csv));
    failed(&input("a.parquet", &bytes), &options);
}

#[test]
fn damaged_pages_never_crash() {
    let bytes = parquet();
    for at in (4..bytes.len()).step_by(bytes.len() / 150) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x55;
        let result = input("a.parquet", &bytes).read(&options(1 << 20));
        assert!(result.is_ok() || result.unwrap_err().kind() == ErrorKind::CorruptData);
    }
}

//! Data files attacked: their encodings, statistics and bytes.

use super::*;
use crate::ingest::chunk::{Chunk, ChunkBody};
use crate::ingest::convert::Plan;
use crate::ingest::decode::{DecodeOptions, Decoder, Mismatch};
use crate::spec::{ReadSpec, SchemaSpec, arrow_schema};
use crate::store::LocalStore;
use arrow_array::{Int64Array, StringArray};
use parquet::basic::Encoding;
use parquet::file::reader::{FileReader, SerializedFileReader};

fn encode(encoder: &GroupEncoder, batches: &[RecordBatch]) -> EncodedGroup {
    let mut group = encoder.open().unwrap();
    batches.iter().for_each(|b| group.write(b).unwrap());
    group.close().unwrap()
}

fn batch(schema: &SchemaRef, n: i64) -> RecordBatch {
    let count = usize::try_from(n).unwrap();
    RecordBatch::try_new(
        Arc::clone(schema),
        vec![
            Arc::new(Int64Array::from_iter_values(0..n)),
            Arc::new(StringArray::from_iter_values(
                (0..n).map(|i| format!("https://example.org/a/{i}")),
            )),
            Arc::new(StringArray::from_iter_values(
                (0..n).map(|i| ["甲", "乙"][usize::from(i % 2 == 0)]),
            )),
            Arc::new(StringArray::from(vec!["weibo"; count])),
            Arc::new(StringArray::from(vec![None::<&str>; count])),
        ],
    )
    .unwrap()
}

/// What [`batch`] has beside the columns of the lake.
fn fields() -> Vec<FieldSpec> {
    let named = [
        ("id", FieldType::Int),
        ("url", FieldType::String),
        ("kind", FieldType::String),
    ];
    let numbered = named.into_iter().zip(1..);
    numbered
        .map(|((name, t), id)| FieldSpec::new(id, name, t))
        .collect()
}

#[test]
fn encodings_follow_the_sample_and_ids_reach_the_file() {
    let fields = fields();
    let schema = Arc::new(arrow_schema(&fields));
    let rows = batch(&schema, 1000);
    let dir = tempfile::tempdir().unwrap();
    let store = LocalStore::new(dir.path());
    let encoder =
        GroupEncoder::new(Arc::clone(&schema), &fields, std::slice::from_ref(&rows)).unwrap();
    let path = StorePath::new("_lake/stage/a/x").unwrap();
    let mut writer = DataFileWriter::create(&store, path.clone(), &encoder).unwrap();
    for _ in 0..2 {
        writer
            .append(encode(&encoder, std::slice::from_ref(&rows)))
            .unwrap();
    }
    let staged = writer.finish().unwrap();
    let bytes = std::fs::read(store.local_path(&path).unwrap()).unwrap();
    assert_eq!(staged.rows, 2000);
    assert_eq!(staged.bytes, bytes.len() as u64);
    assert_eq!(staged.blake3, ContentHash::of(&bytes));
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let meta = reader.metadata();
    assert_eq!(meta.num_row_groups(), 2);
    let id = |i: usize| {
        meta.file_metadata()
            .schema_descr()
            .column(i)
            .self_type()
            .get_basic_info()
            .id()
    };
    assert_eq!((id(0), id(1), id(2)), (1, 2, 3));
    let has = |i: usize, e: Encoding| meta.row_group(0).column(i).encodings().any(|x| x == e);
    assert!(has(0, Encoding::DELTA_BINARY_PACKED));
    assert!(has(1, Encoding::DELTA_BYTE_ARRAY));
    assert!(has(2, Encoding::RLE_DICTIONARY));
    let stats = meta.row_group(1).column(0).statistics().unwrap();
    assert_eq!(stats.null_count_opt(), Some(0));
}

#[test]
fn what_zstd_cannot_pack_is_stored_as_it_is() {
    let fields = fields();
    let schema = Arc::new(arrow_schema(&fields));
    // Digits of a hash: neither they nor their differences have a pattern.
    let scattered = |i: i64| {
        let hash = ContentHash::of(&i.to_le_bytes());
        i64::from_str_radix(&hash.as_str()[..15], 16).unwrap()
    };
    let rows = |n: i64| {
        let whole = batch(&schema, n);
        let mut columns = whole.columns().to_vec();
        columns[0] = Arc::new(Int64Array::from_iter_values((n..2 * n).map(scattered)));
        RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
    };
    let packed = |rows: &[RecordBatch]| -> Vec<bool> {
        let encoder = GroupEncoder::new(Arc::clone(&schema), &fields, rows).unwrap();
        let chunks = encode(&encoder, rows).chunks;
        let packed =
            |c: &ArrowColumnChunk| c.close().metadata.compression() != Compression::UNCOMPRESSED;
        chunks.iter().map(packed).collect()
    };
    // Texts are worth it; `_extra` and `source` hold nothing that would tell.
    let varied = [rows(2000), rows(3000)];
    assert_eq!(packed(&varied), [false, true, true, true, true]);
    // Too few rows tell nothing.
    assert_eq!(packed(&[rows(100)]), [true; 5]);
}

/// One row per value; every text of it holds the value, so does `_extra`.
fn people(fields: &[FieldSpec], values: &[&str]) -> RecordBatch {
    let schema = SchemaSpec {
        fields: fields.to_vec(),
        ..toml::from_str("dataset = \"clean/p\"\nversion = 1\nfield = []").unwrap()
    };
    let plan = Plan::compile(&schema, &ReadSpec::default()).unwrap();
    let options = DecodeOptions::new(Mismatch::Extra);
    let source = "people".parse().unwrap();
    let mut decoder = Decoder::new(Arc::new(plan), &source, options);
    let line = |v: &&str| {
        format!(
            "{{\"open\":\"open-{v}\",\"phone\":\"{v}\",\"who\":{{\"name\":\"{v}\",\"nick\":\"nick-{v}\",\
             \"odd\":\"{v}\"}},\"all\":[{{\"k\":\"{v}\"}}],\"map\":{{\"{v}\":\"{v}\"}}}}\n"
        )
    };
    let text: String = values.iter().map(line).collect();
    let chunk = Chunk {
        input: 0,
        first_line: 1,
        offset: 0,
        body: ChunkBody::Lines(text.into_bytes()),
    };
    let mut decoded = decoder.decode(&chunk, "p.jsonl").unwrap();
    assert_eq!(
        decoded.stats.rows,
        values.len() as u64,
        "{:?}",
        decoded.rejects
    );
    decoded.batches.remove(0)
}

#[test]
fn no_footer_holds_a_personal_value() {
    let spec: SchemaSpec = toml::from_str(
        r#"
dataset = "clean/p"
version = 1
field = [
  { id = 1, name = "open", type = "string" },
  { id = 2, name = "phone", type = "string", privacy = "personal" },
  { id = 3, name = "who", type = "struct", field = [
{ id = 4, name = "name", type = "string", privacy = "personal" },
{ id = 5, name = "nick", type = "string" },
  ] },
  { id = 6, name = "all", type = "list<struct>", privacy = "personal", field = [
{ id = 7, name = "k", type = "string" },
  ] },
  { id = 8, name = "map", type = "map<string>", privacy = "personal" },
]
"#,
    )
    .unwrap();
    let rows = people(&spec.fields, &["SECRET-1", "SECRET-2"]);
    let write = |fields: &[FieldSpec]| {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        let rows = std::slice::from_ref(&rows);
        let encoder = GroupEncoder::new(rows[0].schema(), fields, rows).unwrap();
        let path = StorePath::new("_lake/stage/a/x").unwrap();
        let mut writer = DataFileWriter::create(&store, path.clone(), &encoder).unwrap();
        writer.append(encode(&encoder, rows)).unwrap();
        writer.finish().unwrap();
        let bytes = std::fs::read(store.local_path(&path).unwrap()).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).unwrap();
        let group = reader.metadata().row_group(0).clone();
        // Pages end where the indexes and the footer begin.
        let ends = group
            .columns()
            .iter()
            .map(|c| c.byte_range())
            .map(|(at, n)| at + n);
        let pages = usize::try_from(ends.max().unwrap()).unwrap();
        (group, String::from_utf8_lossy(&bytes[pages..]).into_owned())
    };
    let (group, tail) = write(&spec.fields);
    // `open-` and `nick-` values stand there, each on its own; nothing else may.
    let rest = tail.replace("open-SECRET", "").replace("nick-SECRET", "");
    assert!(rest.len() < tail.len());
    assert!(!rest.contains("SECRET"), "{rest}");
    for column in group.columns() {
        let path = column.column_path().string();
        let is_open = ["open", "who.nick", "source"].contains(&path.as_str());
        assert_eq!(column.statistics().is_some(), is_open, "{path}");
        assert_eq!(column.column_index_offset().is_some(), is_open, "{path}");
    }
    // The same rows under a schema without personal fields: the check can fail.
    let mut public = spec.fields.clone();
    for field in &mut public {
        field.privacy = None;
        field.fields.iter_mut().for_each(|f| f.privacy = None);
    }
    let (group, tail) = write(&public);
    let rest = tail.replace("open-SECRET", "").replace("nick-SECRET", "");
    assert!(rest.contains("SECRET"));
    assert!(group.columns().iter().all(|c| c.statistics().is_some()));
}

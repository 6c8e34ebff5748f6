//! What a wrong query or a damaged lake says.

use lakebed::ErrorKind;
use serde_json::json;

use crate::support::{TestLake, field};

async fn small() -> TestLake {
    let mut t = TestLake::new().await;
    let fields = vec![
        field(1, "title", "string"),
        field(2, "readCount", "int"),
        field(3, "文章標題", "string"),
    ];
    t.publish("clean/weibo", 1, fields).await;
    let rows: Vec<_> = (0..500)
        .map(|i| json!({"title": format!("title {i}"), "readCount": i, "文章標題": "熱"}))
        .collect();
    t.add("clean/weibo", "2024-01-01", 1, &rows).await;
    t
}

async fn fail(t: &TestLake, text: &str) -> (ErrorKind, String, String) {
    let error = t.try_rows(text).await.unwrap_err();
    (error.kind(), error.to_string(), error.hints().join("; "))
}

#[tokio::test]
async fn unknown_names_are_answered_with_near_ones() {
    let t = small().await;
    for (text, kind, message, hint) in [
        (
            "SELECT * FROM clean.webo",
            ErrorKind::NotFound,
            "`clean.webo`",
            "did you mean `clean.weibo`?",
        ),
        (
            "SELECT * FROM feature.weibo",
            ErrorKind::NotFound,
            "`feature.weibo`",
            "`clean.weibo`",
        ),
        (
            "SELECT * FROM lake.partition",
            ErrorKind::NotFound,
            "`lake.partition`",
            "`lake.partitions`",
        ),
        (
            "SELECT * FROM clean.\"微博\"",
            ErrorKind::NotFound,
            "微博",
            "tables are `clean.weibo`",
        ),
        (
            "SELECT titel FROM clean.weibo",
            ErrorKind::InvalidInput,
            "`titel`",
            "did you mean `title`?",
        ),
        (
            "SELECT readCount FROM clean.weibo",
            ErrorKind::InvalidInput,
            "`readcount`",
            "double quotes",
        ),
        (
            "SELECT 文章标題 FROM clean.weibo",
            ErrorKind::InvalidInput,
            "文章标題",
            "`文章標題`",
        ),
        ("SELEC 1", ErrorKind::InvalidInput, "not valid SQL", ""),
        (
            "SELECT nofunc(title) FROM clean.weibo",
            ErrorKind::InvalidInput,
            "nofunc",
            "",
        ),
        (
            "SELECT CAST(title AS BIGINT) FROM clean.weibo",
            ErrorKind::InvalidInput,
            "title 0",
            "",
        ),
        (
            "SELECT 1 / (\"readCount\" - \"readCount\") FROM clean.weibo",
            ErrorKind::InvalidInput,
            "zero",
            "",
        ),
        (
            "SELECT COUNT(*) FROM clean.weibo WHERE CAST(title AS BIGINT) > 5",
            ErrorKind::InvalidInput,
            "title ",
            "",
        ),
        (
            "DROP TABLE clean.weibo",
            ErrorKind::InvalidInput,
            "DROP TABLE",
            "lakebed ingest",
        ),
    ] {
        let (got, error, hints) = fail(&t, text).await;
        assert_eq!(got, kind, "{text}: {error}");
        assert!(error.contains(message), "{text}: {error}");
        assert!(hints.contains(hint), "{text}: {hints}");
        assert!(!error.contains('\n'), "{text}: {error}");
    }
    let empty = TestLake::new().await;
    let (kind, _, hints) = fail(&empty, "SELECT * FROM clean.weibo").await;
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(hints.contains("schema publish"), "{hints}");
}

#[tokio::test]
async fn damaged_and_missing_files_are_named() {
    let t = small().await;
    let file = t.data_files().await.remove(0);
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let good = std::fs::read(&file).unwrap();
    let read = "SELECT SUM(\"readCount\"), MAX(title || '') FROM clean.weibo";

    let mut footer = good.clone();
    let end = footer.len();
    footer[end - 40..end - 8].fill(0xff);
    let mut magic = good.clone();
    magic[end - 1] = b'X';
    let mut pages = good.clone();
    pages[4..1500].fill(0xa5);
    for (what, bytes) in [
        ("footer", footer),
        ("magic", magic),
        ("pages", pages),
        ("truncated", good[..end / 2].to_vec()),
        ("empty", Vec::new()),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let (kind, error, hints) = fail(&t, read).await;
        assert_eq!(kind, ErrorKind::CorruptData, "{what}: {error}");
        assert!(error.contains(&name), "{what}: {error}");
        assert!(hints.contains("audit"), "{what}: {hints}");
    }
    std::fs::remove_file(&file).unwrap();
    let (kind, error, _) = fail(&t, read).await;
    assert_eq!(kind, ErrorKind::CorruptData);
    assert!(
        error.contains(&name) && error.contains("not in the lake"),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_without_field_ids_is_refused() {
    let mut t = TestLake::new().await;
    t.publish("clean/x", 1, vec![field(1, "a", "int")]).await;
    let schema = arrow::datatypes::Schema::new(vec![arrow::datatypes::Field::new(
        "a",
        arrow::datatypes::DataType::Int64,
        true,
    )]);
    let column = std::sync::Arc::new(arrow::array::Int64Array::from(vec![1])) as _;
    let batch =
        arrow::array::RecordBatch::try_new(std::sync::Arc::new(schema), vec![column]).unwrap();
    t.add_batch(
        "clean/x",
        ("2024-01-01", 1),
        &batch,
        crate::support::Place::Final,
    )
    .await;
    let (kind, error, _) = fail(&t, "SELECT a + 1 FROM clean.x").await;
    assert_eq!(kind, ErrorKind::CorruptData);
    assert!(error.contains("field ids"), "{error}");
}

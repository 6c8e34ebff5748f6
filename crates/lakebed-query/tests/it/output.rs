//! The four forms of output.

use lakebed_query::{write_csv, write_json, write_parquet, write_table};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use crate::support::{TestLake, field, with_members};

async fn mixed() -> TestLake {
    let mut t = TestLake::new().await;
    let fields = vec![
        field(1, "標題", "string"),
        field(2, "n", "int"),
        field(3, "price", "decimal(8,2)"),
        field(4, "tags", "list<string>"),
        with_members(field(5, "who", "struct"), vec![field(6, "名", "string")]),
        field(7, "m", "map<int>"),
    ];
    t.publish("clean/o", 1, fields).await;
    let rows = [
        json!({"標題": "微博, \"熱\"\n搜", "n": 1, "price": "12.50", "tags": ["a"], "who": {"名": "小明"}, "m": {"k": 1}}),
        json!({"標題": "", "n": null}),
        json!({"標題": null, "n": -30}),
    ];
    t.add("clean/o", "2024-01-01", 1, &rows).await;
    t
}

const QUERY: &str = "SELECT 標題, n, price, tags, who, m FROM clean.o ORDER BY n NULLS FIRST";

#[tokio::test]
async fn json_is_one_array_with_a_row_a_line() {
    let t = mixed().await;
    let mut out = Vec::new();
    let rows = write_json(t.query(QUERY).await.unwrap(), &mut out)
        .await
        .unwrap();
    assert_eq!(rows, 3);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        concat!(
            "[\n",
            r#"{"標題":"","n":null,"price":null,"tags":null,"who":null,"m":null},"#,
            "\n",
            r#"{"標題":null,"n":-30,"price":null,"tags":null,"who":null,"m":null},"#,
            "\n",
            r#"{"標題":"微博, \"熱\"\n搜","n":1,"price":12.50,"tags":["a"],"who":{"名":"小明"},"m":{"k":1}}"#,
            "\n]\n"
        )
    );
    let mut out = Vec::new();
    let none = t.query("SELECT n FROM clean.o WHERE n = 5").await.unwrap();
    write_json(none, &mut out).await.unwrap();
    assert_eq!(out, b"[]\n");
    let mut out = Vec::new();
    let twice = "SELECT a.n, b.n FROM clean.o a JOIN clean.o b ON a.n = b.n WHERE a.n = 1";
    write_json(t.query(twice).await.unwrap(), &mut out)
        .await
        .unwrap();
    assert_eq!(out, b"[\n{\"n\":1,\"n_2\":1}\n]\n");
}

#[tokio::test]
async fn csv_tells_null_from_the_empty_text() {
    let t = mixed().await;
    let mut out = Vec::new();
    write_csv(t.query(QUERY).await.unwrap(), &mut out)
        .await
        .unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        concat!(
            "標題,n,price,tags,who,m\r\n",
            "\"\",,,,,\r\n",
            ",-30,,,,\r\n",
            "\"微博, \"\"熱\"\"\n搜\",1,12.50,\"[\"\"a\"\"]\",\"{\"\"名\"\":\"\"小明\"\"}\",\"{\"\"k\"\":1}\"\r\n"
        )
    );
}

#[tokio::test]
async fn the_table_is_aligned_by_screen_width() {
    let t = mixed().await;
    let mut out = Vec::new();
    let query = "SELECT 標題, n, price FROM clean.o ORDER BY n NULLS FIRST";
    write_table(t.query(query).await.unwrap(), &mut out)
        .await
        .unwrap();
    let want = "\
標題           | n    | price
---------------+------+------
               | NULL |  NULL
NULL           |  -30 |  NULL
微博, \"熱\"\\n搜 |    1 | 12.50
";
    assert_eq!(String::from_utf8(out).unwrap(), want);
}

#[tokio::test]
async fn parquet_keeps_types() {
    let t = mixed().await;
    let mut out = Vec::new();
    let result = t.query(QUERY).await.unwrap();
    let schema = result.schema().clone();
    assert_eq!(write_parquet(result, &mut out).await.unwrap(), 3);
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(out)).unwrap();
    assert_eq!(reader.schema().fields(), schema.fields());
    let rows: usize = reader.build().unwrap().map(|b| b.unwrap().num_rows()).sum();
    assert_eq!(rows, 3);
}

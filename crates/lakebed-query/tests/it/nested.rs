//! Structs, lists and maps in expressions.

use serde_json::{Value, json};

use crate::support::{TestLake, field, with_members};

async fn lake() -> TestLake {
    let mut t = TestLake::new().await;
    let members = vec![
        field(3, "a", "int"),
        field(4, "at", "timestamp"),
        field(5, "名", "string"),
    ];
    let fields = vec![
        field(1, "k", "int"),
        with_members(field(2, "s", "struct"), members),
        field(6, "l", "list<int>"),
        field(7, "m", "map<decimal(8,2)>"),
        with_members(field(8, "ls", "list<struct>"), vec![field(9, "a", "int")]),
    ];
    t.publish("clean/n", 1, fields).await;
    let rows = [
        json!({"k": 1, "s": {"a": 1, "at": "0001-01-01T00:00:00Z", "名": "小\"明\""}, "l": [1, null], "m": {"鍵": "1.50"}, "ls": [{"a": 1}, null]}),
        json!({"k": 2, "s": {}, "l": [], "m": {}, "ls": [{"a": null}]}),
        json!({"k": 3}),
        json!({"k": 4, "s": {"a": 1, "at": "0001-01-01T00:00:00Z", "名": "小\"明\""}, "l": [1, null], "m": {"鍵": "1.50"}, "ls": [{"a": 1}, null]}),
    ];
    t.add("clean/n", "2024-01-01", 1, &rows).await;
    t
}

#[tokio::test]
async fn a_cast_to_text_is_the_json_of_the_output() {
    let t = lake().await;
    let whole = r#"{"a":1,"at":"0001-01-01T00:00:00.000000Z","名":"小\"明\""}"#;
    let empty = r#"{"a":null,"at":null,"名":null}"#;
    let texts = |text: String| {
        let t = &t;
        async move {
            let rows = t.rows(&text).await;
            let rows = rows.as_array().unwrap();
            rows.iter().map(|r| r["v"].clone()).collect::<Value>()
        }
    };
    for (column, want) in [
        ("s", json!([whole, empty, null, whole])),
        ("l", json!(["[1,null]", "[]", null, "[1,null]"])),
        ("m", json!([r#"{"鍵":1.50}"#, "{}", null, r#"{"鍵":1.50}"#])),
        (
            "ls",
            json!([
                r#"[{"a":1},null]"#,
                r#"[{"a":null}]"#,
                null,
                r#"[{"a":1},null]"#
            ]),
        ),
    ] {
        for cast in [
            format!("CAST({column} AS VARCHAR)"),
            format!("CAST({column} AS TEXT)"),
            format!("TRY_CAST({column} AS STRING)"),
            format!("{column}::text"),
        ] {
            let text = format!("SELECT {cast} AS v FROM clean.n ORDER BY k");
            assert_eq!(texts(text).await, want, "{cast}");
        }
    }
}

#[tokio::test]
async fn json_texts_stand_wherever_texts_do() {
    let t = lake().await;
    for (text, want) in [
        (
            "SELECT CAST(l AS VARCHAR) AS v, COUNT(*) AS n FROM clean.n GROUP BY CAST(l AS VARCHAR) ORDER BY CAST(l AS VARCHAR)",
            json!([{"v": "[1,null]", "n": 2}, {"v": "[]", "n": 1}, {"v": null, "n": 1}]),
        ),
        (
            "SELECT k FROM clean.n WHERE CAST(l AS VARCHAR) = '[1,null]' AND s IS NOT NULL ORDER BY CAST(m AS VARCHAR), k",
            json!([{"k": 1}, {"k": 4}]),
        ),
        (
            "SELECT k FROM clean.n WHERE CAST(m AS VARCHAR) IN (SELECT CAST(m AS VARCHAR) FROM clean.n WHERE k = 2)",
            json!([{"k": 2}]),
        ),
        (
            "SELECT COALESCE(CAST(l AS VARCHAR), '-') AS v FROM clean.n WHERE k > 2 ORDER BY k",
            json!([{"v": "-"}, {"v": "[1,null]"}]),
        ),
        (
            "SELECT CAST((SELECT l FROM clean.n WHERE k = 1) AS VARCHAR) AS v, CAST(named_struct('a', 1, 'b', [true]) AS VARCHAR) AS w",
            json!([{"v": "[1,null]", "w": r#"{"a":1,"b":[true]}"#}]),
        ),
        (
            "SELECT CAST(unnest(ls) AS VARCHAR) AS v FROM clean.n WHERE k = 1",
            json!([{"v": r#"{"a":1}"#}, {"v": null}]),
        ),
        // Coerced to a text without a word of it.
        (
            "SELECT concat(l, '!') AS v, length(l) AS n FROM clean.n WHERE k = 1",
            json!([{"v": "[1,null]!", "n": 8}]),
        ),
    ] {
        assert_eq!(t.rows(text).await, want, "{text}");
    }
}

#[tokio::test]
async fn nested_columns_are_told_from_null_counted_and_opened() {
    let t = lake().await;
    for (text, want) in [
        (
            "SELECT COUNT(s) AS s, COUNT(l) AS l, COUNT(m) AS m, COUNT(ls) AS ls FROM clean.n",
            json!([{"s": 3, "l": 3, "m": 3, "ls": 3}]),
        ),
        (
            "SELECT k FROM clean.n WHERE s IS NULL AND l IS NULL AND m IS NULL AND ls IS NULL",
            json!([{"k": 3}]),
        ),
        (
            "SELECT COALESCE(l, [9]) AS l FROM clean.n ORDER BY k",
            json!([{"l": [1, null]}, {"l": []}, {"l": [9]}, {"l": [1, null]}]),
        ),
        (
            "SELECT s['名'] AS a, l[1] AS b, m['鍵'] AS c, ls[1]['a'] AS d FROM clean.n WHERE k < 3 ORDER BY k",
            json!([{"a": "小\"明\"", "b": 1, "c": 1.5, "d": 1}, {"a": null, "b": null, "c": null, "d": null}]),
        ),
        (
            "SELECT k, unnest(l) AS v FROM clean.n WHERE k < 4 ORDER BY k",
            json!([{"k": 1, "v": 1}, {"k": 1, "v": null}]),
        ),
        (
            "SELECT unnest(map_entries(m)) AS v FROM clean.n WHERE k = 1",
            json!([{"v": {"key": "鍵", "value": 1.5}}]),
        ),
        (
            "SELECT k FROM clean.n WHERE l = [1, NULL] AND m = m AND ls = ls ORDER BY k",
            json!([{"k": 1}, {"k": 4}]),
        ),
    ] {
        assert_eq!(t.rows(text).await, want, "{text}");
    }
}

#[tokio::test]
async fn nested_columns_are_grouped_and_ordered() {
    let t = lake().await;
    for column in ["s", "l", "m", "ls"] {
        for text in [
            format!("SELECT COUNT(*) FROM (SELECT DISTINCT {column} FROM clean.n)"),
            format!("SELECT COUNT(DISTINCT {column}) + 1 FROM clean.n"),
            format!(
                "SELECT COUNT(*) FROM (SELECT {column}, COUNT(*) FROM clean.n GROUP BY {column})"
            ),
            format!("SELECT MAX(n) + 1 FROM (SELECT COUNT(*) AS n FROM clean.n GROUP BY {column})"),
            format!("SELECT k FROM clean.n ORDER BY {column} NULLS FIRST, k LIMIT 1"),
        ] {
            assert_eq!(t.value(&text).await, json!(3), "{text}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_said_with_a_way_out() {
    let t = lake().await;
    for (text, message, hint) in [
        (
            "SELECT k FROM clean.n WHERE s = '{}'",
            "Struct(",
            "CAST(x AS VARCHAR)",
        ),
        (
            "SELECT k FROM clean.n WHERE l LIKE '%1%'",
            "List(",
            "CAST(x AS VARCHAR)",
        ),
        (
            "SELECT s || 'x' FROM clean.n",
            "Struct(",
            "CAST(x AS VARCHAR)",
        ),
        (
            "SELECT COALESCE(s, '{}') FROM clean.n",
            "coalesce",
            "CAST(x AS VARCHAR)",
        ),
        ("SELECT CAST(m AS BIGINT) FROM clean.n", "Map(", "x['name']"),
        ("SELECT l + 1 FROM clean.n", "List(", "x[1]"),
        (
            "SELECT MIN(m) FROM clean.n",
            "not supported",
            "CAST(x AS VARCHAR)",
        ),
        (
            "SELECT ROW_NUMBER() OVER (ORDER BY s) FROM clean.n",
            "not supported",
            "x['name']",
        ),
        ("SELECT s['none'] FROM clean.n", "none", "DESCRIBE"),
        ("SELECT k['x'] FROM clean.n", "Int64", "member of a struct"),
        (
            "SELECT m[1] FROM clean.n",
            "Int64 == Utf8",
            "keys of a map are texts",
        ),
        ("SELECT unnest(m) FROM clean.n", "unnest", "map_entries"),
        (
            "SELECT u.v FROM clean.n n, unnest(n.l) AS u(v)",
            "not support",
            "SELECT k, unnest(x)",
        ),
        (
            "SELECT u.v FROM clean.n n CROSS JOIN LATERAL unnest(n.l) AS u(v)",
            "unnest",
            "SELECT k, unnest(x)",
        ),
    ] {
        let error = t.try_rows(text).await.unwrap_err();
        assert_eq!(
            error.kind(),
            lakebed::ErrorKind::InvalidInput,
            "{text}: {error}"
        );
        assert!(error.message().contains(message), "{text}: {error}");
        let hints = error.hints().join("; ");
        assert!(hints.contains(hint), "{text}: {hints}");
    }
}

#[tokio::test]
async fn of_a_struct_the_wanted_members_alone_are_read() {
    let mut t = TestLake::new().await;
    let whole = |inner: &str, members: Vec<_>| {
        let inner = with_members(field(3, inner, "struct"), members);
        with_members(
            field(2, "s", "struct"),
            vec![field(4, "long", "string"), inner],
        )
    };
    let first = vec![field(5, "x", "int"), field(6, "y", "string")];
    t.publish("clean/w", 1, vec![field(1, "k", "int"), whole("in", first)])
        .await;
    let second = vec![
        field(6, "x", "string"),
        field(5, "歲", "int"),
        field(7, "z", "int"),
    ];
    t.publish(
        "clean/w",
        2,
        vec![field(1, "k", "int"), whole("裡", second)],
    )
    .await;
    let long = |k: usize| blake3_text(k).repeat(4);
    let old: Vec<Value> = (0..1000)
        .map(|k| match k % 4 {
            0 => json!({"k": k}),
            1 => json!({"k": k, "s": {"long": long(k)}}),
            2 => json!({"k": k, "s": {"long": long(k), "in": {"y": "舊"}}}),
            _ => json!({"k": k, "s": {"long": long(k), "in": {"x": k, "y": "舊"}}}),
        })
        .collect();
    let new = [json!({"k": 1000, "s": {"裡": {"x": "新", "歲": 7, "z": 1}}})];
    t.add("clean/w", "2024-01-01", 1, &old).await;
    t.add("clean/w", "2024-01-02", 2, &new).await;
    let sum: usize = (0..1000).filter(|k| k % 4 == 3).sum();
    assert_eq!(
        t.rows(
            "SELECT count(s['裡']['歲']) AS n, sum(s['裡']['歲']) AS sum, max(s['裡']['x']) AS x, \
             sum(s['裡']['z']) AS z FROM clean.w"
        )
        .await,
        json!([{"n": 251, "sum": sum + 7, "x": "舊", "z": 1}])
    );
    let read = async |text: &str| {
        let mut result = t.query(text).await.unwrap();
        let meter = result.meter();
        while result.next_batch().await.unwrap().is_some() {}
        meter.bytes_read()
    };
    let all = read("SELECT s FROM clean.w").await;
    let one = read("SELECT sum(s['裡']['歲']) FROM clean.w").await;
    let filtered = read("SELECT s['裡']['歲'] FROM clean.w WHERE s['裡']['歲'] > 5").await;
    assert!(
        one * 5 < all && filtered * 5 < all,
        "{one} {filtered} {all}"
    );
}

/// A text that no compression makes short.
fn blake3_text(n: usize) -> String {
    lakebed::name::ContentHash::of(&n.to_le_bytes()).to_string()
}

//! Rows of Arrow batches.

use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};

use super::*;

fn decode(f: &mut Fixture, columns: Vec<(&str, ArrayRef)>) -> Decoded {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    f.chunk(ChunkBody::Batch(batch)).unwrap()
}

fn array(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

#[test]
fn numbers_by_exact_value() {
    let mut f = Fixture::new(
        &[
            "i: int",
            "f: int",
            "d: decimal(10,2)",
            "u: decimal(20,0)",
            "s: string",
            "x: float",
        ],
        Mismatch::Quarantine,
    );
    let decoded = decode(
        &mut f,
        vec![
            ("i", array(Int32Array::from(vec![1, -2, 3, 4]))),
            (
                "f",
                array(Float64Array::from(vec![7.0, f64::NAN, 1.5, 8.0])),
            ),
            ("d", array(Float64Array::from(vec![1.5, 0.25, 1.0, 0.1]))),
            ("u", array(UInt64Array::from(vec![u64::MAX, 0, 1, 2]))),
            (
                "s",
                array(StringViewArray::from(vec![
                    Some("\"q\""),
                    Some(""),
                    None,
                    Some("x"),
                ])),
            ),
            (
                "x",
                array(Float32Array::from(vec![0.1, f32::NAN, 2.0, 3.0])),
            ),
        ],
    );
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"i":1,"f":7,"d":1.50,"u":18446744073709551615,"s":"\"q\"","x":0.10000000149011612}"#,
            r#"{"i":-2,"f":null,"d":0.25,"u":0,"s":"","x":null}"#,
        ]
    );
    assert_eq!(
        reasons(&decoded),
        [
            reason(3, "f", "$.f", "precision"),
            reason(4, "d", "$.d", "precision"),
        ]
    );
    assert_eq!(decoded.rejects[1].form, "parquet");
    assert!(decoded.rejects[1].raw.contains("\"d\":0.1"));
    assert_eq!(count(&decoded, "f", Presence::Nan), 1);
}

#[test]
fn nan_is_null_unless_the_field_keeps_it() {
    let mut f = Fixture::new(
        &[
            "a: float",
            "b: float | allow_nan = true",
            "c: float | nan_as_null = false",
        ],
        Mismatch::Quarantine,
    );
    let column = || array(Float64Array::from(vec![f64::NAN, f64::INFINITY]));
    let decoded = decode(&mut f, vec![("a", column()), ("b", column())]);
    assert_eq!(f.rows(&decoded), [r#"{"a":null,"b":"NaN","c":null}"#]);
    assert_eq!(reasons(&decoded), [reason(2, "a", "$.a", "nan")]);
    let decoded = decode(&mut f, vec![("c", column())]);
    assert_eq!(rejected(&decoded), [1, 2]);
}

#[test]
fn moments_are_direct() {
    let mut f = Fixture::new(
        &[
            "d: date",
            "t: timestamp",
            "w: timestamp | time_zone = \"Asia/Shanghai\"",
            "n: timestamp",
            "m: date",
        ],
        Mismatch::Quarantine,
    );
    let day = 86_400_000_000;
    let decoded = decode(
        &mut f,
        vec![
            ("d", array(Date32Array::from(vec![0, 19863]))),
            (
                "t",
                array(TimestampMillisecondArray::from(vec![1, 2]).with_timezone("+02:00")),
            ),
            ("w", array(TimestampMicrosecondArray::from(vec![day, day]))),
            (
                "n",
                array(TimestampNanosecondArray::from(vec![1000, 1001]).with_timezone("UTC")),
            ),
            (
                "m",
                array(TimestampMicrosecondArray::from(vec![day, day + 1])),
            ),
        ],
    );
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"d":"1970-01-01","t":"1970-01-01T00:00:00.001000Z","w":"1970-01-01T16:00:00.000000Z","n":"1970-01-01T00:00:00.000001Z","m":"1970-01-02"}"#,
        ]
    );
    assert_eq!(
        reasons(&decoded),
        [
            reason(2, "n", "$.n", "precision"),
            reason(2, "m", "$.m", "precision")
        ]
    );
    let mut f = Fixture::new(&["t: timestamp"], Mismatch::Quarantine);
    let decoded = decode(
        &mut f,
        vec![("t", array(TimestampMicrosecondArray::from(vec![0])))],
    );
    assert_eq!(reasons(&decoded), [reason(1, "t", "$.t", "format")]);
}

#[test]
fn nested_and_dictionary_columns() {
    let toml = "[[field]]\nid=1\nname=\"l\"\ntype=\"list<int>\"\n[[field]]\nid=2\nname=\"s\"\ntype=\"struct\"\n[[field.field]]\nid=3\nname=\"a\"\ntype=\"string\"\nrequired=true\n[[field]]\nid=4\nname=\"j\"\ntype=\"json\"\nfrom=\"l\"\n[[field]]\nid=5\nname=\"deep\"\ntype=\"string\"\nfrom=\"/p/a\"\n";
    let mut f = Fixture::of_toml(toml, Mismatch::Extra);
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None]),
        Some(vec![]),
        None,
    ]);
    let words: DictionaryArray<Int32Type> = vec![Some("x"), Some("y"), None].into_iter().collect();
    let field = |name: &str, t: &DataType| Arc::new(Field::new(name, t.clone(), true));
    let both = StructArray::from(vec![
        (field("a", words.data_type()), array(words.clone())),
        (
            field("b", &DataType::Int32),
            array(Int32Array::from(vec![1, 2, 3])),
        ),
    ]);
    let decoded = decode(
        &mut f,
        vec![
            ("l", array(list)),
            ("s", array(both.clone())),
            ("p", array(both)),
            (
                "time",
                array(Time32SecondArray::from(vec![Some(1), None, None])),
            ),
        ],
    );
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"l":[1,null],"s":{"a":"x"},"j":"[1,null]","deep":"x"}"#,
            r#"{"l":[],"s":{"a":"y"},"j":"[]","deep":"y"}"#,
        ]
    );
    assert_eq!(reasons(&decoded), [reason(3, "s", "$.s.a", "missing")]);
    let extra = decoded.batches[0].column_by_name("_extra").unwrap();
    let extra = arrow_array::cast::AsArray::as_string::<i32>(extra.as_ref());
    assert_eq!(extra.value(1), r#"{"/s/b":2,"/p/b":2}"#);
}

#[test]
fn the_batch_has_the_schema_of_the_plan() {
    let mut f = Fixture::new(
        &["i: int", "m: map<list<decimal(5,1)>>", "b: bytes"],
        Mismatch::Fail,
    );
    let decoded = f.lines("{\"i\":1,\"m\":{\"a\":[1.5,null],\"b\":null},\"b\":\"aGk=\"}\n{}\n");
    let schema: Arc<Schema> = f.decoder.plan.arrow_schema();
    assert_eq!(decoded.batches[0].schema(), schema);
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"i":1,"m":{"a":[1.5,null],"b":null},"b":"aGk="}"#,
            r#"{"i":null,"m":null,"b":null}"#
        ]
    );
    assert!(f.lines("").batches.is_empty());
}

"""The part of `check_views.py` about types that changed: one field for every pair of types that has a cast.

Version 1 has each field in its old type, with values at the edges of the cast; version 2 retypes all of them. One field is
retyped twice and then renamed, one casts new forms to its old type. What each engine shows, the rest of every field
included, must be what `lakebed sql` shows. A reader that goes by names over the whole folder must see each column in one
type, and as many values in it as the files have.
"""

import collections
import json

DATASET = "clean/shop.retyped"

NUMBERS = ["0", "1", "7", "-7", "007", "-0", "+7", " 7", "7 ", "7\n", "1.50", "1.5", "01.5", "1.005", "-0.0", "-0.05", ".5",
           "5.", "1e3", "1,200.50", "99.99", "99.999", "100", "9223372036854775807", "9223372036854775808",
           "-9223372036854775808", "12345678901.25", "123456789012345", "1234567890123456", "0.1", "0.10", "0.123456789012345",
           "0.7", "-123.456", "4.35", "NaN", "inf", "٣", "1_000", "0x1f", "1.500000000000000000000000000", "0.3000000000000",
           "1" + "0" * 37, "1" + "0" * 38, "0.000001", "16777217", "2.675", "1.1e1"]
WORDS = ["", "abc", "true", "false", "True", "t", "1", "flat", "flat ", "house", "it's", "標題"]
DAYS = ["2026-11-30", "2026-02-30", "2026-1-1", "2026-11-30 ", "20261130", "1999-12-31", "2024-02-29", "2023-02-29",
        "2026-11-31", "0000-01-01", "2026-13-01", "2026-11-30\n"]
TIMES = ["2026-11-30T08:00:00Z", "2026-11-30T08:00:00.5Z", "2026-11-30T08:00:00.123456Z", "2026-11-30T08:00:00.1234567Z",
         "2026-11-30T08:00:00+08:00", "2026-11-30T24:00:00Z", "2026-11-30T08:60:00Z", "2026-11-30T23:59:60Z",
         "2026-02-30T08:00:00Z", "2026-11-30 08:00:00Z", "2026-11-30T08:00Z", "2026-11-30T08:00:00z", "1969-12-31T23:59:59.9Z"]
TEXTS = list(dict.fromkeys(NUMBERS + WORDS + DAYS + TIMES))
SAMPLES = {
    "string": TEXTS,
    "enum": [t for t in TEXTS if t],
    "int": [0, 1, -1, 2, 7, 9, 10, 99, -99, 100, 12345, 2**53, 2**53 + 1, -(2**53) - 1, 2**60, 2**63 - 1, -(2**63), 2**62 + 1],
    "float": [0.0, -0.0, 1.0, 0.1, 0.29, -12.34, 1.005, 1.5, 2.675, 4.35, 99.99, 1e2, 1e15, 999999999999999.0, 1e16, 1e300, 5e-324,
              0.1 + 0.2, 2.0**63, -(2.0**63), 2.0**53 + 2, 123456789.12, 1234567890123.12, 0.07, 1.1, 8.41, 70368744177664.01],
    "bool": [True, False],
    "decimal(4,2)": ["0", "1", "-1", "0.01", "-0.01", "7.00", "12.50", "99.99", "-99.99"],
    "decimal(20,4)": ["0", "1", "-1", "0.0001", "7.5", "7.1234", "99.99", "100", "9999999999999999.9999", "-9999999999999999.9999",
                      "1234567890.1234", "12345678901.2345", "99999999999.9999", "100000000000"],
    "decimal(38,10)": ["0", "1", "0.0000000001", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "0.1", "0.3",
                       "9999999999999999999999999999.9999999999", "12345.6789012345", "99999.9999999999", "100000"],
    "date": ["1970-01-01", "2026-11-30", "1969-12-31", "1900-01-01", "2299-12-31", "2024-02-29"],
    "timestamp": ["2026-11-30T00:00:00Z", "2026-11-30T00:00:00.000001Z", "1969-12-31T00:00:00Z", "1969-12-31T23:59:59.999999Z",
                  "2026-11-29T16:00:00Z"],
    "json": [{"b": [1, "二"]}, "text", 1.50, True, []],
}
# One value of each type, as the new type has it from version 2 on.
NEW = {"string": "new", "enum": "flat", "int": -5, "float": 0.25, "bool": True, "date": "2026-12-01",
       "timestamp": "2026-12-01T00:00:00Z", "json": {"n": 1}}
DECIMALS = ["decimal(4,2)", "decimal(20,4)", "decimal(38,10)"]
TEXT_TO = ["int", "float", "bool", "date", "timestamp", *DECIMALS, "decimal(9,0)", "decimal(2,2)", "decimal(38,15)"]
NUMBER_TO = ["string", "enum", "json", "int"]
PAIRS = (
    [("string", to) for to in [*TEXT_TO, "enum"]] + [("enum", to) for to in [*TEXT_TO, "string"]]
    + [("int", to) for to in ["string", "enum", "json", "float", "bool", "decimal(4,2)", "decimal(20,4)", "decimal(38,10)", "decimal(38,25)"]]
    + [("float", to) for to in ["int", "decimal(4,2)", "decimal(20,4)", "decimal(38,15)", "decimal(9,0)"]]
    + [("bool", to) for to in ["string", "int", "enum", "json"]]
    + [(of, to) for of in DECIMALS for to in [*NUMBER_TO, "float"]]
    + [("decimal(20,4)", "decimal(4,2)"), ("decimal(38,10)", "decimal(20,4)"), ("decimal(38,10)", "decimal(9,0)"),
       ("decimal(4,2)", "decimal(4,0)"), ("decimal(38,10)", "decimal(38,30)")]
    + [("date", to) for to in ["string", "timestamp", "enum"]] + [("timestamp", "date"), ("json", "string")]
)
ENUM = ["flat", "true", "7", "12.50", "1.0000", "2026-11-30", "it's"]


def keys_of(kind: str, old: str) -> str:
    if kind != "enum":
        return ""
    values = ENUM if old else SAMPLES["enum"]
    return f"values = {json.dumps(values, ensure_ascii=False)}"


def line(number: int, name: str, kind: str, *keys: str) -> str:
    told = "; ".join(k for k in keys if k)
    return f"{number} | {name} | {kind}" + (f" | {told}" if told else "")


def name_of(pair: tuple[str, str]) -> str:
    return f"{pair[0]} to {pair[1]}"


def versions() -> list[tuple[str, tuple[str, ...]]]:
    """The fields of each version, and what it removes."""
    first = [line(i, name_of(p), p[0], keys_of(p[0], "")) for i, p in enumerate(PAIRS, 1)]
    again = [line(900, "again", "int"), line(910, "kept", "int"), line(911, "day", "date")]
    retype = 'change = "retype"'
    second = [line(i, name_of(p), p[1], keys_of(p[1], p[0]), retype, f'column = "new {i}"') for i, p in enumerate(PAIRS, 301)]
    casts = [
        line(910, "kept", "int", 'change = "cast_old"',
             'cast = { from = "decimal(12,2)", lossy = "truncate", money = { symbols = ["$"], thousands = "," } }'),
        line(911, "day", "date", 'change = "cast_old"',
             'cast = { from = "timestamp", lossy = "truncate", time_zone = "Asia/Taipei" }'),
    ]
    text = line(901, "again", "string", retype, 'column = "again_text"')
    amount = line(902, "again", "decimal(8,2)", retype, 'column = "again_amount"')
    renamed = line(902, "amount", "decimal(10,3)", retype, 'column = "again_amount"', 'renamed_from = "again"')
    return [
        ("\n".join([*first, *again]) + "\n", ()),
        ("\n".join([*second, text, *casts]) + "\n", ()),
        ("\n".join([*second, amount, *casts]) + "\n", ()),
        ("\n".join([*second, renamed, *casts]) + "\n", ()),
    ]


def old_rows() -> list[dict]:
    """Row n has the n-th value of every field."""
    most = max(len(values) for values in SAMPLES.values())
    rows = [{name_of(p): SAMPLES[p[0]][n] for p in PAIRS if n < len(SAMPLES[p[0]])} for n in range(most)]
    for row, value in zip(rows, [7, 123456, 10**15, None]):
        row["again"] = value
    return [*rows, {}]


def make(lake: object) -> None:
    for number, (lines, removed) in enumerate(versions(), 1):
        lake.publish(number, lines, removed)
    lake.store_rows(old_rows(), "ingest", "2026-11-01", 1, "retyped-old")
    new = {name_of(p): NEW.get(p[1], "0.00") for p in PAIRS}
    new |= {"again": "1.50", "kept": "$1,200.50", "day": "2026-11-30T16:30:00Z"}
    lake.store_rows([new, {"again": "sold out", "kept": -7.99}, {"again": "7", "kept": 5}], "ingest", "2026-11-02", 2, "retyped-new")
    lake.store_rows([{"again": 12.25}], "ingest", "2026-11-03", 3, "retyped-again")
    lake.store_rows([{"amount": 12.255}, {}], "ingest", "2026-11-04", 4, "retyped-amount")


# What is replaced by what, so that some row is wrong.
SPOILED = [("<= 15", "<= 14"), ("% 86400000000 = 0", "% 86400000000 >= 0"), ("< 9.223372036854775808E18", "< 1E18"),
           ("[0-5][0-9]:[0-5][0-9]", "[0-6][0-9]:[0-9][0-9]"), (" AND NOT ", " AND TRUE OR "), ("THEN NULL ELSE", "THEN NULL WHEN FALSE THEN"),
           ("IN (0, 1)", "IN (0, 1, 2)"), ("> '0001'", "> '2000'")]


def check_all(lake: object, engines: list, check: object, see_spoiled: object) -> list[str]:
    make(lake)
    found = []
    for engine in engines:
        found += [f"{engine.name}: retyped: {text}" for text in see_spoiled(lake, engine, SPOILED)]
        found += [f"{engine.name}: retyped: {text}" for text in check(lake, engine, [1, 2, 3, 4])]
    kept = json.loads(lake.ok("sql", f"SELECT kept, day FROM {lake.table} WHERE schema_version = 2", "--format", "json"))
    if [row["kept"] for row in kept] != [1200, -7, 5] or kept[0]["day"] != "2026-12-01":
        found.append(f"retyped: cast_old stored {kept}")
    return found + check_folder(lake, engines[0])


def check_folder(lake: object, duckdb: object) -> list[str]:
    """A reader by names over all files: each column in one type, no value lost or mixed."""
    folder = str(lake.folder / "lake" / lake.dataset).replace("'", "''")
    files = f"read_parquet('{folder}/dt=*/schema_version=*/*.parquet', union_by_name = true)"
    types = dict(duckdb.types(f"SELECT * FROM {files}"))
    found = []
    for number, (of, to) in enumerate(PAIRS, 301):
        name = name_of((of, to))
        [[old, new]] = duckdb.rows(f'SELECT count("{name}"), count("new {number}") FROM {files}')
        if (old, new) != (f"number {len(SAMPLES[of])}", "number 1"):
            found.append(f"retyped: by names, `{name}` has {old} values and `new {number}` {new}")
    if types.get("again") != "BIGINT" or types.get("again_text") != "VARCHAR" or "amount" in types:
        found.append(f"retyped: by names, the columns are {types}")
    doubled = [n for n, c in collections.Counter(map(str.lower, types)).items() if c > 1]
    return found + [f"retyped: by names, `{n}` stands twice" for n in doubled]

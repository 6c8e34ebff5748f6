#!/usr/bin/env python3
"""Run the statements that `lakebed schema view` prints, and compare every row with `lakebed sql`.

    check_views.py --lakebed target/debug/lakebed

A project is made with one dataset over five schema versions: fields added, removed, brought back, renamed, widened, an
enum grown, a `dual` pair; members of a struct, of structs in lists and of structs in maps likewise; names in CJK, with
quotes, dots and reserved words, in a lake whose path has a quote in it; NULLs at every depth; a corrected date, whose
superseded files must not be seen; a version without rows. The statement for DuckDB and the one for ClickHouse must give
the columns, types and rows of `lakebed sql "SELECT * ..."`, as a query and as a view, and again after the last version
got its first rows. A statement that is spoiled must be seen to differ. ClickHouse has no NULL for lists, maps and structs: what Lakebed shows as NULL there is expected
empty, or with NULL members alone. Trino and Spark do not run here; their texts are tested in Rust.
Then the same over a dataset of retyped fields (`retyped.py`).

Exit status: 0 all agree, 1 they differ.
"""

import argparse
import base64
import collections
import datetime
import decimal
import json
import pathlib
import subprocess
import sys
import tempfile

import retyped

DATASET = "clean/shop.items"
ODD = 'say "hi", it\'s `x`\\'

# One line a field: id, name, type, further keys. Members are indented.
V1 = f"""
1 | 標題 | string
2 | price | decimal(10,2)
3 | kind | enum | values = ["flat"]
4 | at | timestamp
5 | gone | int
6 | reads | int
7 | author | struct
  8 | name | string
  9 | age | int
  22 | city | struct
    23 | zip | string
    35 | country | string
10 | comments | list<struct>
  11 | who | string
  12 | points | decimal(6,2)
  24 | tags | list<string>
13 | props | map<struct>
  14 | v | string
  15 | n | int
16 | {ODD} | string
17 | select | bool
18 | rates | list<decimal(6,2)>
19 | blob | bytes
25 | day | date
26 | score | float
27 | raw | json
28 | same | list<struct>
  36 | x | int
  37 | y | map<string>
29 | a.b | int | from = "/a.b"
41 | deep | list<map<list<struct>>>
  42 | p | decimal(4,1)
  43 | in | struct
    44 | z | bool
"""


def edited(text: str, *changes: tuple[str, str]) -> str:
    """The text with each line that begins with `before` (its id) replaced."""
    for before, after in changes:
        lines = [line for line in text.splitlines() if line.strip().startswith(before)]
        if len(lines) != 1:
            raise ValueError(f"{before!r} names {len(lines)} lines")
        text = text.replace(lines[0] + "\n", after + "\n" if after else "")
    return text


V2 = edited(
    V1,
    ("1 |", '1 | 題名 | string | renamed_from = "標題"'),
    ("2 |", "2 | price | decimal(20,4)"),
    ("3 |", '3 | kind | enum | values = ["flat", "house"]'),
    ("5 |", ""),
    ("6 |", '6 | reads | int\n30 | reads_text | string | from = "reads"; lenient = true; change = "dual"'),
    ("8 |", '  8 | 名字 | string | renamed_from = "name"\n  31 | mail "at" | string'),
    ("11 |", '  11 | 作者 | string | renamed_from = "who"'),
    ("12 |", "  12 | points | decimal(12,4)"),
    ("24 |", ""),
    ("14 |", '  14 | value | string | renamed_from = "v"\n  32 | unit | struct\n    38 | sign | string'),
    ("42 |", '  42 | q | decimal(6,2) | renamed_from = "p"'),
    ("44 |", '    44 | zz | bool | renamed_from = "z"'),
    ("18 |", "18 | rates | list<decimal(12,4)>"),
)
REMOVED2 = ("gone", "comments.tags")
V3 = edited(
    V2,
    ("9 |", '  9 | years | int | renamed_from = "age"'),
    ("16 |", f'16 | 引號\'"` | string | renamed_from = {json.dumps(ODD)}'),
    ("27 |", ""),
) + "33 | later | list<map<int>>\n"
REMOVED3 = ("raw",)
V4 = edited(
    V3.replace(' | renamed_from = "age"', "").replace(f" | renamed_from = {json.dumps(ODD)}", ""),
    ("23 |", '    23 | postcode | string | renamed_from = "zip"'),
    ("35 |", "    35 | country | string\n    39 | parts | list<decimal(8,1)>"),
    ("12 |", "  12 | points | decimal(12,4)\n  34 | likes | map<list<int>>"),
) + "5 | gone | int\n"
V5 = edited(
    V4.replace(' | renamed_from = "zip"', ""),
    ("36 |", '  36 | 甲 | int | renamed_from = "x"'),
) + "40 | newest | timestamp\n"


def toml(dataset: str, number: int, lines: str, removed: tuple[str, ...]) -> str:
    """A version file."""
    text = f'dataset = "{dataset}"\nversion = {number}\n'
    if number > 1:
        text += f"base = {number - 1}\n"
    if removed:
        text += f"removed = {json.dumps(list(removed), ensure_ascii=False)}\n"
    path = "field"
    for line in lines.strip("\n").splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        cells = line.strip().split(" | ")
        path = ".".join(["field"] * (depth + 1))
        text += f"\n[[{path}]]\nid = {cells[0]}\nname = {json.dumps(cells[1], ensure_ascii=False)}\ntype = \"{cells[2]}\"\n"
        for key in cells[3].split("; ") if len(cells) > 3 else []:
            text += key + "\n"
    return text


def rows_of(version: int, tag: str) -> list[dict]:
    """Rows under the names of that version: full ones, and every kind of NULL and emptiness."""
    late = version >= 3
    renamed = version >= 2
    title, who = ("題名", "作者") if renamed else ("標題", "who")
    name, age = ("名字" if renamed else "name"), ("years" if late else "age")
    zip_, odd = ("postcode" if version >= 4 else "zip"), ("引號'\"`" if late else ODD)
    value, x = ("value" if renamed else "v"), ("甲" if version >= 5 else "x")
    p, z = ("q", "zz") if renamed else ("p", "z")
    city = {zip_: "10617", "country": None}
    if version >= 4:
        city["parts"] = [1.5, None]
    author = {name: f"吳 {tag}", age: 7, "city": city}
    comment = {who: "a", "points": "12.34"}
    prop = {value: "寬", "n": 3}
    if renamed:
        author['mail "at"'] = "a@b"
        comment["points"] = "12345678.1234"
        prop["unit"] = {"sign": "坪"}
    else:
        comment["tags"] = ["t", None]
    if version >= 4:
        comment["likes"] = {"u": [1, None], "v": None, "w": []}
    full = {
        title: f"{tag} 一", "price": "-12345.67", "kind": "house" if renamed else "flat",
        "at": "2026-11-30T08:00:00.123456+08:00", "reads": 5, "author": author,
        "comments": [comment, None, {**comment, "points": None}], "props": {"寬": prop, "k'\"": None},
        odd: "it's \"x\" `y` \\ 湖", "select": True, "rates": ["1.25", None], "blob": "/wAB",
        "day": "1999-12-31", "score": 0.1, "raw": {"b": [1, "二"]}, "same": [{x: 1, "y": {"k": "v", "n": None}}, None],
        "a.b": -(2**62),
        "deep": [{"k": [{p: 1.5, "in": {z: True}}, None, {p: None, "in": None}], "n": None, "e": []}, None, {}],
    }
    if renamed:
        full["price"] = "12345678901234.5678"
        full["rates"] = ["12345678.0625", None]
    if version != 1 and version < 4:
        full.pop("gone", None)
    else:
        full["gone"] = 1
    if late:
        full.pop("raw")
        full["later"] = [{"k": 1, "z": None}, None, {}]
    if version >= 5:
        full["newest"] = "2026-12-01T00:00:00Z"
    empty = {
        title: f"{tag} 空", "author": {name: None, age: None, "city": {zip_: None, "country": None}}, "comments": [], "props": {},
        "rates": [], "same": [],
    }
    half = {title: f"{tag} 半", "author": {name: "x", age: None, "city": None}, "comments": [None], "props": {"k": None},
            "reads": "1.2万" if renamed else 12, "price": "0.01", "score": -1.5e300, "select": False}
    return [full, empty, {title: f"{tag} 無"}, {}, half]


class Lake:
    """A project with a dataset of `shop`, and the commands on them."""

    def __init__(self, binary: pathlib.Path, folder: pathlib.Path, dataset: str) -> None:
        self.binary, self.folder, self.dataset = binary, folder, dataset
        self.short = dataset.partition("/")[2]
        self.table = f'clean."{self.short}"'

    def ok(self, *args: object) -> str:
        command = [str(self.binary), *map(str, args), "--project", str(self.folder)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).decode(errors="replace")
            raise SystemExit(f"`lakebed {' '.join(map(str, args))}` ended with {done.returncode}: {said}")
        return done.stdout.decode("utf-8")

    def publish(self, number: int, lines: str, removed: tuple[str, ...] = ()) -> None:
        folder = self.folder / "sources" / "shop" / "schemas" / self.short
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"v{number}.toml").write_text(toml(self.dataset, number, lines, removed), encoding="utf-8")
        self.ok("schema", "publish", self.dataset, number)

    def store(self, verb: str, date: str, version: int, tag: str, *options: object) -> None:
        rows = [*rows_of(version, tag), {"unknown": tag}]
        self.store_rows(rows, verb, date, version, tag, "--on-mismatch", "extra", *options)

    def store_rows(self, rows: list[dict], verb: str, date: str, version: int, tag: str, *options: object) -> None:
        path = self.folder / f"{tag}.jsonl"
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.ok(verb, self.dataset, path, "--date", date, "--schema-version", version, *options)

    def view(self, engine: str, *options: str) -> dict:
        return json.loads(self.ok("schema", "view", self.dataset, "--engine", engine, "--format", "json", *options))


def make(binary: pathlib.Path, folder: pathlib.Path) -> Lake:
    lake = Lake(binary, folder, DATASET)
    subprocess.run([binary, "init", folder, "--time-zone", "Asia/Taipei"], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (folder / "sources" / "shop").mkdir(parents=True, exist_ok=True)
    (folder / "sources" / "shop" / "source.toml").write_text('class = "log"\n', encoding="utf-8")
    lake.publish(1, V1)
    lake.publish(2, V2, REMOVED2)
    lake.publish(3, renames_of(V3, V2), REMOVED3)
    lake.publish(4, renames_of(V4, V3))
    lake.store("ingest", "2026-11-01", 1, "one")
    lake.store("ingest", "2026-11-02", 1, "wrong")
    lake.store("ingest", "2026-11-03", 2, "two", "--complete")
    lake.store("ingest", "2026-11-03", 4, "four", "--late")
    lake.store("ingest", "2026-11-04", 4, "later")
    lake.store("correct", "2026-11-02", 2, "right")
    superseded = list((folder / "lake" / "_lake" / "superseded").rglob("*.parquet"))
    if not superseded:
        raise SystemExit("the correction left no superseded file: the check would not attack anything")
    return lake


def renames_of(lines: str, before: str) -> str:
    """Keeps `renamed_from` where the version before has not told it already."""
    known = set(before.splitlines())
    return "\n".join(line.split(" | renamed_from")[0] if line in known else line for line in lines.splitlines()) + "\n"


def canonical(value: object) -> object:
    """One form for the values of JSON and of Python."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        value = decimal.Decimal(repr(value))
    if isinstance(value, (int, decimal.Decimal)):
        return f"number {format(decimal.Decimal(value).normalize(), 'f')}"
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: canonical(of) for key, of in value.items()}
    if isinstance(value, list):
        return [canonical(of) for of in value]
    return value


class Type:
    """A ClickHouse type, read from its text: name, and what is inside it."""

    def __init__(self, text: str) -> None:
        head, _, rest = text.strip().partition("(")
        self.name, self.inner = head, []
        self.members: list[str] = []
        for part in split_types(rest[:-1]) if rest else []:
            if head == "Tuple":
                member, part = split_name(part)
                self.members.append(member)
            self.inner.append(part if head in ("Decimal", "DateTime64") else Type(part))

    def filled(self, value: object) -> object:
        """`value` as ClickHouse shows it: no NULL of a list, map or struct."""
        if self.name == "Nullable":
            return value
        if self.name == "Array":
            return [self.inner[0].filled(v) for v in value or []]
        if self.name == "Map":
            return {k: self.inner[1].filled(v) for k, v in (value or {}).items()}
        if self.name == "Tuple":
            return {m: t.filled((value or {}).get(m)) for m, t in zip(self.members, self.inner)}
        return value


def split_types(text: str) -> list[str]:
    """Parts between commas that are in no bracket and no quotes."""
    parts, depth, quote, start, at = [], 0, "", 0, 0
    while at < len(text):
        c = text[at]
        if quote:
            if c == "\\":
                at += 1
            elif c == quote:
                quote = ""
        elif c in "'`":
            quote = c
        elif c in "()":
            depth += 1 if c == "(" else -1
        elif c == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return [p.strip() for p in [*parts, text[start:]]]


def split_name(text: str) -> tuple[str, str]:
    """A quoted name and the type after it."""
    at, name = 1, ""
    while text[at] != "`":
        at += 1 if text[at] == "\\" else 0
        name += text[at]
        at += 1
    return name, text[at + 1:]


class DuckDb:
    name = "duckdb"

    def __init__(self) -> None:
        import duckdb
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'America/New_York'; SET enable_progress_bar = false")

    def view(self, statement: str) -> None:
        self.connection.execute(statement)

    def types(self, query: str) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in self.connection.execute(f"DESCRIBE {query}").fetchall()]

    def rows(self, query: str) -> list[list]:
        return [[canonical(v) for v in row] for row in self.connection.execute(query).fetchall()]

    @staticmethod
    def expected(value: object, _type: str) -> object:
        return value


class ClickHouse:
    name = "clickhouse"
    settings = ("SETTINGS session_timezone = 'America/New_York', output_format_json_quote_64bit_integers = 0, "
                "output_format_json_quote_decimals = 0, output_format_json_named_tuples_as_objects = 1, "
                "output_format_json_escape_forward_slashes = 0, "
                # Then `tuple` may name its members, by which a cast would go.
                "enable_named_columns_in_function_tuple = 1")

    def __init__(self) -> None:
        from chdb import session
        self.session = session.Session()

    def ask(self, query: str) -> list:
        answer = self.session.query(query, "JSONCompactEachRow")
        text = answer.bytes().decode("utf-8", "surrogateescape") if answer.size() else ""
        return [json.loads(line, parse_float=decimal.Decimal) for line in text.splitlines()]

    def view(self, statement: str) -> None:
        self.session.query("CREATE DATABASE IF NOT EXISTS shop; USE shop")
        self.session.query(statement)

    def types(self, query: str) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in self.ask(f"DESCRIBE ({query})")]

    def rows(self, query: str) -> list[list]:
        kinds = [kind for _, kind in self.types(query)]
        blobs = [name for name, _ in self.types(query) if name == "blob"]
        shown = "* REPLACE (base64Encode(blob) AS blob)" if blobs else "*"
        rows = self.ask(f"SELECT {shown} FROM ({query}) {self.settings}")
        return [[self.canonical(v, kind) for v, kind in zip(row, kinds)] for row in rows]

    @staticmethod
    def canonical(value: object, kind: str) -> object:
        if value is not None and "DateTime64" in kind and isinstance(value, str):
            return value.replace(" ", "T") + "Z"
        return canonical(value)

    @staticmethod
    def expected(value: object, kind: str) -> object:
        return Type(kind).filled(value)


def same_types(seen: str, told: str) -> bool:
    def flat(text: str) -> str:
        # Engines quote only the names that need it.
        return "".join(c for c in text if c not in " \n\"`\\")

    return flat(seen) == flat(told)


def key(row: list) -> str:
    return json.dumps(row, ensure_ascii=False, sort_keys=True)


def compare(lake: Lake, engine: object, view: dict, query: str) -> list[str]:
    """Every difference between what the query gives and what `lakebed sql` shows."""
    expected = json.loads(lake.ok("sql", f"SELECT * FROM {lake.table}", "--format", "json"), parse_float=decimal.Decimal)
    if not expected:
        raise SystemExit("`lakebed sql` shows no rows: nothing would be compared")
    names, told = [c["name"] for c in view["columns"]], [c["type"] for c in view["columns"]]
    found = []
    if list(expected[0]) != names:
        found.append(f"columns {names}, lakebed {list(expected[0])}")
    seen = engine.types(query)
    if [name for name, _ in seen] != names:
        found.append(f"columns {[name for name, _ in seen]}, the answer says {names}")
    for (name, kind), said in zip(seen, told):
        if not same_types(kind, said):
            found.append(f"`{name}` has type {kind}, the answer says {said}")
    if found:
        return found
    ours = [[engine.expected(canonical(row[n]), kind) for n, kind in zip(names, told)] for row in expected]
    theirs = engine.rows(query)
    for position, name in enumerate(names):
        left, right = (collections.Counter(key(row[position]) for row in rows) for rows in (ours, theirs))
        if left != right:
            found.append(f"`{name}`: lakebed alone {list((left - right).elements())[:3]}, "
                         f"{engine.name} alone {list((right - left).elements())[:3]}")
    if not found and collections.Counter(map(key, ours)) != collections.Counter(map(key, theirs)):
        found.append("columns agree one by one, rows do not")
    return found


# What is replaced by what, so that some row is wrong.
SPOILED = {
    "duckdb": [("schema_version=1/", "schema_version=2/"), ("IS NOT NULL", "IS NULL OR TRUE"),
               ("UNION ALL", "EXCEPT")],
    "clickhouse": [("schema_version=1/", "schema_version=9/"), ("tupleElement(_t.`author`, 'name')", "NULL"),
                   ("UNION ALL", "EXCEPT"), ("Decimal(6, 2)", "Decimal(6, 1)")],
}


def see_spoiled(lake: Lake, engine: object, changes: list[tuple[str, str]]) -> list[str]:
    """What is wrong with the check itself: spoiled statements that it takes for right ones."""
    view, found = lake.view(engine.name), []
    for before, after in changes:
        spoiled = view["statement"].replace(before, after)
        if spoiled == view["statement"]:
            found.append(f"the statement has no {before!r} to be spoiled")
            continue
        try:
            differs = bool(compare(lake, engine, view, spoiled))
        except Exception:  # noqa: BLE001: a statement that does not run is seen to be wrong
            differs = True
        if not differs:
            found.append(f"{after!r} in the place of {before!r} makes no difference")
    print(f"{engine.name}: {len(changes)} spoiled statements, {len(found)} taken for right ones")
    return found


def check(lake: Lake, engine: object, versions: list[int]) -> list[str]:
    view = lake.view(engine.name)
    found = []
    if view["versions"] != versions:
        found.append(f"versions {view['versions']} are read, expected {versions}")
    found += compare(lake, engine, view, view["statement"])
    name = f"{lake.short.replace('.', ' ')} {len(versions)}'s"
    named = lake.view(engine.name, "--name", name)
    engine.view(named["statement"])
    quoted = f'"{name}"'
    found += compare(lake, engine, named, f"SELECT * FROM {quoted}")
    rows = len(engine.rows(view["statement"]))
    print(f"{engine.name}: versions {versions}, {rows} rows, {len(view['columns'])} columns, {len(found)} differences")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lakebed", type=pathlib.Path, required=True)
    args = parser.parse_args()
    findings = []
    with tempfile.TemporaryDirectory(prefix="it's 湖 ") as folder:
        lake = make(args.lakebed.resolve(), pathlib.Path(folder) / "project")
        engines = [DuckDb(), ClickHouse()]
        # DuckDB refuses a folder without files; ClickHouse reads every published version.
        for engine, versions in zip(engines, ([1, 2, 4], [1, 2, 3, 4])):
            findings += [f"{engine.name}: {line}" for line in check(lake, engine, versions)]
            findings += [f"{engine.name}: {line}" for line in see_spoiled(lake, engine, SPOILED[engine.name])]
        lake.publish(5, renames_of(V5, V4))
        lake.store("ingest", "2026-11-05", 5, "newest")
        for engine, versions in zip(engines, ([1, 2, 4, 5], [1, 2, 3, 4, 5])):
            findings += [f"{engine.name}: {line}" for line in check(lake, engine, versions)]
        findings += retyped.check_all(Lake(lake.binary, lake.folder, retyped.DATASET), engines, check, see_spoiled)
    for line in findings:
        print(f"WRONG  {line}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

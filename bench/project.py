"""A Lakebed project for measuring: made anew, its schemas published, called as a user calls it."""

import pathlib
import shutil

from measure import OUT, Run, run

DATASET, DATE = "clean/rentals", "2026-11-30"

FIELDS = [
    ("id", "int"), ("title", "string"), ("url", "string"), ("city", "string"), ("price", "decimal(12,2)"),
    ("area", "float"), ("rooms", "int"), ("owner", "bool"), ("posted_at", "timestamp"), ("floor", "int"),
    ("description", "string"),
]
NESTED = '''
[[field]]
id = 12
name = "tags"
type = "list<string>"

[[field]]
id = 13
name = "agent"
type = "struct"
  [[field.field]]
  id = 14
  name = "name"
  type = "string"
  [[field.field]]
  id = 15
  name = "phone"
  type = "string"
'''


class Project:
    """A fresh project with the schema published."""

    def __init__(self, binary: pathlib.Path, name: str, nested: bool) -> None:
        self.binary, self.folder = binary, OUT / name
        shutil.rmtree(self.folder, ignore_errors=True)
        run([binary, "init", self.folder, "--time-zone", "Asia/Taipei"])
        self.publish(DATASET, nested)

    def publish(self, dataset: str, nested: bool = False) -> None:
        """Publishes version 1 of a dataset of a layer, `clean/SOURCE` or `clean/SOURCE.NAME`."""
        name = dataset.split("/")[1]
        folder = self.folder / "sources" / name.partition(".")[0]
        schemas = folder / "schemas" / name
        schemas.mkdir(parents=True, exist_ok=True)
        (folder / "source.toml").write_text('class = "log"\n', encoding="utf-8")
        fields = "".join(f'\n[[field]]\nid = {i}\nname = "{n}"\ntype = "{t}"\n' for i, (n, t) in enumerate(FIELDS, 1))
        text = f'dataset = "{dataset}"\nversion = 1\nnote = "benchmark"\n' + fields + (NESTED if nested else "")
        (schemas / "v1.toml").write_text(text, encoding="utf-8")
        self.call("schema", "publish", dataset, "1")

    def call(self, *args, **options) -> Run:
        return run([self.binary, *args, "--project", self.folder], **options)

    def ingest(self, path: pathlib.Path, date: str = DATE) -> Run:
        return self.call("ingest", DATASET, path, "--date", date, "--format", "json")

    @property
    def data_folder(self) -> pathlib.Path:
        return self.folder / "lake" / "clean" / "rentals"

    @property
    def glob(self) -> str:
        """The data files as a folder reader names them."""
        return f"{self.data_folder}/dt=*/schema_version=*/*.parquet"

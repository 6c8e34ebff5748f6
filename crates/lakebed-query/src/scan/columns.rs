//! The columns of a dataset over all its schema versions, merged by field id.
//!
//! Order: `source`, `dt`, `schema_version`, what `lakebed::registry::merge_columns` gives, and last
//! `_commit`, `_file` and `_row`, in queries that name one of them. Between the last two a plan of our
//! own may have the rank of a row's file, which no query can name.
//!
//! Every field is known in two forms: with ids in its metadata, at every depth, for matching files;
//! and without any metadata, as SQL sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use lakebed::catalog::SchemaRow;
use lakebed::name::{ContentHash, DatasetRef};
pub(crate) use lakebed::registry::{
    COMMIT_COLUMN, DT_COLUMN, FILE_COLUMN, ROW_COLUMN, VERSION_COLUMN, field_id,
};
use lakebed::registry::{ColumnSource, merge_columns};
use lakebed::spec::{EXTRA_FIELD_ID, FileFormat, SOURCE_COLUMN, SchemaSpec};
use parquet::arrow::RowNumber;

use super::views::with_views;

/// The columns that every file of a partition shares, in order.
pub(crate) const PARTITION_COLUMNS: [&str; 3] = [SOURCE_COLUMN, DT_COLUMN, VERSION_COLUMN];

/// The columns that have one value a file: the above, and those on demand.
pub(crate) const CONSTANT_COLUMNS: [&str; 5] = [
    SOURCE_COLUMN,
    DT_COLUMN,
    VERSION_COLUMN,
    COMMIT_COLUMN,
    FILE_COLUMN,
];

/// The columns that a query has only where it names one of them.
pub(crate) const ORIGIN_COLUMNS: [&str; 3] = [COMMIT_COLUMN, FILE_COLUMN, ROW_COLUMN];

/// The rank of a row's file among the table's; no field can have the name, nor can SQL reach it.
pub(crate) const RANK_COLUMN: &str = "_rank of the file";

/// Columns that are not in every query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OnDemand {
    /// `_commit`, `_file` and `_row`.
    pub(crate) origin: bool,
    /// The rank of a row's file among those the table is made of.
    pub(crate) rank: bool,
}

/// A column that files hold.
#[derive(Debug, Clone)]
pub(crate) struct FieldColumn {
    /// Its field id.
    pub(crate) id: u32,
    /// Name and type as SQL sees them; texts of Parquet files are views.
    pub(crate) field: FieldRef,
    /// The same type with field ids at every depth.
    pub(crate) with_ids: FieldRef,
    /// Which fields of a file its values come from.
    pub(crate) source: ColumnSource,
    /// Its name within the scan. DataFusion brings a file's column to the text type of the scan's
    /// column of that name before ids are looked at, so a name that some version gives to another
    /// id is not used.
    pub(crate) scan_name: String,
}

/// All columns of a table.
#[derive(Debug)]
pub(crate) struct TableColumns {
    /// Columns that files hold, in order; `_extra` is the last.
    pub(crate) fields: Vec<FieldColumn>,
    /// The schema as SQL sees it.
    pub(crate) schema: SchemaRef,
    /// Every published version by number.
    pub(crate) versions: BTreeMap<u32, SchemaSpec>,
    on_demand: OnDemand,
}

/// Datasets whose columns are kept at most; of more, all are made anew.
const MOST_KNOWN: usize = 1024;

/// What columns were made of: hashes of the published versions.
type MadeOf = Vec<ContentHash>;

/// By dataset, with or without the columns of the rows' origin.
type Known = BTreeMap<(DatasetRef, bool), (MadeOf, Arc<TableColumns>)>;

/// The columns of tables that earlier queries named: most often the next one has the same.
#[derive(Debug, Default)]
pub(crate) struct KnownColumns(Mutex<Known>);

impl KnownColumns {
    /// The columns over these versions, with or without those of the rows' origin, if they are known.
    pub(crate) fn find(
        &self,
        dataset: &DatasetRef,
        with_origin: bool,
        versions: &[SchemaRow],
    ) -> Option<Arc<TableColumns>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (made_of, columns) = known.get(&(dataset.clone(), with_origin))?;
        let is_same = made_of.iter().eq(versions.iter().map(|row| &row.hash));
        is_same.then(|| Arc::clone(columns))
    }

    /// Keeps them.
    pub(crate) fn put(
        &self,
        dataset: &DatasetRef,
        with_origin: bool,
        versions: &[SchemaRow],
        columns: &Arc<TableColumns>,
    ) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        let made_of = versions.iter().map(|row| row.hash.clone()).collect();
        known.insert(
            (dataset.clone(), with_origin),
            (made_of, Arc::clone(columns)),
        );
    }
}

/// The type without any metadata.
pub(crate) fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|f| plain(f)).collect()),
        DataType::List(item) => DataType::List(plain(item)),
        DataType::Map(entries, sorted) => DataType::Map(plain(entries), *sorted),
        other => other.clone(),
    }
}

/// The field without any metadata.
pub(crate) fn plain(field: &Field) -> FieldRef {
    Arc::new(Field::new(
        field.name(),
        plain_type(field.data_type()),
        field.is_nullable(),
    ))
}

impl TableColumns {
    /// The columns over `versions`, and those that are wanted besides.
    pub(crate) fn new(versions: BTreeMap<u32, SchemaSpec>, on_demand: OnDemand) -> Self {
        let used: BTreeSet<(&str, u32)> = versions
            .values()
            .flat_map(|spec| spec.fields.iter().map(|f| (f.column_name(), f.id)))
            .collect();
        let format = format_of(&versions);
        let is_lines = format == FileFormat::Jsonl;
        let fields: Vec<FieldColumn> = merge_columns(&versions)
            .into_iter()
            // Whole values have no unknown fields beside them.
            .filter(|c| !is_lines || field_id(&c.field) != Some(EXTRA_FIELD_ID))
            .filter_map(|column| {
                // The reader of lines makes texts.
                let with_ids = match is_lines {
                    true => column.field,
                    false => with_views(&column.field),
                };
                let (id, name) = (field_id(&with_ids)?, with_ids.name().as_str());
                let shared = used.iter().any(|(n, other)| *n == name && *other != id);
                Some(FieldColumn {
                    id,
                    field: plain(&with_ids),
                    scan_name: match shared {
                        true => format!("{name}#{id}"),
                        false => name.to_owned(),
                    },
                    with_ids,
                    source: column.source,
                })
            })
            .collect();
        let mut all = partition_fields();
        all.extend(fields.iter().map(|c| Arc::clone(&c.field)));
        all.extend(on_demand.constant_fields());
        all.extend(on_demand.virtual_fields(format));
        Self {
            fields,
            schema: Arc::new(Schema::new(all)),
            versions,
            on_demand,
        }
    }

    /// Format of the files that hold them.
    pub(crate) fn format(&self) -> FileFormat {
        format_of(&self.versions)
    }

    /// Which columns are there besides.
    pub(crate) fn on_demand(&self) -> OnDemand {
        self.on_demand
    }

    /// The columns that files hold, by their names within the scan.
    pub(crate) fn scan_schema(&self) -> SchemaRef {
        Arc::new(Schema::new(
            self.fields
                .iter()
                .map(|c| Arc::new(c.field.as_ref().clone().with_name(&c.scan_name)))
                .collect::<Fields>(),
        ))
    }

    /// The constant columns of a file, in the order the scan appends them.
    pub(crate) fn constant_fields(&self) -> Vec<FieldRef> {
        let mut fields = partition_fields();
        fields.extend(self.on_demand.constant_fields());
        fields
    }

    /// The columns that the reader makes itself, which the scan appends last.
    pub(crate) fn virtual_fields(&self) -> Vec<FieldRef> {
        self.on_demand.virtual_fields(self.format())
    }

    /// The position within (file columns, constant columns, what the reader makes) of a position in [`Self::schema`].
    pub(crate) fn scan_index(&self, index: usize) -> usize {
        let (constants, fields) = (PARTITION_COLUMNS.len(), self.fields.len());
        if index < constants {
            fields + index
        } else if index < constants + fields {
            index - constants
        } else {
            index
        }
    }

    /// The file column at a position in [`Self::schema`]; `None` for any other column.
    pub(crate) fn field_at(&self, index: usize) -> Option<&FieldColumn> {
        self.fields.get(index.checked_sub(PARTITION_COLUMNS.len())?)
    }

    /// Whether a position in [`Self::schema`] is one of a constant column.
    pub(crate) fn is_constant(&self, index: usize) -> bool {
        let others = PARTITION_COLUMNS.len() + self.fields.len();
        let constants = others + self.on_demand.constant_fields().len();
        index < PARTITION_COLUMNS.len() || (others..constants).contains(&index)
    }

    /// The file column of that name.
    pub(crate) fn field_named(&self, name: &str) -> Option<&FieldColumn> {
        self.fields.iter().find(|c| c.field.name() == name)
    }
}

fn format_of(versions: &BTreeMap<u32, SchemaSpec>) -> FileFormat {
    let newest = versions.last_key_value();
    newest.map_or(FileFormat::Parquet, |(version, schema)| {
        FileFormat::of_version(schema.dataset.layer, *version)
    })
}

impl OnDemand {
    fn constant_fields(self) -> Vec<FieldRef> {
        let origin = [COMMIT_COLUMN, FILE_COLUMN].map(|n| Field::new(n, DataType::Utf8, false));
        let rank = Field::new(RANK_COLUMN, DataType::Int64, false);
        let mut fields = Vec::new();
        if self.origin {
            fields.extend(origin.map(Arc::new));
        }
        if self.rank {
            fields.push(Arc::new(rank));
        }
        fields
    }

    /// What the reader of Parquet files makes; that of lines makes nothing.
    fn virtual_fields(self, format: FileFormat) -> Vec<FieldRef> {
        let row = Field::new(ROW_COLUMN, DataType::Int64, false).with_extension_type(RowNumber);
        match format == FileFormat::Parquet && (self.origin || self.rank) {
            true => vec![Arc::new(row)],
            false => Vec::new(),
        }
    }
}

fn partition_fields() -> Vec<FieldRef> {
    vec![
        Arc::new(Field::new(SOURCE_COLUMN, DataType::Utf8, false)),
        Arc::new(Field::new(DT_COLUMN, DataType::Date32, false)),
        Arc::new(Field::new(VERSION_COLUMN, DataType::Int64, false)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lakebed::spec::FieldSpec;

    fn field(id: u32, name: &str, kind: &str) -> FieldSpec {
        FieldSpec::new(id, name, kind.parse().unwrap())
    }

    fn version(number: u32, fields: Vec<FieldSpec>) -> (u32, SchemaSpec) {
        let spec = SchemaSpec {
            dataset: "clean/w".parse().unwrap(),
            version: number,
            note: None,
            base: None,
            removed: Vec::new(),
            input: lakebed::spec::ReadSpec::default(),
            fields,
        };
        (number, spec)
    }

    fn names(columns: &TableColumns) -> Vec<&str> {
        columns
            .schema
            .fields()
            .iter()
            .map(|f| f.name().as_str())
            .collect()
    }

    #[test]
    fn the_newest_version_leads_and_names_never_clash() {
        let versions = BTreeMap::from([
            version(
                1,
                vec![
                    field(1, "標題", "string"),
                    field(2, "hot", "int"),
                    field(3, "gone", "int"),
                ],
            ),
            version(2, vec![field(2, "heat", "int"), field(4, "hot", "float")]),
            version(
                3,
                vec![
                    field(4, "hot", "float"),
                    field(2, "heat", "int"),
                    field(9, "dt", "string"),
                ],
            ),
        ]);
        let columns = TableColumns::new(
            versions,
            OnDemand {
                origin: true,
                rank: false,
            },
        );
        assert_eq!(
            names(&columns),
            [
                "source",
                "dt",
                "schema_version",
                "hot",
                "heat",
                "dt__v3",
                "標題",
                "gone",
                "_extra",
                "_commit",
                "_file",
                "_row"
            ]
        );
        assert_eq!(columns.scan_index(0), columns.fields.len());
        assert_eq!(columns.scan_index(3), 0);
        assert_eq!(columns.field_at(4).unwrap().id, 2);
        assert_eq!(columns.scan_index(9), 9);
    }

    #[test]
    fn an_older_field_of_the_same_name_is_marked_by_its_version() {
        let versions = BTreeMap::from([
            version(1, vec![field(1, "a", "bytes")]),
            version(2, vec![field(2, "a", "int")]),
        ]);
        let columns = TableColumns::new(versions, OnDemand::default());
        assert_eq!(names(&columns)[3..5], ["a", "a__v1"]);
    }

    #[test]
    fn struct_members_are_merged_by_id_at_every_depth() {
        let nested = |members: Vec<FieldSpec>| {
            let mut f = field(1, "who", "list<struct>");
            f.fields = members;
            vec![f]
        };
        let versions = BTreeMap::from([
            version(
                1,
                nested(vec![field(2, "nick", "string"), field(3, "age", "int")]),
            ),
            version(
                2,
                nested(vec![field(4, "nick", "int"), field(3, "years", "int")]),
            ),
        ]);
        let columns = TableColumns::new(versions, OnDemand::default());
        let DataType::List(item) = columns.fields[0].field.data_type() else {
            panic!()
        };
        let DataType::Struct(members) = item.data_type() else {
            panic!()
        };
        let got: Vec<_> = members.iter().map(|f| f.name().as_str()).collect();
        assert_eq!(got, ["nick", "years", "nick__v1"]);
        assert!(members.iter().all(|f| f.metadata().is_empty()));
    }
}

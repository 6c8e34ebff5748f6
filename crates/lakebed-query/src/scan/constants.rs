//! Rows of columns that have one value a file, made from what the catalog says.
//!
//! `source`, `dt`, `schema_version`, `_commit` and `_file` are the same in all rows of a file. The
//! catalog knows them and how many rows the file has, so a scan of nothing else opens no file.

use std::fmt;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt64Array,
};
use arrow::compute::take;
use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_datasource::source::DataSource;
use futures::stream;
use lakebed::catalog::FileRow;
use lakebed::name::DatasetRef;
use lakebed::spec::SOURCE_COLUMN;

use super::columns::{COMMIT_COLUMN, DT_COLUMN, FILE_COLUMN, VERSION_COLUMN};

/// The value of a constant column, file by file; `None` where the column is none.
pub(super) fn constant_column(
    name: &str,
    dataset: &DatasetRef,
    files: &[FileRow],
) -> Option<ArrayRef> {
    let texts = |of: fn(&FileRow) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(files.iter().map(of)))
    };
    Some(match name {
        SOURCE_COLUMN => {
            let source = dataset.source();
            Arc::new(StringArray::from_iter_values(
                files.iter().map(|_| source.as_str()),
            ))
        }
        DT_COLUMN => Arc::new(Date32Array::from_iter_values(
            files.iter().map(|f| f.key.dt.days()),
        )),
        VERSION_COLUMN => Arc::new(Int64Array::from_iter_values(
            files.iter().map(|f| i64::from(f.key.schema_version)),
        )),
        COMMIT_COLUMN => texts(|f| f.commit.as_str()),
        FILE_COLUMN => texts(|f| f.path.as_str()),
        _ => return None,
    })
}

/// The constant columns `fields`, one row a file.
pub(super) fn constant_columns(
    fields: &[FieldRef],
    dataset: &DatasetRef,
    files: &[FileRow],
) -> Vec<ArrayRef> {
    fields
        .iter()
        .filter_map(|field| constant_column(field.name(), dataset, files))
        .collect()
}

/// A batch of `rows` rows, which may have no columns.
pub(super) fn batch_of(
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

/// Rows that repeat what is known of each file.
#[derive(Debug, Clone)]
pub(super) struct ConstantRows {
    /// The table as written in SQL.
    pub(super) table: String,
    /// Files the catalog was asked about.
    pub(super) considered: u64,
    /// One row a file.
    pub(super) files: RecordBatch,
    /// How often each of them is repeated.
    pub(super) rows: Arc<[u64]>,
    /// What is known of the repeated rows.
    pub(super) statistics: Statistics,
    /// At most so many rows.
    pub(super) fetch: Option<usize>,
}

impl DataSource for ConstantRows {
    fn open(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let repeat = Repeat {
            files: self.files.clone(),
            rows: Arc::clone(&self.rows),
            next: (0, 0),
            left: self.fetch.unwrap_or(usize::MAX),
            batch_rows: context.session_config().batch_size().max(1),
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.files.schema(),
            stream::iter(repeat),
        )))
    }

    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(
                f,
                "{} by the catalog, files_considered={} files_read=0",
                self.table, self.considered
            ),
            DisplayFormatType::TreeRender => {
                writeln!(f, "files_considered={}", self.considered)?;
                writeln!(f, "files_read=0")
            }
        }
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(1)
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        EquivalenceProperties::new(self.files.schema())
    }

    fn partition_statistics(&self, _partition: Option<usize>) -> Result<Arc<Statistics>> {
        let statistics = self.statistics.clone();
        statistics.with_fetch(self.fetch, 0, 1).map(Arc::new)
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn DataSource>> {
        Some(Arc::new(Self {
            fetch,
            ..self.clone()
        }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn try_swapping_with_projection(
        &self,
        _projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        Ok(None)
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}

/// Makes the batches.
struct Repeat {
    files: RecordBatch,
    rows: Arc<[u64]>,
    /// A file, and how many of its rows were made.
    next: (usize, u64),
    left: usize,
    batch_rows: usize,
}

impl Repeat {
    /// Which file each row of the next batch is of; empty at the end.
    fn take_rows(&mut self) -> Vec<u64> {
        let wanted = self.batch_rows.min(self.left);
        let mut taken: Vec<u64> = Vec::new();
        while let (Some(&rows), true) = (self.rows.get(self.next.0), taken.len() < wanted) {
            let (file, made) = self.next;
            let room = u64::try_from(wanted - taken.len()).unwrap_or(u64::MAX);
            let n = room.min(rows - made);
            let index = u64::try_from(file).unwrap_or(u64::MAX);
            taken.extend((0..n).map(|_| index));
            self.next = match made + n == rows {
                true => (file + 1, 0),
                false => (file, made + n),
            };
        }
        self.left -= taken.len();
        taken
    }
}

impl Iterator for Repeat {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let taken = UInt64Array::from(self.take_rows());
        if taken.is_empty() {
            return None;
        }
        let columns = self.files.columns().iter();
        let columns: Result<Vec<ArrayRef>, _> = columns.map(|c| take(c, &taken, None)).collect();
        Some(match columns {
            Ok(columns) => batch_of(self.files.schema(), columns, taken.len()),
            Err(e) => Err(e.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};

    fn repeated(rows: &[u64], fetch: usize, batch_rows: usize) -> Vec<Vec<i64>> {
        let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]));
        let values = Int64Array::from_iter_values((0..).take(rows.len()));
        let batches = Repeat {
            files: batch_of(schema, vec![Arc::new(values)], rows.len()).unwrap(),
            rows: rows.into(),
            next: (0, 0),
            left: fetch,
            batch_rows,
        };
        batches
            .map(|b| {
                let b = b.unwrap();
                b.column(0).as_primitive::<Int64Type>().values().to_vec()
            })
            .collect()
    }

    #[test]
    fn each_file_is_repeated_over_the_ends_of_batches() {
        assert_eq!(
            repeated(&[0, 3, 0, 0, 2, 4, 0], usize::MAX, 4),
            [vec![1, 1, 1, 4], vec![4, 5, 5, 5], vec![5]]
        );
        assert_eq!(repeated(&[2, 2], 3, 2), [vec![0, 0], vec![1]]);
        assert_eq!(repeated(&[2, 2], 0, 2), Vec::<Vec<i64>>::new());
        assert_eq!(repeated(&[], 5, 2), Vec::<Vec<i64>>::new());
        assert_eq!(repeated(&[0, 0], 5, 2), Vec::<Vec<i64>>::new());
    }
}

//! The tables of one query: what its names stand for becomes something to plan over.
//!
//! Each query has tables of its own, made from what the catalog and the logs say at that moment.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider, SchemaProvider, TableProvider,
};
use lakebed::catalog::{Catalog, FileRow, PartitionFilter, SchemaRow, visible_files};
use lakebed::config::{DatasetConfig, SourceConfig};
use lakebed::log::{AsOf, DatasetState};
use lakebed::name::{DatasetRef, Layer};
use lakebed::spec::{PublishedSchema, SCHEMALESS_VERSION, SchemaSpec};
use lakebed::store::Lake;
use lakebed::{Error, Result};

use crate::error::{convert, nearest, quoted};
use crate::latest::{by_age, from_last_full_load, latest_name, latest_view, no_columns, no_key};
use crate::queue_tables::QueueTables;
use crate::scan::{KnownColumns, LakeTable, OnDemand, ScanTrace, TableColumns, TableInput};
use crate::statement::{
    DEFAULT_CATALOG, DatasetTable, NamedTable, ReadStatement, SYSTEM_SCHEMA, sql_name,
};
use crate::system::SystemTable;

/// Published versions by dataset, as the catalog has them at the beginning of a query.
pub(crate) type PublishedRows = BTreeMap<DatasetRef, Vec<SchemaRow>>;

/// Makes the tables of a query.
pub(crate) struct TableMaker<'a> {
    /// The lake.
    pub(crate) lake: &'a Lake,
    /// Its catalog, up to date.
    pub(crate) catalog: &'a Arc<dyn Catalog>,
    /// What the project declares.
    pub(crate) sources: &'a [SourceConfig],
    /// The queue.
    pub(crate) queue: &'a QueueTables,
    /// The versions of datasets of which they are known; the catalog is asked for others.
    pub(crate) published: PublishedRows,
    /// The columns that earlier queries made.
    pub(crate) columns: &'a KnownColumns,
    /// The query's notes.
    pub(crate) trace: &'a Arc<ScanTrace>,
}

/// A dataset's versions and files at a point in the past.
struct Past {
    versions: BTreeMap<u32, SchemaSpec>,
    state: DatasetState,
}

impl TableMaker<'_> {
    /// With versions that need not be asked for.
    pub(crate) fn with_published(self, published: PublishedRows) -> Self {
        Self { published, ..self }
    }

    /// The tables that the statement names, where it looks for them.
    pub(crate) async fn make(
        &self,
        statement: &ReadStatement,
    ) -> Result<Arc<dyn CatalogProviderList>> {
        let with_origin = statement.names_origin;
        let mut tables = TableSet::new()?;
        for name in &statement.tables {
            match name {
                NamedTable::Dataset(table) => {
                    let made = self.table(table, with_origin).await?;
                    tables.add(&table.place, made)?;
                }
                NamedTable::System(table) => self.add_system(&mut tables, *table).await?,
                NamedTable::Information => self.add_all(&mut tables, &statement.tables).await?,
                NamedTable::Unknown(name) => return Err(self.unknown_table(name).await),
            }
        }
        Ok(tables.list)
    }

    /// Tables that were made before, where the statement looks for them.
    pub(crate) fn make_of(
        &self,
        statement: &ReadStatement,
        made: &BTreeMap<DatasetRef, Arc<dyn TableProvider>>,
    ) -> Result<Arc<dyn CatalogProviderList>> {
        let mut tables = TableSet::new()?;
        for name in &statement.tables {
            if let NamedTable::Dataset(table) = name
                && let Some(made) = made.get(&table.dataset)
            {
                tables.add(&table.place, Arc::clone(made))?;
            }
        }
        Ok(tables.list)
    }

    async fn add_system(&self, tables: &mut TableSet, table: SystemTable) -> Result<()> {
        let made = table.load(&**self.catalog, self.queue).await?;
        tables.add_system(table, made)
    }

    /// Every table there is, for those who ask which there are; what the query names besides has its
    /// rows already or gets them, the others are empty views of the right columns.
    async fn add_all(&self, tables: &mut TableSet, named: &BTreeSet<NamedTable>) -> Result<()> {
        let is_new = |table: &NamedTable| !named.contains(table);
        for table in SystemTable::ALL {
            if is_new(&NamedTable::System(table)) {
                // A database that is away is no reason not to list what there is.
                match table.is_of_queue() {
                    true => tables.add_system(table, table.empty()?)?,
                    false => self.add_system(tables, table).await?,
                }
            }
        }
        let datasets = self.list_datasets().await?;
        for dataset in &datasets {
            let table = DatasetTable::new(dataset.clone());
            if is_new(&NamedTable::Dataset(table.clone())) {
                tables.add(&table.place, self.present(dataset, false).await?)?;
            }
        }
        for (dataset, declared, view) in self.latest_views(&datasets) {
            let view = DatasetTable::new(view);
            if is_new(&NamedTable::Dataset(view.clone())) {
                let versions = self.published_versions(dataset).await?;
                let table = self.ranked(dataset, specs(versions), Vec::new());
                // A key that names no column is told to whoever asks for the newest rows.
                if let Ok(made) = latest_view(table, &declared, false) {
                    tables.add(&view.place, made)?;
                }
            }
        }
        Ok(())
    }

    /// The datasets that have a table of newest rows, with what they declare and that table's name.
    pub(crate) fn latest_views<'b>(
        &self,
        datasets: &'b BTreeSet<DatasetRef>,
    ) -> Vec<(&'b DatasetRef, DatasetConfig, DatasetRef)> {
        let view = |dataset: &'b DatasetRef| {
            let declared = self.declared(dataset)?;
            let view = DatasetRef {
                layer: dataset.layer,
                dataset: latest_name(dataset).parse().ok()?,
            };
            let shown = declared.has_latest() && !datasets.contains(&view);
            shown.then_some((dataset, declared, view))
        };
        datasets.iter().filter_map(view).collect()
    }

    /// Every dataset that has a schema version, or holds JSON lines.
    pub(crate) async fn list_datasets(&self) -> Result<BTreeSet<DatasetRef>> {
        let rows = self.catalog.list_schemas(None).await?;
        let mut datasets = self.schemaless_datasets(None).await?;
        datasets.extend(rows.into_iter().map(|row| row.dataset));
        Ok(datasets)
    }

    /// Datasets of JSON lines: all, or the one if it is such.
    async fn schemaless_datasets(&self, one: Option<&DatasetRef>) -> Result<BTreeSet<DatasetRef>> {
        let filter = PartitionFilter {
            dataset: one.cloned(),
            schema_versions: vec![SCHEMALESS_VERSION],
            all_states: true,
            ..PartitionFilter::default()
        };
        let rows = self.catalog.list_partitions(&filter).await?;
        // Packs are no tables.
        let datasets = rows.into_iter().map(|r| r.dataset);
        Ok(datasets.filter(|d| d.layer != Layer::Raw).collect())
    }

    /// Whether there is a table of the dataset itself.
    async fn is_known(&self, dataset: &DatasetRef) -> Result<bool> {
        Ok(!self.catalog.list_schemas(Some(dataset)).await?.is_empty()
            || !self.schemaless_datasets(Some(dataset)).await?.is_empty())
    }

    fn declared(&self, dataset: &DatasetRef) -> Option<DatasetConfig> {
        let source = dataset.source();
        let known = self.sources.iter().find(|s| s.name == source)?;
        Some(known.dataset(dataset))
    }

    async fn table(
        &self,
        table: &DatasetTable,
        with_origin: bool,
    ) -> Result<Arc<dyn TableProvider>> {
        let dataset = &table.dataset;
        if let Some(of) = table.latest_of()
            && !self.is_known(dataset).await?
        {
            return self.latest(&of, table.as_of, with_origin).await;
        }
        match table.as_of {
            None => self.present(dataset, with_origin).await,
            Some(as_of) => self.as_of(dataset, as_of, with_origin).await,
        }
    }

    /// A dataset as it was.
    pub(crate) async fn as_of(
        &self,
        dataset: &DatasetRef,
        as_of: AsOf,
        with_origin: bool,
    ) -> Result<Arc<dyn TableProvider>> {
        let Past { versions, state } = self.past(dataset, as_of).await?;
        let columns = Arc::new(TableColumns::new(versions, origin(with_origin)));
        let files = Some(Arc::new(visible_files(&state)));
        Ok(Arc::new(self.lake_table(dataset, columns, files)))
    }

    /// A dataset as it is now.
    pub(crate) async fn present(
        &self,
        dataset: &DatasetRef,
        with_origin: bool,
    ) -> Result<Arc<dyn TableProvider>> {
        let rows = self.published_rows(dataset).await?;
        let columns = match self.columns.find(dataset, with_origin, &rows) {
            Some(known) => known,
            None => {
                let versions = specs_or_lines(dataset, read_versions(dataset, &rows)?);
                let made = Arc::new(TableColumns::new(versions, origin(with_origin)));
                self.columns.put(dataset, with_origin, &rows, &made);
                made
            }
        };
        Ok(Arc::new(self.lake_table(dataset, columns, None)))
    }

    async fn latest(
        &self,
        of: &DatasetRef,
        as_of: Option<AsOf>,
        with_origin: bool,
    ) -> Result<Arc<dyn TableProvider>> {
        let published = self.published_versions(of).await?;
        if published.is_empty() {
            return Err(no_columns(of));
        }
        let declared = self.declared(of).filter(DatasetConfig::has_latest);
        let declared = declared.ok_or_else(|| no_key(of))?;
        let Past { versions, state } = match as_of {
            Some(as_of) => self.past(of, as_of).await?,
            None => Past {
                versions: specs(published),
                state: DatasetState::load(self.lake, of).await?,
            },
        };
        let table = self.ranked(of, versions, from_last_full_load(&state));
        latest_view(table, &declared, with_origin)
    }

    /// The table that the rows of one object are looked for in, and the declared key.
    pub(crate) async fn history(
        &self,
        dataset: &DatasetRef,
    ) -> Result<(Arc<LakeTable>, Vec<String>)> {
        let versions = specs(self.published_versions(dataset).await?);
        if versions.is_empty() {
            return Err(no_columns(dataset));
        }
        let declared = self.declared(dataset).unwrap_or_default();
        if declared.key.is_empty() {
            return Err(no_key(dataset));
        }
        let state = DatasetState::load(self.lake, dataset).await?;
        let table = self.ranked(dataset, versions, by_age(visible_files(&state)));
        Ok((table, declared.key))
    }

    fn ranked(
        &self,
        dataset: &DatasetRef,
        versions: BTreeMap<u32, SchemaSpec>,
        files: Vec<FileRow>,
    ) -> Arc<LakeTable> {
        let on_demand = OnDemand {
            origin: true,
            rank: true,
        };
        let columns = Arc::new(TableColumns::new(versions, on_demand));
        Arc::new(self.lake_table(dataset, columns, Some(Arc::new(files))))
    }

    fn lake_table(
        &self,
        dataset: &DatasetRef,
        columns: Arc<TableColumns>,
        files: Option<Arc<Vec<FileRow>>>,
    ) -> LakeTable {
        LakeTable::new(TableInput {
            lake: self.lake.clone(),
            catalog: Arc::clone(self.catalog),
            dataset: dataset.clone(),
            columns,
            files,
            trace: Arc::clone(self.trace),
        })
    }

    /// The dataset as it was: with the columns that were published by then.
    async fn past(&self, dataset: &DatasetRef, as_of: AsOf) -> Result<Past> {
        let published = self.published_versions(dataset).await?;
        let state = DatasetState::load_as_of(self.lake, dataset, as_of).await?;
        let used: BTreeSet<u32> = state
            .partitions()
            .keys()
            .map(|k| k.schema_version)
            .collect();
        let until = match as_of {
            AsOf::Instant(instant) => Some(instant),
            AsOf::Record(_) => state.last_at(),
        };
        let was_there = |p: &PublishedSchema| {
            used.contains(&p.schema.version) || until.is_some_and(|t| p.published_at <= t)
        };
        // Before everything there is the first version: a table needs columns.
        let there = published.into_iter().enumerate();
        let versions = there
            .filter(|(i, p)| *i == 0 || was_there(p))
            .map(|(_, p)| p);
        Ok(Past {
            versions: specs_or_lines(dataset, versions.collect()),
            state,
        })
    }

    /// Every published version of a dataset, in order; none where it holds JSON lines, else none is an
    /// unknown table.
    async fn published_versions(&self, dataset: &DatasetRef) -> Result<Vec<PublishedSchema>> {
        read_versions(dataset, &self.published_rows(dataset).await?)
    }

    /// As [`Self::published_versions`], as the catalog has them.
    async fn published_rows(&self, dataset: &DatasetRef) -> Result<Cow<'_, [SchemaRow]>> {
        let rows = match self.published.get(dataset) {
            Some(known) => Cow::Borrowed(known.as_slice()),
            None => Cow::Owned(self.catalog.list_schemas(Some(dataset)).await?),
        };
        if rows.is_empty() && self.schemaless_datasets(Some(dataset)).await?.is_empty() {
            return Err(self.unknown_table(&sql_name(dataset)).await);
        }
        Ok(rows)
    }

    async fn unknown_table(&self, name: &str) -> Error {
        let error = Error::not_found(format!("there is no table `{name}`"));
        let Ok(known) = self.list_datasets().await else {
            return error;
        };
        let mut known: Vec<String> = known.iter().map(sql_name).collect();
        let datasets = known.clone();
        known.extend(SystemTable::ALL.map(|t| format!("{SYSTEM_SCHEMA}.{}", t.as_str())));
        let tail = |n: &str| n.split_once('.').map_or(n, |(_, t)| t).to_owned();
        let mut near = nearest(name, known.iter().map(String::as_str));
        if near.is_empty() {
            // The layer may be the wrong part of the name.
            let wanted = tail(name);
            near = known
                .iter()
                .map(String::as_str)
                .filter(|k| tail(k) == wanted || k.ends_with(&format!(".{name}")))
                .take(3)
                .collect();
        }
        let error = match near.is_empty() {
            true => error,
            false => error.hint(format!("did you mean {}?", quoted(&near))),
        };
        match datasets.as_slice() {
            [] => error.hint(
                "no dataset has a published schema or JSON lines yet: `lakebed schema publish` makes the first",
            ),
            few if few.len() <= 20 => error.hint(format!("tables are {}", quoted(few))),
            _ => error.hint("`SHOW TABLES` lists them all"),
        }
    }
}

fn read_versions(dataset: &DatasetRef, rows: &[SchemaRow]) -> Result<Vec<PublishedSchema>> {
    let read = rows.iter().map(|row| {
        serde_json::from_str(&row.schema).map_err(|e| {
            Error::corrupt(format!("read a schema version from the catalog: {e}"))
                .with("dataset", dataset)
                .with("schema_version", row.version)
                .hint("`lakebed catalog rebuild` makes the catalog anew from the lake")
        })
    });
    read.collect()
}

fn specs(published: Vec<PublishedSchema>) -> BTreeMap<u32, SchemaSpec> {
    let schemas = published.into_iter().map(|p| p.schema);
    schemas.map(|schema| (schema.version, schema)).collect()
}

/// The versions; without any, what stands in their place for JSON lines.
fn specs_or_lines(
    dataset: &DatasetRef,
    published: Vec<PublishedSchema>,
) -> BTreeMap<u32, SchemaSpec> {
    if published.is_empty() {
        let spec = SchemaSpec::schemaless(dataset.clone());
        return BTreeMap::from([(spec.version, spec)]);
    }
    specs(published)
}

fn origin(origin: bool) -> OnDemand {
    OnDemand {
        origin,
        rank: false,
    }
}

/// Tables by catalog and schema.
struct TableSet {
    list: Arc<MemoryCatalogProviderList>,
}

impl TableSet {
    fn new() -> Result<Self> {
        let set = Self {
            list: Arc::new(MemoryCatalogProviderList::new()),
        };
        for layer in Layer::ALL {
            set.schema(DEFAULT_CATALOG, layer.as_str())?;
        }
        Ok(set)
    }

    fn schema(&self, catalog: &str, schema: &str) -> Result<Arc<dyn SchemaProvider>> {
        let catalog = match self.list.catalog(catalog) {
            Some(known) => known,
            None => {
                let new: Arc<dyn CatalogProvider> = Arc::new(MemoryCatalogProvider::new());
                self.list
                    .register_catalog(catalog.to_owned(), Arc::clone(&new));
                new
            }
        };
        if let Some(known) = catalog.schema(schema) {
            return Ok(known);
        }
        let new: Arc<dyn SchemaProvider> = Arc::new(MemorySchemaProvider::new());
        catalog
            .register_schema(schema, Arc::clone(&new))
            .map_err(|e| convert(&e))?;
        Ok(new)
    }

    fn add_system(&mut self, table: SystemTable, made: Arc<dyn TableProvider>) -> Result<()> {
        let place = [DEFAULT_CATALOG, SYSTEM_SCHEMA, table.as_str()];
        self.add(&place.map(str::to_owned), made)
    }

    fn add(&mut self, place: &[String; 3], table: Arc<dyn TableProvider>) -> Result<()> {
        let [catalog, schema, name] = place;
        self.schema(catalog, schema)?
            .register_table(name.clone(), table)
            .map_err(|e| convert(&e))?;
        Ok(())
    }
}

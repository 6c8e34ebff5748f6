//! Two queries over the same parents.
//!
//! SHD-2: both see a parent as it was after one record of its log.

use std::collections::BTreeMap;
use std::path::Path;

use lakebed::config::SourceConfig;
use lakebed::flow::{
    Derived, ShadowBegun, ShadowDate, ShadowOptions, ShadowPair, ShadowTable, Shadowed,
    check_shadow_key, shadow_derived, shadow_key,
};
use lakebed::name::{ContentHash, DatasetRef};
use lakebed::spec::FieldSpec;
use lakebed::time::BusinessDate;
use lakebed::{Error, ErrorKind, Result};
use lakebed_query::{DeriveQuery, DerivedParent};

use crate::commands::derive::{ReadParents, hash_parents, query_of, read_parents, write_rows};
use crate::commands::sql_engine;
use crate::context::Context;

/// Two queries of one dataset.
pub(super) struct ShadowQueries<'a> {
    context: &'a Context<'a>,
    /// The declared key of the dataset.
    key: Vec<String>,
    old: Query,
    new: Query,
    pair: ShadowPair,
}

/// One of both, and the file that declares it.
struct Query {
    derived: Derived,
    file: String,
}

/// The query that is meant.
fn query_name(source: &SourceConfig, given: Option<&str>) -> Result<String> {
    let names: Vec<&str> = source.derive.keys().map(String::as_str).collect();
    match (given, names.as_slice()) {
        (Some(name), _) => Ok(name.to_owned()),
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(Error::not_found(format!(
            "source `{}` declares no derived dataset",
            source.name
        ))
        .hint("[derive.<name>] with `sql` and `parents` declares one: docs/flow.md")),
        (None, names) => Err(
            Error::invalid(format!("`{}` has several queries", source.name))
                .hint(format!("name one with `--name`: {}", names.join(", "))),
        ),
    }
}

impl<'a> ShadowQueries<'a> {
    pub(super) fn open(
        context: &'a Context<'a>,
        (old, new): (&SourceConfig, (&SourceConfig, &Path)),
        name: Option<&str>,
    ) -> Result<Self> {
        let (new, with) = new;
        let name = query_name(old, name)?;
        let file = context.project().source_file(&old.name);
        let query = |source: &SourceConfig, of: &Path| {
            Ok::<_, Error>(Query {
                derived: Derived::read_of(source, &name, (of, &file))?,
                file: of.display().to_string(),
            })
        };
        let declared = old;
        let (old, new) = (query(old, &file)?, query(new, with)?);
        let rules = (&old.derived.rules, &new.derived.rules);
        let pair = ShadowPair::new(&declared.name, &format!("derive.{name}"), rules)?;
        Ok(Self {
            context,
            key: declared.dataset(&old.derived.dataset).key,
            old,
            new,
            pair,
        })
    }

    pub(super) fn pair(&self) -> &ShadowPair {
        &self.pair
    }

    fn dataset(&self) -> &DatasetRef {
        &self.old.derived.dataset
    }

    pub(super) async fn compare(
        &self,
        date: BusinessDate,
        options: &ShadowOptions,
    ) -> Result<Shadowed> {
        let old = self.parents_of(&self.old, date).await?;
        let new = self.parents_of(&self.new, date).await?;
        let (old, mut new) = match (old, new) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(why), _) | (_, Err(why)) => return Ok(Shadowed::Missing(why)),
        };
        // Both see a parent as it was after one record of its log.
        for (dataset, seen) in &mut new.seen {
            if let Some(same) = old.seen.get(dataset) {
                seen.position = same.position;
            }
        }
        let mut inputs = blake3::Hasher::new();
        hash_parents(&mut inputs, &old.stamps);
        hash_parents(&mut inputs, &new.stamps);
        let inputs = ContentHash::finish(&inputs);
        let open = match ShadowDate::begin(&self.pair, (date, inputs), options)? {
            ShadowBegun::Kept(day) => return Ok(Shadowed::Compared(day)),
            ShadowBegun::Open(open) => open,
        };
        let fields = (
            self.fields(&self.old, date, &old.seen).await?,
            self.fields(&self.new, date, &new.seen).await?,
        );
        let key = shadow_key(self.dataset(), &self.key, (&fields.0, &fields.1), options)?;
        let work = open.work()?.to_owned();
        let mut tables = Vec::new();
        for (query, seen, fields, side) in [
            (&self.old, old.seen, fields.0, "old"),
            (&self.new, new.seen, fields.1, "new"),
        ] {
            let path = work.join(format!("{side}.parquet"));
            let sorted = DeriveQuery {
                order: key.clone(),
                ..query_of(&query.derived, date, seen)
            };
            let written = write_rows(self.context, &sorted, &path).await;
            written.map_err(|e| e.with("file", &query.file))?;
            tables.push(ShadowTable { path, fields });
        }
        let [old, new] = tables.as_slice() else {
            return Err(Error::internal("two queries became another number"));
        };
        let day = shadow_derived(*open, (self.dataset(), &key), (old, new), options)?;
        Ok(Shadowed::Compared(day))
    }

    /// What the query reads of its parents; `Err` of the answer = why it cannot.
    async fn parents_of(
        &self,
        query: &Query,
        date: BusinessDate,
    ) -> Result<Result<ReadParents, String>> {
        match read_parents(self.context, &query.derived, date).await {
            Ok(parents) => Ok(Ok(parents)),
            Err(e) if e.kind() == ErrorKind::PreconditionFailed => Ok(Err(format!(
                "the query of {} cannot be asked: {}",
                query.file,
                e.message()
            ))),
            Err(e) => Err(e.with("file", &query.file)),
        }
    }

    async fn fields(
        &self,
        query: &Query,
        date: BusinessDate,
        seen: &BTreeMap<DatasetRef, DerivedParent>,
    ) -> Result<Vec<FieldSpec>> {
        let asked = query_of(&query.derived, date, seen.clone());
        let fields = sql_engine(self.context)?.derived_fields(&asked).await;
        let fields = fields.map_err(|e| e.with("file", &query.file))?;
        check_shadow_key(&self.key, &fields, &query.file)?;
        Ok(fields)
    }
}

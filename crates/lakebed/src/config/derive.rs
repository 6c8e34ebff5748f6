//! Derived datasets: the tables `[derive.<name>]` of a source's `source.toml`, as they are written.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::name::{DatasetName, DatasetRef, Layer, SourceName};

/// The table `[derive.<name>]`: rows of `feature/<source>.<name>` by SQL.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeriveConfig {
    /// The query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// The file of the query, beside `source.toml`, instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The datasets that it reads; of each, which dates.
    pub parents: Vec<ParentConfig>,
    /// Columns of the result that order its rows; equal rows of the order are ordered by all columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// Whether a day without a row is good.
    #[serde(default)]
    pub allow_empty: bool,
    /// Whether parents may be read before their dates are sealed; what comes of them is not sealed either.
    #[serde(default)]
    pub unsealed: bool,
}

/// A dataset that a query reads: its name alone, or a table with the dates.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum ParentConfig {
    /// The day of the call.
    Name(DatasetRef),
    /// With its dates.
    Table(ParentTable),
}

/// A parent with its dates.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ParentTable {
    /// The dataset.
    pub dataset: DatasetRef,
    /// Which dates of it the query sees.
    #[serde(default)]
    pub dates: ParentDates,
}

/// Which dates of a parent a query sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ParentDates {
    /// The day of the call.
    #[default]
    Day,
    /// The day before it.
    Previous,
    /// The days of its month, up to it.
    Month,
    /// All days up to it.
    Until,
}

impl ParentConfig {
    /// The dataset.
    #[must_use]
    pub fn dataset(&self) -> &DatasetRef {
        match self {
            Self::Name(dataset) => dataset,
            Self::Table(table) => &table.dataset,
        }
    }

    /// Which dates of it.
    #[must_use]
    pub fn dates(&self) -> ParentDates {
        match self {
            Self::Name(_) => ParentDates::Day,
            Self::Table(table) => table.dates,
        }
    }
}

impl DeriveConfig {
    /// Checks what the types cannot say; `name` is that of the table.
    pub(super) fn check(&self, source: &SourceName, name: &str, file: &str) -> Result<()> {
        let refuse = |key: &str, what: String, hint: &str| {
            Err(Error::invalid(what)
                .with("file", file)
                .with("key", format!("derive.{name}{key}"))
                .hint(hint))
        };
        let dataset = match derived_dataset(source, name) {
            Ok(dataset) => dataset,
            Err(e) => return Err(e.with("file", file).with("key", format!("derive.{name}"))),
        };
        if self.sql.is_some() == self.file.is_some() {
            return refuse(
                "",
                format!("`{name}` needs the text or the file of its query, one of them"),
                "sql = \"SELECT ...\", or file = \"query.sql\"",
            );
        }
        if self.parents.is_empty() {
            return refuse(
                ".parents",
                format!("`{name}` names no parent"),
                "parents = [\"clean/...\"], every dataset that the query reads",
            );
        }
        let mut seen = std::collections::BTreeSet::new();
        for parent in self.parents.iter().map(ParentConfig::dataset) {
            if !seen.insert(parent) {
                return refuse(
                    ".parents",
                    format!("`{parent}` stands twice among the parents"),
                    "name it once, with the widest dates",
                );
            }
            if parent.layer == Layer::Raw {
                return refuse(
                    ".parents",
                    format!("`{parent}` holds packs: SQL reads tables"),
                    "parse rules make tables of pages: docs/parse.md",
                );
            }
        }
        let same_day = |p: &&ParentConfig| p.dates() != ParentDates::Previous;
        if self
            .parents
            .iter()
            .filter(same_day)
            .any(|p| *p.dataset() == dataset)
        {
            return refuse(
                ".parents",
                format!("`{dataset}` is made from itself"),
                "of its own rows a query sees the day before alone: { dataset = \"...\", dates = \"previous\" }",
            );
        }
        Ok(())
    }
}

/// The dataset that a table `[derive.<name>]` makes.
///
/// # Errors
/// `InvalidInput` for a name that no dataset can have.
pub fn derived_dataset(source: &SourceName, name: &str) -> Result<DatasetRef> {
    let dataset: DatasetName = format!("{source}.{name}").parse()?;
    Ok(DatasetRef {
        layer: Layer::Feature,
        dataset,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<DeriveConfig> {
        let config: DeriveConfig = crate::config::parse_toml(text, "source.toml")?;
        config.check(&"rent".parse().unwrap(), "units", "source.toml")?;
        Ok(config)
    }

    #[test]
    fn a_query_and_its_parents_are_needed() {
        let good = config(
            "sql = \"SELECT 1\"\nparents = [\"clean/rent\", { dataset = \"feature/rent.units\", dates = \"previous\" }]",
        )
        .unwrap();
        assert_eq!(good.parents[0].dates(), ParentDates::Day);
        assert_eq!(good.parents[1].dates(), ParentDates::Previous);
        for (text, key) in [
            ("parents = [\"clean/rent\"]", "derive.units"),
            (
                "sql = \"x\"\nfile = \"y\"\nparents = [\"clean/rent\"]",
                "derive.units",
            ),
            ("sql = \"x\"\nparents = []", "derive.units.parents"),
            (
                "sql = \"x\"\nparents = [\"raw/rent\"]",
                "derive.units.parents",
            ),
            (
                "sql = \"x\"\nparents = [\"clean/a\", \"clean/a\"]",
                "derive.units.parents",
            ),
            (
                "sql = \"x\"\nparents = [\"feature/rent.units\"]",
                "derive.units.parents",
            ),
        ] {
            let error = config(text).unwrap_err();
            assert!(
                error.context().iter().any(|(_, v)| v == key),
                "{text}: {error:?}"
            );
        }
    }
}

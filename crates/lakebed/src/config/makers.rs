//! Who makes what: a dataset below `feature/` that a fold or a query of a source makes has no other maker.
//!
//! Two of them would replace each other's rows day after day, and each would find its own work changed.

use std::collections::BTreeMap;

use crate::config::{DeriveConfig, FlowConfig, FoldConfig, derived_dataset};
use crate::error::{Error, Result};
use crate::name::{DatasetRef, FoldName, SourceName};

/// The tables of a source that make datasets.
pub(super) struct Makers<'a> {
    pub(super) source: &'a SourceName,
    pub(super) folds: &'a BTreeMap<FoldName, FoldConfig>,
    pub(super) derives: &'a BTreeMap<String, DeriveConfig>,
    pub(super) flow: Option<&'a FlowConfig>,
}

impl Makers<'_> {
    /// Refuses two makers of one dataset.
    pub(super) fn check(&self, file: &str) -> Result<()> {
        let mut known: BTreeMap<DatasetRef, String> = BTreeMap::new();
        let mut add = |name: &str, key: String| {
            let dataset = derived_dataset(self.source, name)?;
            match known.get(&dataset) {
                Some(other) => Err(refusal(&dataset, (other, &key), file)),
                None => {
                    known.insert(dataset, key);
                    Ok(())
                }
            }
        };
        for fold in self.folds.keys() {
            add(fold.as_str(), format!("fold.{fold}"))?;
        }
        for fold in self.folds.keys() {
            add(&format!("{fold}_events"), format!("fold.{fold}"))?;
        }
        for derive in self.derives.keys() {
            add(derive, format!("derive.{derive}"))?;
        }
        let stages = self.flow.into_iter().flat_map(|flow| &flow.stage);
        for (n, stage) in stages.enumerate() {
            let written = stage.written().into_iter();
            for (dataset, key) in written {
                if let Some(maker) = known.get(&dataset) {
                    let key = format!("flow.stage[{}].{key}", n + 1);
                    return Err(refusal(&dataset, (maker, &key), file));
                }
            }
        }
        Ok(())
    }
}

fn refusal(dataset: &DatasetRef, (one, other): (&str, &str), file: &str) -> Error {
    Error::invalid(format!(
        "`{dataset}` has two makers: [{one}] and `{other}`"
    ))
    .with("file", file)
    .with("key", other)
    .hint("give one of them another name: each would replace the rows of the other")
    .hint("a fold makes `feature/<source>.<name>` and `feature/<source>.<name>_events`, a query `feature/<source>.<name>`")
}

#[cfg(test)]
mod tests {
    use crate::config::SourceConfig;

    const FOLD: &str = "[fold.NAME]\nkey = [\"id\"]\n[[fold.NAME.from]]\ndataset = \"shop.list\"\npresence = true\n[fold.NAME.field]\nprice = \"newest\"\ngone = \"days_absent\"\n";
    const DERIVE: &str =
        "[derive.NAME]\nsql = \"SELECT 1 AS one\"\nparents = [\"clean/shop.list\"]\n";

    #[test]
    fn a_dataset_has_one_maker() {
        let parse = |tables: &[(&str, &str)]| {
            let tables = tables.iter().map(|(text, name)| text.replace("NAME", name));
            let text = format!("class = \"log\"\n{}", tables.collect::<String>());
            SourceConfig::parse(&"shop".parse().unwrap(), &text, "source.toml")
        };
        let ingest = "[[flow.stage]]\nkind = \"ingest\"\ndatasets = [\"feature/shop.NAME\"]\ninputs = [\"x.jsonl\"]\n";
        let shell = "[[flow.stage]]\nkind = \"shell\"\ncommand = [\"true\"]\noutputs = [\"x.txt\", \"feature/shop.NAME\"]\n";
        for (second, key) in [
            ((DERIVE, "item"), "derive.item"),
            ((DERIVE, "item_events"), "derive.item_events"),
            ((FOLD, "item_events"), "fold.item"),
            ((ingest, "item"), "flow.stage[1].datasets"),
            ((ingest, "item_events"), "flow.stage[1].datasets"),
            ((shell, "item"), "flow.stage[1].outputs"),
        ] {
            let error = parse(&[(FOLD, "item"), second]).unwrap_err();
            let text = format!("{error:?}");
            assert!(error.message().contains("has two makers"), "{error}");
            assert!(error.message().contains("fold.item"), "{error}");
            assert!(text.contains(key), "{text}");
        }
        for second in [(DERIVE, "price"), (ingest, "other"), (FOLD, "event")] {
            parse(&[(FOLD, "item"), second]).unwrap();
        }
        parse(&[(DERIVE, "item"), (shell, "item")]).unwrap_err();
    }
}

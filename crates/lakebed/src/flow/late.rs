//! Packs that came after the crawls of a flow: of retries, of a crawl by hand, of an import.
//!
//! FLW-7: every pack of a date is an input of a parse stage of it. A stage reads the runs that its flow crawls; a run that
//! no flow of the date crawls is read with the one that it goes back to by its name (`day-2` with `day`, the longest such
//! name), and with the whole day where its name goes back to none.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::flow::scope::{FlowRuns, Scope, Sights};
use crate::name::RunName;
use crate::spec::PackFileName;
use crate::store::StorePath;

impl Sights {
    /// The runs that came late and are read with those of the scope, sorted.
    ///
    /// # Errors
    /// Those of reading a log and of listing the stamps of the date.
    pub(super) async fn late_runs(
        &mut self,
        flow: &FlowRuns,
        scope: &Scope,
    ) -> Result<BTreeSet<RunName>> {
        let state = self.state(&scope.dataset).await?;
        let names = state.visible_of(scope.to).flat_map(|(_, p)| p.files.keys());
        let mut late: BTreeSet<RunName> = names
            .filter_map(|name| PackFileName::parse(name))
            .map(|pack| pack.run)
            .filter(|run| !flow.crawled.contains(run))
            .collect();
        if late.is_empty() {
            return Ok(late);
        }
        // What flows of other runs crawl is theirs, and so is what goes back to it.
        let folder = StorePath::new(format!("flow/{}/{}", flow.source, scope.to))?;
        let flows = self.lake().store().list_names(&folder).await?;
        let mut known = flow.crawled.clone();
        known.extend(flows.iter().filter_map(|name| name.parse::<RunName>().ok()));
        late.retain(|run| match first_of(run, &known) {
            Some(first) => scope.runs.contains(first),
            None => flow.is_whole,
        });
        Ok(late)
    }
}

/// The known run that this one goes back to by its name: itself, or the longest that it continues behind a hyphen.
fn first_of<'k>(run: &RunName, known: &'k [RunName]) -> Option<&'k RunName> {
    let goes_back = |first: &&RunName| {
        let rest = run.as_str().strip_prefix(first.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    known
        .iter()
        .filter(goes_back)
        .max_by_key(|first| first.as_str().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_back_to_the_longest_name_that_it_continues() {
        let names =
            |texts: &[&str]| -> Vec<RunName> { texts.iter().map(|t| t.parse().unwrap()).collect() };
        let known = names(&["day", "day-detail", "0900"]);
        for (run, expected) in [
            ("day", Some("day")),
            ("day-2", Some("day")),
            ("day-detail", Some("day-detail")),
            ("day-detail-2", Some("day-detail")),
            ("day-details", Some("day")),
            ("daylight", None),
            ("0900-2", Some("0900")),
            ("imported", None),
        ] {
            let run = run.parse().unwrap();
            let found = first_of(&run, &known).map(RunName::as_str);
            assert_eq!(found, expected, "{run}");
        }
    }
}

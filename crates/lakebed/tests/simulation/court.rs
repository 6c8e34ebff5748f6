//! A lake under judgement: what its readers see, and what must hold where nobody writes.

use std::sync::Arc;

use lakebed::catalog::{Catalog, PartitionFilter, rebuild, sync_all};
use lakebed::govern::audit::{AuditOptions, audit};
use lakebed::log::{DatasetState, find_file};

use crate::judge::{Judge, Verified};
use crate::operation::Operation;
use crate::witness::{Rows, list_stage};
use crate::world::{World, audit_and_repair, dataset_ref};

/// A lake with the judges of its datasets.
#[derive(Debug)]
pub(crate) struct Court {
    pub(crate) world: World,
    pub(crate) judges: Vec<Judge>,
    pub(crate) rows: Rows,
}

/// How closely a lake at rest is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Closely {
    /// Every byte.
    pub(crate) deep: bool,
    /// Every row of the catalog against one that is made anew.
    pub(crate) rebuilt: bool,
}

fn fail(error: lakebed::Error) -> String {
    format!("at rest: {error}; {:?}", error.hints())
}

impl Court {
    pub(crate) fn judge(&mut self, dataset: &str) -> &mut Judge {
        let mut judges = self.judges.iter_mut();
        judges.find(|j| j.dataset == dataset).unwrap()
    }

    /// A command begins; a repair touches every dataset.
    pub(crate) fn begin(&mut self, dataset: &str, user: &str, operation: &Operation) {
        let everywhere = matches!(operation, Operation::Repair);
        for judge in &mut self.judges {
            if judge.dataset == dataset || everywhere {
                judge.begin(user, operation.clone());
            }
        }
    }

    /// What was committed is right, and so are the folders at this moment.
    pub(crate) fn check_moment(&mut self) -> Verified {
        for judge in &mut self.judges {
            judge.follow()?;
            judge.check_folder()?;
        }
        Ok(())
    }

    /// Readers of the log and of the catalog see the rows of the model, each once.
    pub(crate) async fn check_readers(&mut self) -> Verified {
        let lake = self.world.lake().await;
        for judge in &self.judges {
            let dataset = dataset_ref(judge.dataset);
            let state = DatasetState::load(&lake, &dataset)
                .await
                .map_err(|e| e.to_string())?;
            for (dt, day) in &judge.model().days {
                let mut rows = Vec::new();
                for (key, partition) in state.visible_of(dt.parse().unwrap()) {
                    for name in partition.files.keys() {
                        let place = find_file(&lake, &state, key, name).await;
                        let Ok(Some(place)) = place else {
                            return Err(format!("{name} of {key} is nowhere: {place:?}"));
                        };
                        rows.extend(self.rows.of(&lake.store().local_path(&place).unwrap()));
                    }
                }
                rows.sort_unstable();
                if rows != day.rows() {
                    let model = day.rows();
                    return Err(format!("the fold of {dt} shows {rows:?}, not {model:?}"));
                }
            }
            let position = self.world.catalog.position(&dataset).await.unwrap();
            let model = &judge.models[usize::try_from(position.number).unwrap()];
            let filter = PartitionFilter {
                dataset: Some(dataset.clone()),
                ..PartitionFilter::default()
            };
            let days = self.world.catalog.list_source_days(&filter).await.unwrap();
            let found: Vec<_> = days
                .iter()
                .map(|d| (d.dt.to_string(), d.row_count, d.is_complete))
                .collect();
            let wanted: Vec<_> = model
                .days
                .iter()
                .map(|(dt, day)| (dt.clone(), day.rows().len() as u64, day.sealed.is_some()))
                .collect();
            if found != wanted {
                return Err(format!("the catalog shows {found:?}, not {wanted:?}"));
            }
        }
        Ok(())
    }

    /// Audits and repairs over a sound store.
    pub(crate) async fn repair(&mut self, user: &str) -> Verified {
        self.begin("", user, &Operation::Repair);
        let lake = self.world.lake().await;
        audit_and_repair(&lake, &self.world.catalog, user)
            .await
            .map_err(fail)?;
        self.check_moment()
    }

    /// Nobody runs: all is as it must be.
    pub(crate) async fn rest(&mut self, closely: Closely) -> Verified {
        let lake = self.world.lake().await;
        let catalog = self.world.catalog.clone();
        sync_all(&lake, &catalog).await.map_err(fail)?;
        let options = AuditOptions { deep: closely.deep };
        let report = audit(&lake, Arc::new(catalog.clone()), options).await;
        let report = report.map_err(fail)?;
        if !report.is_clean() {
            let found = report.findings.iter();
            let found = found.map(|f| format!("{} {}: {}", f.invariant, f.subject, f.message));
            return Err(format!("audit: {}", found.collect::<Vec<_>>().join("; ")));
        }
        for judge in &mut self.judges {
            judge.follow()?;
            judge.check_folder_at_rest(&mut self.rows)?;
        }
        self.check_readers().await?;
        let left = list_stage(&self.world.root());
        if !left.is_empty() {
            return Err(format!("the stage still has {left:?}"));
        }
        if closely.rebuilt {
            self.compare_catalogs().await?;
        }
        Ok(())
    }

    /// A catalog that is made anew says the same as the one that followed.
    async fn compare_catalogs(&mut self) -> Verified {
        let lake = self.world.lake().await;
        let spare = self.world.new_catalog().await;
        rebuild(&lake, &spare, true).await.map_err(fail)?;
        let followed = self.world.catalog.dump().await.unwrap();
        let rebuilt = spare.dump().await.unwrap();
        spare.close().await;
        if followed != rebuilt {
            let mut lines = followed.lines().zip(rebuilt.lines());
            let differs = lines.find(|(a, b)| a != b);
            return Err(format!("a rebuilt catalog differs: {differs:#?}"));
        }
        Ok(())
    }
}

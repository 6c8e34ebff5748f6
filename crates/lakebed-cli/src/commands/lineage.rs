//! `lineage`: what a date was made from, what was made from it, and of a row the pages it came from.
//!
//! A tree of datasets and dates, by the parents that the log keeps with each input. Below a pack there is nothing: it is
//! what was fetched.

mod row;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use lakebed::log::{DatasetState, list_datasets, load};
use lakebed::name::{DatasetRef, Layer};
use lakebed::spec::{ParentSpec, ReadRange};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{LineageArgs, TextFormat};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::count;

/// Version of the JSON answers.
const ANSWER_FORMAT: u32 = 1;
/// How far a tree is followed: a snapshot is made from that of the day before, for years.
const MOST_NODES: usize = 400;

/// A date of a dataset in a tree.
#[derive(Debug, Serialize)]
struct Node {
    dataset: DatasetRef,
    date: BusinessDate,
    /// The first of several dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<BusinessDate>,
    revision: u32,
    rows: u64,
    sealed: bool,
    /// The last record that had added something of it when it was read; of the root, that has.
    position: u64,
    /// Set where readers see something else now: the last record that added something of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_since: Option<u64>,
    /// Names of its inputs that came from outside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<String>,
    /// Whether it stands elsewhere in the tree with all that is below it, or the tree became too large.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    next: Vec<Node>,
}

#[derive(Serialize)]
struct TreeAnswer<'a> {
    format: u32,
    direction: &'static str,
    root: &'a Node,
}

/// `lakebed lineage`
pub(crate) async fn lineage(args: LineageArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let context = Context::open(globals).await?;
    let state = context.load_known(&dataset).await?;
    let date = args
        .date
        .as_deref()
        .map(str::parse::<BusinessDate>)
        .transpose()?;
    if let Some(key) = &args.row {
        return rows::row(&context, &dataset, (key, date), globals).await;
    }
    let has_rows = |dt: &&BusinessDate| state.visible_of(**dt).next().is_some();
    let date = match date {
        Some(date) => Some(date).filter(|dt| has_rows(&dt)),
        None => state.dates().keys().rev().find(has_rows).copied(),
    };
    let Some(date) = date else {
        return Err(
            Error::not_found(format!("readers see nothing of {dataset} on that date"))
                .hint(format!("`lakebed partitions {dataset}` lists its dates")),
        );
    };
    let mut tree = Tree::open(&context, args.down).await?;
    let root = ParentSpec {
        position: position_of(&state, date),
        revision: state.active_revision(date),
        dataset,
        dt: date,
        from: None,
    };
    let root = tree.node(&root);
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&TreeAnswer {
            format: ANSWER_FORMAT,
            direction: if args.down { "down" } else { "up" },
            root: &root,
        })?,
        TextFormat::Text => tell(&root, "", "", globals)?,
    }
    Ok(Exit::Done)
}

/// The last record that added something that readers see of the date.
fn position_of(state: &DatasetState, date: BusinessDate) -> u64 {
    let inputs = state.visible_inputs(date).map(|(_, input)| input);
    let numbers = inputs.filter(|i| i.spec.rows > 0).map(|i| i.number);
    numbers.max().unwrap_or(0)
}

/// The last record that added something, where readers see other rows of these dates than when they were read up to that
/// position: some came, or those of that position went.
fn changed_since(state: &DatasetState, at: &ParentSpec) -> Option<u64> {
    let dates = state.dates().range(at.from.unwrap_or(at.dt)..=at.dt);
    let (mut last, mut is_there) = (0, at.position == 0);
    for (_, input) in dates.flat_map(|(dt, _)| state.visible_inputs(*dt)) {
        // An input may have brought nothing.
        if input.spec.rows > 0 {
            last = last.max(input.number);
        }
        is_there |= input.number == at.position;
    }
    (last > at.position || !is_there).then_some(last)
}

/// What readers see of a date was made from: as its inputs say, or its files, where these are those of a fold.
fn parents_of_date(state: &DatasetState, date: BusinessDate) -> Vec<ParentSpec> {
    let inputs = || state.visible_inputs(date).map(|(_, input)| &input.spec);
    let mut found: Vec<ParentSpec> = inputs().flat_map(|spec| spec.parents.clone()).collect();
    let ranges: Vec<ReadRange> = inputs().filter_map(|spec| spec.name.parse().ok()).collect();
    let files = state.visible_of(date).flat_map(|(_, p)| p.files.values());
    for text in files.flat_map(|file| &file.spec.parents) {
        let Some((dataset, dt, revision)) = parent_of_text(text) else {
            continue;
        };
        let of = |range: &&ReadRange| range.dataset == dataset.to_string() && range.dt == dt;
        let read = ranges.iter().filter(of).map(|range| range.upto).max();
        found.push(ParentSpec {
            dataset,
            dt,
            from: None,
            revision,
            position: read.unwrap_or(0),
        });
    }
    found
}

/// `clean/rent/dt=2026-11-30/schema_version=2`, with `/revision=n` behind it where it is not 0.
fn parent_of_text(text: &str) -> Option<(DatasetRef, BusinessDate, u32)> {
    let (dataset, rest) = text.split_once("/dt=")?;
    let mut parts = rest.split('/');
    let date = parts.next()?.parse().ok()?;
    let revision = parts.find_map(|part| part.strip_prefix("revision="));
    let revision = revision.map_or(Some(0), |text| text.parse().ok())?;
    Some((dataset.parse().ok()?, date, revision))
}

/// The folds of all datasets, and which dates were met.
struct Tree {
    states: BTreeMap<DatasetRef, DatasetState>,
    down: bool,
    met: BTreeSet<(DatasetRef, BusinessDate)>,
}

impl Tree {
    async fn open(context: &Context<'_>, down: bool) -> Result<Self> {
        let mut states = BTreeMap::new();
        for dataset in list_datasets(context.lake()).await? {
            let state = load(context.lake(), &dataset).await?.state;
            states.insert(dataset, state);
        }
        Ok(Self {
            states,
            down,
            met: BTreeSet::new(),
        })
    }

    fn node(&mut self, at: &ParentSpec) -> Node {
        let is_new = self.met.insert((at.dataset.clone(), at.dt)) && self.met.len() <= MOST_NODES;
        let state = self.states.get(&at.dataset);
        let (from, dt) = (at.from.unwrap_or(at.dt), at.dt);
        let dates = || {
            let range = state.map(|s| s.dates().range(from..=dt));
            range.into_iter().flatten().map(|(dt, _)| *dt)
        };
        let partitions =
            || dates().flat_map(|dt| state.into_iter().flat_map(move |s| s.visible_of(dt)));
        let files = partitions().flat_map(|(_, p)| p.files.values());
        let sealed = |dt| state.is_some_and(|s| s.is_sealed(dt));
        let from_outside = partitions().flat_map(|(_, p)| &p.inputs).filter(|input| {
            input.spec.parents.is_empty() && input.spec.name.parse::<ReadRange>().is_err()
        });
        let mut node = Node {
            dataset: at.dataset.clone(),
            date: at.dt,
            from: at.from,
            revision: at.revision,
            rows: files.map(|file| file.spec.rows).sum(),
            sealed: dates().next().is_some() && dates().all(sealed),
            position: at.position,
            changed_since: state.and_then(|s| changed_since(s, at)),
            inputs: from_outside.map(|input| input.spec.name.clone()).collect(),
            cut: !is_new,
            next: Vec::new(),
        };
        node.inputs.dedup();
        let next = match (is_new, self.down) {
            (false, _) => Vec::new(),
            (true, false) => self.parents_of(at),
            (true, true) => self.children_of(at),
        };
        // Whoever has nothing below it is not a repetition of anything.
        node.cut &= !self.parents_of(at).is_empty() || self.down;
        node.next = next.iter().map(|next| self.node(next)).collect();
        node
    }

    /// What readers see of these dates was made from.
    fn parents_of(&self, at: &ParentSpec) -> Vec<ParentSpec> {
        let mut found: Vec<ParentSpec> = Vec::new();
        let Some(state) = self.states.get(&at.dataset) else {
            return found;
        };
        for (dt, _) in state.dates().range(at.from.unwrap_or(at.dt)..=at.dt) {
            for parent in parents_of_date(state, *dt) {
                let same = found
                    .iter_mut()
                    .find(|p| p.dataset == parent.dataset && p.dt == parent.dt);
                match same {
                    Some(known) => known.position = known.position.max(parent.position),
                    None => found.push(parent),
                }
            }
        }
        found
    }

    /// What readers see that was made from these dates.
    fn children_of(&self, at: &ParentSpec) -> Vec<ParentSpec> {
        let is_made_from = |parent: &ParentSpec| {
            parent.dataset == at.dataset
                && (parent.from.unwrap_or(parent.dt)..=parent.dt).contains(&at.dt)
        };
        let mut found = Vec::new();
        for (dataset, state) in &self.states {
            for dt in state.dates().keys() {
                if parents_of_date(state, *dt).iter().any(is_made_from) {
                    found.push(ParentSpec {
                        dataset: dataset.clone(),
                        dt: *dt,
                        from: None,
                        revision: state.active_revision(*dt),
                        position: position_of(state, *dt),
                    });
                }
            }
        }
        found
    }
}

fn tell(node: &Node, head: &str, below: &str, globals: &Globals<'_>) -> Result<()> {
    let dates = match node.from {
        Some(from) => format!("{from}..{}", node.date),
        None => node.date.to_string(),
    };
    let mut text = format!(
        "{head}{} {dates}: {}",
        node.dataset,
        count(node.rows, "row")
    );
    if node.revision > 0 {
        text.push_str(&format!(", revision {}", node.revision));
    }
    text.push_str(&format!(", record {}", node.position));
    if !node.sealed {
        text.push_str(", open");
    }
    if let Some(now) = node.changed_since {
        text.push_str(&format!("; has changed since, by record {now}"));
    }
    if node.cut {
        text.push_str(" (as elsewhere in this tree)");
    }
    globals.printer.line(text)?;
    const MOST_INPUTS: usize = 5;
    for name in node.inputs.iter().take(MOST_INPUTS) {
        // Of responses, the run that brought them; else a file.
        let what = match node.dataset.layer {
            Layer::Raw => "from the run ",
            _ => "from ",
        };
        globals.printer.line(format!("{below}  {what}{name}"))?;
    }
    if node.inputs.len() > MOST_INPUTS {
        let more = node.inputs.len() - MOST_INPUTS;
        globals
            .printer
            .line(format!("{below}  and from {more} more"))?;
    }
    for (n, next) in node.next.iter().enumerate() {
        let is_last = n + 1 == node.next.len();
        let (branch, rest) = if is_last {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        tell(
            next,
            &format!("{below}{branch}"),
            &format!("{below}{rest}"),
            globals,
        )?;
    }
    Ok(())
}

//! Which inputs of a call are stored: the replay table asked before and after they are read.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::ingest::call::{Call, Known, Planned};
use crate::ingest::pipeline::Staged;
use crate::ingest::read::{ChunkReader, Form, InputSource, hash_input};
use crate::ingest::request::SkippedInput;
use crate::log::{DatasetState, InputAnswer, InputQuery, answer};
use crate::name::{BatchLabel, ContentHash};
use crate::time::BusinessDate;

impl Call<'_> {
    /// The replay table for every input; hashes are taken beforehand where an answer may depend on them.
    pub(super) fn plan_inputs(
        &self,
        state: &DatasetState,
        known: &mut Known,
    ) -> Result<(Vec<Planned>, Vec<SkippedInput>, Vec<String>)> {
        let inputs = &self.request.inputs;
        if inputs.len() > 1 || state.position().number > 0 {
            hash_all(inputs, known)?;
        }
        let (mut planned, mut skipped) = (Vec::new(), Vec::new());
        let mut warnings: Vec<String> = self.future_warning().into_iter().collect();
        // Two packs without a record have the same bytes and two labels.
        let mut seen: BTreeMap<(&ContentHash, Option<&BatchLabel>), String> = BTreeMap::new();
        for source in inputs {
            let name = source.display_name().to_owned();
            let Some((content, form)) = known.get(&name) else {
                planned.push(Planned {
                    source: source.clone(),
                    repeat_of: None,
                });
                continue;
            };
            let identity = (content, source.own_batch());
            if let Some(first) = seen.get(&identity) {
                let reason = format!("has the same bytes as `{first}` of this call");
                skipped.push(skip(name, content, reason, None));
                continue;
            }
            seen.insert(identity, name.clone());
            if let Some(number) = self.retried_by(state) {
                let reason = format!("its records were tried again by record {number}");
                skipped.push(skip(name, content, reason, Some(number)));
                continue;
            }
            match self.ask(state, content, (source, *form))? {
                InputAnswer::New { other_dates } => {
                    // Rows that were made of parents may be equal on many days: nobody mistook the date.
                    if source.own_batch().is_none() && self.request.parents.is_empty() {
                        warnings.extend(known_elsewhere(&name, &other_dates));
                    }
                    planned.push(Planned {
                        source: source.clone(),
                        repeat_of: None,
                    });
                }
                InputAnswer::Repeat { number } => {
                    planned.push(Planned {
                        source: source.clone(),
                        repeat_of: Some(number),
                    });
                }
                InputAnswer::AlreadyThere { number } => {
                    let reason = format!("was stored for {} by record {number}", self.request.dt);
                    skipped.push(skip(name, content, reason, Some(number)));
                }
                InputAnswer::Refused(refusal) => {
                    return Err(refusal.into_error(&name, self.request.dt));
                }
            }
        }
        if self.corrects()
            && let Some(all) = self.already_corrected(state, &planned, known)?
        {
            planned.clear();
            skipped.extend(all);
        }
        Ok((planned, skipped, warnings))
    }

    fn ask(
        &self,
        state: &DatasetState,
        content: &ContentHash,
        (source, form): (&InputSource, Option<Form>),
    ) -> Result<InputAnswer> {
        // The form is told by reading, so the rules of an input are asked only where they may matter.
        let met = !self.corrects()
            && state
                .visible_with(self.request.dt, content)
                .next()
                .is_some();
        let rules = if met {
            let form = match form {
                Some(form) => form,
                None => ChunkReader::open(source, 0, &self.read_options(source)?)?.form(),
            };
            self.rules_of(source, form)?
        } else {
            String::new()
        };
        Ok(self.answer(state, content, (source, &rules)))
    }

    fn answer(
        &self,
        state: &DatasetState,
        content: &ContentHash,
        (source, rules): (&InputSource, &str),
    ) -> InputAnswer {
        answer(
            state,
            &InputQuery {
                dt: self.request.dt,
                content,
                batch: self.batch_of(source),
                rules,
                schema_version: self.version,
                restore: self.request.restore,
                replaces: self.corrects(),
                is_retry: self.request.rejects_of.is_some(),
            },
        )
    }

    /// Learns the hashes of the read inputs; true = some of them must not be stored after all.
    pub(super) fn learn(
        &self,
        state: &DatasetState,
        known: &mut Known,
        planned: &[Planned],
        staged: &Staged,
    ) -> Result<bool> {
        let mut again = false;
        let mut seen = BTreeSet::new();
        for (input, result) in planned.iter().zip(&staged.inputs) {
            let name = input.source.display_name().to_owned();
            let content = result.facts.content.clone();
            let before = known.insert(name.clone(), (content.clone(), Some(result.facts.form)));
            if before.is_some_and(|(b, _)| b != content) {
                return Err(
                    Error::conflict(format!("input `{name}` changed while it was read"))
                        .hint("wait until whoever writes it has finished, then call again")
                        .retryable(),
                );
            }
            if !seen.insert((content.clone(), input.source.own_batch())) {
                again = true;
            }
            let rules = self.rules_of(&input.source, result.facts.form)?;
            match self.answer(state, &content, (&input.source, &rules)) {
                InputAnswer::New { .. } | InputAnswer::Repeat { .. } => {}
                InputAnswer::AlreadyThere { .. } => again = true,
                InputAnswer::Refused(refusal) => {
                    return Err(refusal.into_error(&name, self.request.dt));
                }
            }
        }
        if self.corrects() && self.already_corrected(state, planned, known)?.is_some() {
            again = true;
        }
        if again && planned.iter().any(|p| !p.source.is_rereadable()) && planned.len() > 1 {
            return Err(
                Error::conflict("standard input must be read again, which cannot be")
                    .hint("one of the inputs is stored already; call again without it"),
            );
        }
        Ok(again)
    }
}

/// Takes the hashes of the inputs that can be read twice.
fn hash_all(inputs: &[InputSource], known: &mut Known) -> Result<()> {
    for source in inputs.iter().filter(|s| s.is_rereadable()) {
        let name = source.display_name();
        if !known.contains_key(name) {
            known.insert(name.to_owned(), (hash_input(source)?.0, None));
        }
    }
    Ok(())
}

fn skip(
    name: String,
    content: &ContentHash,
    reason: String,
    stored_by: Option<u64>,
) -> SkippedInput {
    SkippedInput {
        name,
        content: content.clone(),
        reason,
        stored_by,
    }
}

fn known_elsewhere(name: &str, dates: &[BusinessDate]) -> Option<String> {
    let first = dates.first()?;
    let more = if dates.len() > 1 {
        format!(" and {} more dates", dates.len() - 1)
    } else {
        String::new()
    };
    Some(format!(
        "input `{name}` has the same bytes as one that was stored for {first}{more}: was the date meant?"
    ))
}

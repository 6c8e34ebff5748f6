//! The offer of a refused ingest: the next version as a ready file, beside the published ones.
//!
//! `vN.proposed.toml` is no version file: nothing checks or publishes it until somebody has reviewed
//! and renamed it. A later refusal writes it anew and keeps the earlier one as `vN.proposed.toml.bak`.

use std::path::PathBuf;

use lakebed::ingest::IngestRequest;
use lakebed::{Error, Result, registry};

use crate::commands::schema::draft_next;
use crate::context::Context;

/// An offered version.
#[derive(Debug)]
pub(crate) struct Offer {
    /// Its number.
    pub(crate) version: u32,
    /// The offered file.
    pub(crate) file: PathBuf,
    /// Where it goes once it was reviewed.
    pub(crate) target: PathBuf,
}

/// Writes what the inputs speak for as the next version; `None` where a further version would not
/// help, or where the inputs cannot be read again.
pub(crate) async fn offer_next(
    context: &Context<'_>,
    request: &IngestRequest,
) -> Result<Option<Offer>> {
    if !request
        .inputs
        .iter()
        .all(lakebed::ingest::read::InputSource::is_rereadable)
    {
        return Ok(None);
    }
    let dataset = &request.dataset;
    let draft = draft_next(context, dataset, &request.inputs, &request.read).await?;
    if draft.adds_nothing {
        return Ok(None);
    }
    let version = draft.spec.version;
    let target = context.project().schema_file(dataset, version);
    if target.exists() {
        // Somebody is writing that version already; a hint to move another file over it would lose it.
        return Ok(None);
    }
    let file = target.with_file_name(format!("v{version}.proposed.toml"));
    let failed = |e| Error::io("write the file", file.display(), e);
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let text = registry::render_toml(&draft.spec);
    if std::fs::read_to_string(&file).is_ok_and(|there| there != text) {
        // Somebody may have worked on the earlier offer: it is kept beside the new one.
        std::fs::rename(&file, file.with_extension("toml.bak")).map_err(failed)?;
    }
    std::fs::write(&file, text).map_err(failed)?;
    Ok(Some(Offer {
        version,
        file,
        target,
    }))
}

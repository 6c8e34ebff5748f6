//! Packs outside the lake: a file with its index beside it.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::pack::durable::sync_folder;
use crate::pack::index::write_index;
use crate::pack::scan::scan_pack;
use crate::pack::seal::PackPlan;
use crate::pack::source::FileSource;
use crate::spec::{PACK_INDEX_SUFFIX, PACK_SUFFIX};

/// Where the index of a pack lies.
///
/// # Errors
/// `InvalidInput` for a file whose name is not that of a pack.
pub fn index_path(pack: &Path) -> Result<PathBuf> {
    let name = pack.file_name().and_then(|n| n.to_str()).unwrap_or("");
    match name.strip_suffix(PACK_SUFFIX) {
        Some(stem) => Ok(pack.with_file_name(format!("{stem}{PACK_INDEX_SUFFIX}"))),
        None => Err(
            Error::invalid(format!("`{name}` is not the name of a pack"))
                .hint(format!("packs end with `{PACK_SUFFIX}`")),
        ),
    }
}

/// Reads a pack and writes its index beside it.
pub fn index_beside(pack: &Path) -> Result<()> {
    let scan = scan_pack(&FileSource::open(pack)?)?;
    let index = write_index(&scan.rows, &scan.trailer.content)?;
    let path = index_path(pack)?;
    fs::write(&path, index).map_err(|e| Error::io("write the index", path.display(), e))
}

/// Writes the pack and its index into a folder; durable when this ends. Where the pack lies.
pub fn save_pack(mut pack: PackPlan, folder: &Path) -> Result<PathBuf> {
    let path = folder.join(pack.file_name().pack());
    let failed = |e: std::io::Error| Error::io("write the pack", path.display(), e);
    let file = File::create(&path).map_err(failed)?;
    let (out, _) = pack.write(BufWriter::new(file))?;
    let file = out.into_inner().map_err(|e| failed(e.into_error()))?;
    file.sync_all().map_err(failed)?;
    index_beside(&path)?;
    sync_folder(folder)?;
    Ok(path)
}

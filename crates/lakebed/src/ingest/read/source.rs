//! From arguments to inputs: files, globs, zip members and standard input, in a fixed order.
//!
//! Arguments keep their order; what a glob matches is sorted by path, the members of a zip by name.
//! Nothing is read here but the first bytes, to see whether a file is a zip archive.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::ingest::read::archive::{Archive, Member};
use crate::ingest::read::first::FirstPlaces;
use crate::ingest::read::unpack::{ByteStream, Packing, peek};
use crate::name::BatchLabel;
use crate::spec::ReadSpec;

/// Largest zip archive that is taken from standard input (it must be held whole).
const STDIN_ZIP_MAX_BYTES: u64 = 1 << 30;

/// One logical input of a call.
#[derive(Debug, Clone)]
pub struct InputSource {
    display: String,
    base_name: String,
    content_name: String,
    pub(super) origin: Origin,
    pub(super) warnings: Vec<String>,
    rejects: Option<Arc<Rejects>>,
    made: Option<Arc<Made>>,
}

/// What is known of an input that this program made of something else.
#[derive(Debug)]
struct Made {
    batch: BatchLabel,
    rejects: Option<PathBuf>,
}

/// What is known of an input that holds kept rejects.
#[derive(Debug)]
struct Rejects {
    read: ReadSpec,
    places: FirstPlaces,
}

/// Where an input's bytes are.
#[derive(Clone)]
pub(super) enum Origin {
    /// A file.
    File(PathBuf),
    /// Standard input; taken by the one who opens it.
    Stdin(Arc<Mutex<Option<ByteStream>>>),
    /// A member of a zip archive.
    Member(Archive, Member),
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Stdin(_) => f.write_str("Stdin"),
            Self::Member(archive, member) => f
                .debug_tuple("Member")
                .field(archive)
                .field(member)
                .finish(),
        }
    }
}

impl InputSource {
    /// A file that is no zip archive.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        let display = path.to_string_lossy().into_owned();
        Self {
            base_name: base_name(&display),
            content_name: base_name(&display),
            display,
            origin: Origin::File(path.to_owned()),
            warnings: Vec::new(),
            rejects: None,
            made: None,
        }
    }

    /// A scratch file of kept rejects: how it is read, and where its records were first met.
    pub(in crate::ingest) fn of_rejects(path: &Path, read: ReadSpec, places: FirstPlaces) -> Self {
        let file = Self::file(path);
        Self {
            display: file.base_name.clone(),
            rejects: Some(Arc::new(Rejects { read, places })),
            ..file
        }
    }

    /// A scratch file of JSON lines that was made of something else: its name and label in the log, and a file of
    /// [`RejectRecord`](crate::spec::RejectRecord) lines, what did not become a record; absent for none.
    #[must_use]
    pub fn made(path: &Path, name: String, batch: BatchLabel, rejects: Option<PathBuf>) -> Self {
        Self {
            display: name.clone(),
            base_name: name,
            made: Some(Arc::new(Made { batch, rejects })),
            ..Self::file(path)
        }
    }

    /// The label of this input alone; `None` = that of its call.
    pub(in crate::ingest) fn own_batch(&self) -> Option<&BatchLabel> {
        self.made.as_ref().map(|m| &m.batch)
    }

    /// The file of what did not become a record of it; `None` = there is nothing of the kind.
    pub(in crate::ingest) fn made_rejects(&self) -> Option<&Path> {
        self.made.as_ref()?.rejects.as_deref()
    }

    /// How the bytes of kept rejects are read, whatever call and schema declare; `None` for inputs of
    /// any other kind.
    pub(in crate::ingest) fn own_rules(&self) -> Option<&ReadSpec> {
        self.rejects.as_ref().map(|r| &r.read)
    }

    /// Where its records were first met; `None` = here.
    pub(in crate::ingest) fn first_places(&self) -> Option<&FirstPlaces> {
        self.rejects.as_ref().map(|r| &r.places)
    }

    fn stdin(stream: ByteStream) -> Self {
        Self {
            display: "-".into(),
            base_name: "-".into(),
            content_name: "-".into(),
            origin: Origin::Stdin(Arc::new(Mutex::new(Some(stream)))),
            warnings: Vec::new(),
            rejects: None,
            made: None,
        }
    }

    fn member(display: &str, archive: Archive, member: Member) -> Self {
        Self {
            base_name: format!("{}!{}", base_name(display), member.name),
            content_name: base_name(&member.name),
            display: format!("{display}!{}", member.name),
            origin: Origin::Member(archive, member),
            warnings: Vec::new(),
            rejects: None,
            made: None,
        }
    }

    /// The name as the caller gave it; `archive.zip!member` for a zip member, `-` for standard input.
    #[must_use]
    pub fn display_name(&self) -> &str {
        &self.display
    }

    /// The name without folders, as it stands in the commit log.
    #[must_use]
    pub fn base_name(&self) -> &str {
        &self.base_name
    }

    /// The name whose extension tells the form: that of the file, or of the zip member.
    pub(super) fn content_name(&self) -> &str {
        &self.content_name
    }

    /// Whether the input can be opened more than once (standard input and pipes cannot).
    #[must_use]
    pub fn is_rereadable(&self) -> bool {
        match &self.origin {
            Origin::File(path) => path.is_file(),
            Origin::Member(..) => true,
            Origin::Stdin(_) => false,
        }
    }

    /// All bytes in the measure of [`ChunkReader::bytes_done`](super::ChunkReader::bytes_done), for a
    /// progress bar; `None` where nobody knows.
    #[must_use]
    pub fn bytes_total(&self) -> Option<u64> {
        match &self.origin {
            Origin::File(path) => std::fs::metadata(path)
                .ok()
                .filter(std::fs::Metadata::is_file)
                .map(|m| m.len()),
            Origin::Stdin(_) => None,
            Origin::Member(_, member) => Some(member.size),
        }
    }

    /// Opens the bytes; those of a zip member come unpacked.
    pub(super) fn open_stream(&self) -> Result<ByteStream> {
        match &self.origin {
            Origin::File(path) => Ok(Box::new(open_file(path, &self.display)?)),
            Origin::Stdin(slot) => slot
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
                .ok_or_else(|| Error::invalid("standard input can be read only once")),
            Origin::Member(archive, member) => archive.open_member(member),
        }
    }
}

fn base_name(display: &str) -> String {
    Path::new(display)
        .file_name()
        .map_or_else(|| display.to_owned(), |n| n.to_string_lossy().into_owned())
}

fn open_file(path: &Path, display: &str) -> Result<File> {
    File::open(path).map_err(|e| Error::io("open the input", display, e))
}

/// Resolves the arguments of a call to its inputs; `-` is the standard input of the process.
///
/// # Errors
/// `NotFound` for a file that does not exist or a glob that matches none, `InvalidInput` for a
/// folder, a malformed glob or a second `-`, `CorruptData` for a zip archive that cannot be read.
pub fn resolve_inputs(args: &[String]) -> Result<Vec<InputSource>> {
    resolve_inputs_with(args, || Box::new(std::io::stdin()))
}

/// As [`resolve_inputs`], with `stdin` in the place of the standard input.
///
/// # Errors
/// As [`resolve_inputs`].
pub fn resolve_inputs_with(
    args: &[String],
    stdin: impl FnOnce() -> Box<dyn Read + Send>,
) -> Result<Vec<InputSource>> {
    let mut stdin = Some(stdin);
    let mut sources = Vec::new();
    for arg in args {
        if arg == "-" {
            let open = stdin.take().ok_or_else(|| {
                Error::invalid("standard input `-` is named twice").hint("it can be read only once")
            })?;
            sources.extend(resolve_stdin(open())?);
            continue;
        }
        for path in resolve_paths(arg)? {
            sources.extend(resolve_file(&path)?);
        }
    }
    Ok(sources)
}

/// The paths that one argument names. A path that exists wins over its meaning as a glob.
fn resolve_paths(arg: &str) -> Result<Vec<PathBuf>> {
    let literal = Path::new(arg);
    if literal.exists() || !arg.contains(['*', '?', '[']) {
        return Ok(vec![literal.to_owned()]);
    }
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    let matches = glob::glob_with(arg, options).map_err(|e| {
        Error::invalid(format!("`{arg}` is not a well-formed glob: {}", e.msg))
            .hint("a bracket that is meant literally is written `[[]`")
    })?;
    let mut paths = Vec::new();
    for entry in matches {
        let path = entry.map_err(|e| {
            let path = e.path().display().to_string();
            Error::io("read the folder", path, e.into())
        })?;
        if !path.is_dir() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(Error::not_found(format!("glob `{arg}` matches no file"))
            .hint("an input that is missing is an error: check the path, or whether the file has arrived"));
    }
    paths.sort();
    Ok(paths)
}

fn resolve_file(path: &Path) -> Result<Vec<InputSource>> {
    let source = InputSource::file(path);
    let display = source.display_name().to_owned();
    let metadata = std::fs::metadata(path).map_err(|e| Error::io("open the input", &display, e))?;
    if metadata.is_dir() {
        return Err(
            Error::invalid(format!("`{display}` is a folder")).hint(format!(
                "name its files, for example '{}/*.jsonl'",
                display.trim_end_matches('/')
            )),
        );
    }
    if !metadata.is_file() {
        return Ok(vec![source]); // a pipe is read once, and its first bytes must not be lost
    }
    let mut file = open_file(path, &display)?;
    let mut head = [0_u8; 4];
    let read =
        read_up_to(&mut file, &mut head).map_err(|e| Error::io("read the input", &display, e))?;
    if Packing::of(&head[..read]) != Packing::Zip {
        return Ok(vec![source]);
    }
    file.seek(SeekFrom::Start(0))
        .map_err(|e| Error::io("read the input", &display, e))?;
    expand(&display, Archive::File(path.to_owned()))
}

fn resolve_stdin(stream: ByteStream) -> Result<Vec<InputSource>> {
    let failed = |e| Error::io("read", "standard input", e);
    let (head, stream) = peek(stream, 4).map_err(failed)?;
    if Packing::of(&head) != Packing::Zip {
        return Ok(vec![InputSource::stdin(stream)]);
    }
    let mut bytes = Vec::new();
    stream
        .take(STDIN_ZIP_MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|n| n > STDIN_ZIP_MAX_BYTES) {
        return Err(Error::limit(format!(
            "zip archive on standard input is larger than {STDIN_ZIP_MAX_BYTES} bytes"
        ))
        .hint("a zip archive cannot be read as it comes: save it and name the file"));
    }
    expand("-", Archive::Memory(bytes.into()))
}

fn expand(display: &str, archive: Archive) -> Result<Vec<InputSource>> {
    let listing = archive
        .list_members()
        .map_err(|e| e.with("file", display))?;
    let mut sources: Vec<InputSource> = listing
        .members
        .into_iter()
        .map(|member| InputSource::member(display, archive.clone(), member))
        .collect();
    if let Some(first) = sources.first_mut() {
        if !has_extension(display, "zip") && display != "-" {
            first.warnings.push(format!(
                "`{display}` is a zip archive, whatever its name says: its members were read"
            ));
        }
        if listing.ignored > 0 {
            first.warnings.push(format!(
                "`{display}` holds {} members under `__MACOSX/`, which are no data: they were not read",
                listing.ignored
            ));
        }
    }
    Ok(sources)
}

/// Whether the name ends in `.extension`, without regard to case.
pub(super) fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

fn read_up_to(file: &mut File, head: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while read < head.len() {
        match file.read(&mut head[read..]) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(read)
}

//! What a raw day pack is made of: heads, profiles, limits and names (docs/formats/rawpack.md).
//!
//! ```text
//! zstd frame 0    PACK.json                          PackHead
//! zstd frame 1..  TERMINALS.jsonl                    TerminalRecord, packs only
//! zstd frames     m/000002.jsonl, b/aa/<sha256>.html PackLine, then the bodies they name
//! zstd frame      1,024 zero bytes                   the end of the tar, packs only
//! skippable       trailer                            PackTrailer, packs only
//! skippable       seek table                         packs only, last bytes of the file
//! ```

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::name::{BodyHash, CaptureId, ContentHash, RequestKey, RunName, StageName};
use crate::spec::{CaptureRecord, RunKey};
use crate::time::{BusinessDate, Instant};

/// The format of the packs this program writes.
pub const PACK_FORMAT: &str = "rawpack/2";
/// The format of parts; packs of it are read as well.
pub const PART_FORMAT: &str = "rawpack/1";
/// The rule that makes a pack's identity, in the log: packs of every format so far.
pub const PACK_RULES: &str = "rawpack/1";
/// Name of the first member.
pub const PACK_HEAD_NAME: &str = "PACK.json";
/// Name of the member that says how every request ended.
pub const TERMINALS_NAME: &str = "TERMINALS.jsonl";
/// The end of a pack's or part's file name.
pub const PACK_SUFFIX: &str = ".tar.zst";
/// The end of an index's file name. It is Parquet, but no `*.parquet` glob meets it.
pub const PACK_INDEX_SUFFIX: &str = ".idx";
/// Zero bytes that end a tar.
pub const TAR_END_BYTES: usize = 1024;
/// A body beyond this has a frame of its own.
pub const LONE_BODY_BYTES: usize = 32 << 20;
/// Raw bytes of a frame at most; what is longer goes over several frames.
pub const MAX_FRAME_BYTES: usize = 256 << 20;
/// Bytes of a body at most.
pub const MAX_BODY_BYTES: u64 = 2 << 30;
/// Bytes of lines after which the body they share is stored once more, in the next frame.
pub const MAX_SHARED_LINES_BYTES: usize = 1 << 20;
/// The largest window a reader must grant, as a power of two.
pub const MAX_WINDOW_LOG: u32 = 24;

/// What a file of frames is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackKind {
    /// Written while crawling, by one writer; it has no end.
    Part,
    /// Sealed.
    Pack,
}

/// How frames are cut and compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackProfile {
    /// Parts: quick.
    Live,
    /// Sealed packs: the knee of size against time.
    Std,
    /// Packs that are rarely read: as small as can be.
    Deep,
}

impl PackProfile {
    /// Compression level of zstd.
    #[must_use]
    pub fn level(self) -> i32 {
        match self {
            Self::Live => 3,
            Self::Std => 9,
            Self::Deep => 19,
        }
    }

    /// Size of the window, as a power of two.
    #[must_use]
    pub fn window_log(self) -> u32 {
        match self {
            Self::Live | Self::Std => 23,
            Self::Deep => MAX_WINDOW_LOG,
        }
    }

    /// Raw bytes after which a frame closes, given how many raw bytes the frames before it had for
    /// one compressed byte.
    #[must_use]
    pub fn frame_bytes(self, raw: u64, compressed: u64) -> usize {
        const SMALLEST: u64 = 1 << 20;
        const LARGEST: u64 = 8 << 20;
        const COMPRESSED: u64 = 384 << 10;
        match self {
            Self::Live => 1 << 20,
            Self::Deep => 16 << 20,
            Self::Std => {
                let (raw, compressed) = if compressed == 0 {
                    (4, 1)
                } else {
                    (raw, compressed)
                };
                let wanted = COMPRESSED.saturating_mul(raw) / compressed;
                usize::try_from(wanted.clamp(SMALLEST, LARGEST)).unwrap_or(8 << 20)
            }
        }
    }

    /// The name in JSON and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Std => "std",
            Self::Deep => "deep",
        }
    }
}

/// `PACK.json`: the first member of a part or pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackHead {
    /// [`PACK_FORMAT`] or [`PART_FORMAT`].
    pub format: String,
    /// Part or pack.
    pub kind: PackKind,
    /// Whose responses it holds.
    #[serde(flatten)]
    pub run: RunKey,
    /// How its frames are made.
    pub profile: PackProfile,
    /// Version of the zstd library: only packs of one version can be compared byte by byte.
    pub zstd: String,
    /// The writer of a part, unique; absent in a pack.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub writer: Option<String>,
}

impl PackHead {
    /// Seconds since 1970 that stand as the modification time of every member: the business date,
    /// midnight UTC.
    #[must_use]
    pub fn member_time(run: &RunKey) -> u64 {
        u64::try_from(run.date.days()).unwrap_or(0) * 86_400
    }
}

/// The trailer of a pack: what it holds as a whole. The digests of its frames follow it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackTrailer {
    /// As in the head.
    pub format: String,
    /// Whose pack it is; absent in `rawpack/1`.
    #[serde(flatten, skip_serializing_if = "Option::is_none", default)]
    pub run: Option<RunKey>,
    /// BLAKE3 over run, captures and terminals: equal where two packs hold the same, however packed.
    pub content: ContentHash,
    /// Lines, erased ones included.
    pub captures: u64,
    /// Bodies, each counted as often as it is stored.
    pub bodies: u64,
    /// Terminals.
    pub requests: u64,
    /// Lines whose document was erased.
    pub erased: u64,
}

/// What is left of a capture whose document was erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasedCapture {
    /// Always true; tells the line from a capture.
    pub erased: bool,
    /// Its id.
    pub capture_id: CaptureId,
    /// The request it answered.
    pub request_key: RequestKey,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Which redirect.
    pub hop: u32,
    /// The kind of page.
    pub kind: StageName,
    /// When it was fetched.
    pub fetched_at: Instant,
    /// How it was asked for; absent in `rawpack/1`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub method: Option<String>,
}

/// A line of `m/<frame>.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PackLine {
    /// What is left of an erased one.
    Erased(ErasedCapture),
    /// A response as it came.
    Capture(Box<CaptureRecord>),
}

impl PackLine {
    /// The id of the capture.
    #[must_use]
    pub fn capture_id(&self) -> &CaptureId {
        match self {
            Self::Erased(line) => &line.capture_id,
            Self::Capture(line) => &line.capture_id,
        }
    }

    /// The kind of page.
    #[must_use]
    pub fn kind(&self) -> &StageName {
        match self {
            Self::Erased(line) => &line.kind,
            Self::Capture(line) => &line.kind,
        }
    }

    /// When it was fetched.
    #[must_use]
    pub fn fetched_at(&self) -> Instant {
        match self {
            Self::Erased(line) => line.fetched_at,
            Self::Capture(line) => line.fetched_at,
        }
    }

    /// The hash and length of the body that lies beside it; `None` for no response, an empty body or
    /// an erased one.
    #[must_use]
    pub fn body(&self) -> Option<(&BodyHash, u64)> {
        match self {
            Self::Erased(_) => None,
            Self::Capture(line) => line
                .body_sha256
                .as_ref()
                .filter(|_| line.body_len > 0)
                .map(|hash| (hash, line.body_len)),
        }
    }

    /// The line as it is written, with its end.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)
            .map_err(|e| Error::internal("write a capture as JSON").caused_by(e))?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// The member of a body.
#[must_use]
pub fn body_member_name(hash: &BodyHash, content_type: Option<&str>) -> String {
    let hash = hash.as_str();
    format!("b/{}/{hash}.{}", &hash[..2], body_extension(content_type))
}

/// The hash in the name of a body's member; `None` for any other name.
#[must_use]
pub fn parse_body_member_name(name: &str) -> Option<BodyHash> {
    let (folder, file) = name.strip_prefix("b/")?.split_once('/')?;
    let (hash, extension) = file.split_once('.')?;
    let is_known = EXTENSIONS.iter().any(|(_, e)| *e == extension) || extension == OTHER_EXTENSION;
    let hash: BodyHash = hash.parse().ok()?;
    (is_known && hash.as_str().starts_with(folder) && folder.len() == 2).then_some(hash)
}

/// The member of a frame's lines.
#[must_use]
pub fn lines_member_name(frame: u32) -> String {
    format!("m/{frame:06}.jsonl")
}

/// The frame in the name of a member of lines; `None` for any other name.
#[must_use]
pub fn parse_lines_member_name(name: &str) -> Option<u32> {
    let frame = name.strip_prefix("m/")?.strip_suffix(".jsonl")?;
    let number = frame.parse().ok()?;
    (lines_member_name(number) == name).then_some(number)
}

const OTHER_EXTENSION: &str = "bin";
/// Media types that get an extension of their own, so that an unpacked body opens in what shows it.
const EXTENSIONS: [(&str, &str); 24] = [
    ("text/html", "html"),
    ("application/xhtml+xml", "xhtml"),
    ("application/json", "json"),
    ("application/ld+json", "json"),
    ("application/xml", "xml"),
    ("text/xml", "xml"),
    ("application/rss+xml", "xml"),
    ("application/atom+xml", "xml"),
    ("text/plain", "txt"),
    ("text/csv", "csv"),
    ("text/css", "css"),
    ("text/javascript", "js"),
    ("application/javascript", "js"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/gzip", "gz"),
    ("image/jpeg", "jpg"),
    ("image/png", "png"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/svg+xml", "svg"),
    ("image/avif", "avif"),
    ("video/mp4", "mp4"),
    ("audio/mpeg", "mp3"),
];

fn body_extension(content_type: Option<&str>) -> &'static str {
    EXTENSIONS
        .iter()
        .find(|(media, _)| Some(*media) == content_type)
        .map_or(OTHER_EXTENSION, |(_, extension)| *extension)
}

/// The file names of a sealed pack and its index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackFileName {
    /// Its business date.
    pub date: BusinessDate,
    /// Its run.
    pub run: RunName,
    /// The beginning of its content's hash, 8 hex digits.
    pub hash: String,
}

impl PackFileName {
    /// The name of a pack of that content.
    #[must_use]
    pub fn new(run: &RunKey, content: &ContentHash) -> Self {
        Self {
            date: run.date,
            run: run.run.clone(),
            hash: content.as_str()[..8].to_owned(),
        }
    }

    /// The name of the pack's file.
    #[must_use]
    pub fn pack(&self) -> String {
        format!("{}.{}-{}{PACK_SUFFIX}", self.date, self.run, self.hash)
    }

    /// The name of the index beside it.
    #[must_use]
    pub fn index(&self) -> String {
        format!(
            "{}.{}-{}{PACK_INDEX_SUFFIX}",
            self.date, self.run, self.hash
        )
    }

    /// Reads the name of a pack or of an index; `None` for any other name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let stem = name
            .strip_suffix(PACK_SUFFIX)
            .or_else(|| name.strip_suffix(PACK_INDEX_SUFFIX))?;
        let (date, rest) = (stem.get(..10)?, stem.get(10..)?.strip_prefix('.')?);
        let (run, hash) = rest.rsplit_once('-')?;
        let is_hash =
            hash.len() == 8 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        Some(Self {
            date: date.parse().ok()?,
            run: run.parse().ok()?,
            hash: is_hash.then(|| hash.to_owned())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let hash: BodyHash = "ab".repeat(32).parse().unwrap();
        for media in [Some("text/html"), Some("x/y"), None] {
            let name = body_member_name(&hash, media);
            assert!(name.len() <= 100, "{name}");
            assert_eq!(parse_body_member_name(&name), Some(hash.clone()));
        }
        for bad in ["b/ab/x.html", "b/aa/../x", "m/1.jsonl", "b/", ""] {
            assert_eq!(parse_body_member_name(bad), None, "{bad}");
        }
        let other = body_member_name(&hash, None).replace("b/ab", "b/aa");
        assert_eq!(parse_body_member_name(&other), None);
        for frame in [0, 7, 999_999, 1_000_000] {
            assert_eq!(
                parse_lines_member_name(&lines_member_name(frame)),
                Some(frame)
            );
        }
        for bad in ["m/1.jsonl", "m/+00001.jsonl", "m/0000001.jsonl", "m/.jsonl"] {
            assert_eq!(parse_lines_member_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn file_names_come_back_and_meet_no_parquet_glob() {
        let name = PackFileName {
            date: "2026-11-30".parse().unwrap(),
            run: "a-b.c".parse().unwrap(),
            hash: "0123abcd".to_owned(),
        };
        assert_eq!(name.pack(), "2026-11-30.a-b.c-0123abcd.tar.zst");
        assert_eq!(PackFileName::parse(&name.pack()), Some(name.clone()));
        assert_eq!(PackFileName::parse(&name.index()), Some(name.clone()));
        assert!(!name.index().ends_with(".parquet"));
        for bad in [
            "2026-11-30.day-0123abc.tar.zst",
            "x.tar.zst",
            "2026-11-30.day.tar.zst",
        ] {
            assert_eq!(PackFileName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_frame_closes_near_its_compressed_size() {
        let std = PackProfile::Std;
        assert_eq!(std.frame_bytes(0, 0), 4 * (384 << 10));
        assert_eq!(std.frame_bytes(1, 1), 1 << 20);
        assert_eq!(std.frame_bytes(10, 1), 10 * (384 << 10));
        assert_eq!(std.frame_bytes(1000, 1), 8 << 20);
    }

    #[test]
    fn an_erased_line_is_told_from_a_capture() {
        let line = PackLine::Erased(ErasedCapture {
            erased: true,
            capture_id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            request_key: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            attempt: 1,
            hop: 0,
            kind: "detail".parse().unwrap(),
            fetched_at: Instant::from_micros(1),
            method: None,
        });
        let bytes = line.to_bytes().unwrap();
        assert_eq!(PackLine::parse(bytes.trim_ascii_end(), None).unwrap(), line);
        assert!(PackLine::parse(b"{\"erased\":true,\"url\":\"x\"}", None).is_err());
        assert!(PackLine::parse(b"{}", None).is_err());
    }
}

//! What sealing holds on disk instead of in memory: every line and every body of the parts, once, to be
//! read again in another order.
//!
//! A file beside the parts, without a name from its first moment where the system allows that. Bodies are
//! packed singly and quickly: reading one never unpacks another.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::name::BodyHash;
use crate::pack::durable::create_folder;

/// Bodies and lines of the parts.
pub(super) struct Spool {
    file: BufWriter<File>,
    len: u64,
    bodies: HashMap<BodyHash, Place>,
    encoder: zstd::bulk::Compressor<'static>,
    is_writing: bool,
}

/// Where something lies in the spool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    offset: u64,
    len: usize,
    raw: usize,
}

impl Place {
    /// Bytes of what lies there.
    pub(super) fn raw_len(&self) -> u64 {
        self.raw as u64
    }
}

impl Spool {
    /// A spool in the folder, which need not exist yet.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        create_folder(folder)?;
        let (process, n) = (std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let path = folder.join(format!("{process}-{n}.spool"));
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path);
        let file = opened.map_err(|e| Error::io("create the file", path.display(), e))?;
        // Where an open file keeps its name, it is left over and may be deleted by hand.
        drop(std::fs::remove_file(&path));
        let encoder = zstd::bulk::Compressor::new(1)
            .map_err(|e| Error::internal("set up the compressor").caused_by(e))?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 20, file),
            len: 0,
            bodies: HashMap::new(),
            encoder,
            is_writing: true,
        })
    }

    /// Puts a body in, unless it is there.
    pub(super) fn put_body(&mut self, hash: &BodyHash, body: &[u8]) -> Result<()> {
        if self.bodies.contains_key(hash) {
            return Ok(());
        }
        let packed = self
            .encoder
            .compress(body)
            .map_err(|e| Error::internal("compress a body").caused_by(e))?;
        let place = self.append(&packed, body.len())?;
        self.bodies.insert(hash.clone(), place);
        Ok(())
    }

    /// Puts a line in.
    pub(super) fn put_line(&mut self, line: &[u8]) -> Result<Place> {
        self.append(line, line.len())
    }

    fn append(&mut self, bytes: &[u8], raw: usize) -> Result<Place> {
        if !self.is_writing {
            self.file.seek(SeekFrom::Start(self.len)).map_err(failed)?;
            self.is_writing = true;
        }
        self.file.write_all(bytes).map_err(failed)?;
        let place = Place {
            offset: self.len,
            len: bytes.len(),
            raw,
        };
        self.len += bytes.len() as u64;
        Ok(place)
    }

    /// The body; it must have been put in.
    pub(super) fn body(&mut self, hash: &BodyHash) -> Result<Vec<u8>> {
        let Some(place) = self.bodies.get(hash).copied() else {
            return Err(Error::internal(format!("body `{hash}` was not kept")));
        };
        let packed = self.read(place)?;
        zstd::bulk::decompress(&packed, place.raw)
            .map_err(|e| Error::corrupt("unpack a body that was set aside").caused_by(e))
    }

    /// What lies there.
    pub(super) fn read(&mut self, place: Place) -> Result<Vec<u8>> {
        if self.is_writing {
            self.file.flush().map_err(failed)?;
            self.is_writing = false;
        }
        let mut bytes = vec![0; place.len];
        let file = self.file.get_mut();
        file.seek(SeekFrom::Start(place.offset))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(failed)?;
        Ok(bytes)
    }
}

fn failed(e: std::io::Error) -> Error {
    Error::io("use the file", "spool", e)
}

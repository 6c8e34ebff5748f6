//! The bearer token: from the environment, else a file that only its owner reads, made at the first start.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use lakebed::time::new_secret;
use lakebed::{Error, ErrorKind, Result};

/// The variable that names the token.
pub(super) const VARIABLE: &str = "LAKEBED_API_TOKEN";
/// The file within the folder of crawl state, which git ignores.
const FILE: &str = "api.token";
/// A shorter one could be guessed.
const MIN_LEN: usize = 20;

/// The token; only its hash is kept.
#[derive(Clone, Copy)]
pub(super) struct Token(blake3::Hash);

impl Token {
    fn of(text: &str, origin: &str) -> Result<Self> {
        let is_plain = text.bytes().all(|b| b.is_ascii_graphic());
        if text.len() < MIN_LEN || !is_plain {
            return Err(Error::invalid("the token of the interface is too short, or no plain ASCII")
                .with("origin", origin)
                .hint("at least 20 letters, digits and signs, without blanks: `openssl rand -hex 32` makes one"));
        }
        Ok(Self(blake3::hash(text.as_bytes())))
    }

    /// Whether a header `Authorization` carries it. Takes the same time for every wrong one: two hashes are
    /// compared, in constant time.
    pub(super) fn admits(&self, header: Option<&[u8]>) -> bool {
        let Some((scheme, given)) = header.and_then(|h| h.split_at_checked(7)) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"bearer ") && blake3::hash(given.trim_ascii()) == self.0
    }
}

/// Where the token came from, for people.
pub(super) enum TokenOrigin {
    /// The environment.
    Variable,
    /// This file.
    File(PathBuf),
}

/// The token of the environment, else of the file in `folder`, which is made where there is none.
pub(super) fn load(folder: &Path) -> Result<(Token, TokenOrigin)> {
    if let Some(text) = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        let text = text.to_string_lossy();
        return Ok((Token::of(&text, VARIABLE)?, TokenOrigin::Variable));
    }
    let path = folder.join(FILE);
    let text = match read(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound => make(folder, &path)?,
        other => other?,
    };
    let token = Token::of(text.trim(), &path.display().to_string())?;
    Ok((token, TokenOrigin::File(path)))
}

fn read(path: &Path) -> Result<String> {
    let failed = |e| Error::io("read the token", path.display(), e);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(
                Error::precondition("others may read the token of the interface")
                    .with("file", path.display())
                    .hint(format!(
                        "`chmod 600 {}`, or delete it: a new one is made",
                        path.display()
                    )),
            );
        }
    }
    fs::read_to_string(path).map_err(failed)
}

/// Makes the file, whole and for its owner alone; of two processes that do so at once, one meets the other's.
fn make(folder: &Path, path: &Path) -> Result<String> {
    let failed = |e| Error::io("write the token", path.display(), e);
    fs::create_dir_all(folder).map_err(failed)?;
    let secret = new_secret()?;
    let new = folder.join(format!(".{FILE}.{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new).map_err(failed)?;
    let written = file
        .write_all(format!("{secret}\n").as_bytes())
        .and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&new, path));
    fs::remove_file(&new).map_err(failed)?;
    match linked {
        Ok(()) => Ok(secret),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => read(path),
        Err(e) => Err(failed(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attacks API-4.
    #[test]
    fn only_the_whole_token_is_admitted() {
        let token = Token::of("0123456789abcdefghij", "test").unwrap();
        for good in [
            &b"Bearer 0123456789abcdefghij"[..],
            b"bearer 0123456789abcdefghij",
        ] {
            assert!(token.admits(Some(good)));
        }
        for bad in [
            None,
            Some(&b""[..]),
            Some(b"Bearer"),
            Some(b"Bearer "),
            Some(b"Bearer 0123456789abcdefghi"),
            Some(b"Bearer 0123456789abcdefghijk"),
            Some(b"Basic 0123456789abcdefghij"),
            Some(b"0123456789abcdefghij"),
            Some(b"Bearer\xff0123456789abcdefghij"),
        ] {
            assert!(!token.admits(bad), "{bad:?}");
        }
        assert!(Token::of("short", "test").is_err());
        assert!(Token::of("0123456789 bcdefghij", "test").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_made_once_and_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let made = make(folder.path(), &path).unwrap();
        assert_eq!(made.len(), 64);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = make(folder.path(), &path).unwrap();
        assert_eq!(again.trim(), made);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.hints()[0].contains("chmod 600"), "{error}");
    }
}

//! A damaged file set aside: a rebuild needs nothing of it, and a person may want to look at it.
//!
//! What counts as damage is what SQLite says of the file, a table that is missing, and values that
//! no program of ours can have written. A sound database of another program or of a newer line is no
//! damage: it is refused as everywhere.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::catalog::Catalog;
use crate::catalog::sqlite::SqliteCatalog;
use crate::catalog::sqlite::dump::TABLES;
use crate::error::{Error, ErrorKind, Result};

/// Files that SQLite keeps beside a database; they belong to it and go with it.
const SIDECARS: [&str; 2] = ["-wal", "-shm"];

impl SqliteCatalog {
    /// Opens the catalog for a rebuild. A damaged file is kept as `<name>.damaged-<n>` beside a new,
    /// empty catalog; its new path is the second part of the answer.
    ///
    /// # Errors
    /// As [`SqliteCatalog::open`], damage aside.
    pub async fn open_for_rebuild(path: impl Into<PathBuf>) -> Result<(Self, Option<PathBuf>)> {
        let path = path.into();
        match Self::open_sound(&path).await {
            Ok(catalog) => Ok((catalog, None)),
            Err(e) if e.kind() == ErrorKind::CorruptData => {
                let kept = set_aside(&path)?;
                Ok((Self::open(path).await?, Some(kept)))
            }
            Err(e) => Err(e),
        }
    }

    /// Opens the catalog and looks at every page of it.
    async fn open_sound(path: &Path) -> Result<Self> {
        let catalog = Self::open(path).await?;
        let checked = catalog.check_pages().await;
        if checked.is_err() {
            catalog.close().await;
        }
        checked.map(|()| catalog)
    }

    async fn check_pages(&self) -> Result<()> {
        let fail = |e| self.database.error("check the catalog", e);
        let answer: String = sqlx::query_scalar("PRAGMA quick_check(1)")
            .fetch_one(&self.pool)
            .await
            .map_err(fail)?;
        if answer != "ok" {
            return Err(self
                .database
                .corrupt("the catalog file is damaged")
                .caused_by(answer));
        }
        for (_, query) in TABLES {
            let none = format!("SELECT 1 FROM ({query}) LIMIT 0");
            sqlx::query(sqlx::AssertSqlSafe(none))
                .fetch_optional(&self.pool)
                .await
                .map_err(fail)?;
        }
        self.find_lake().await?;
        self.list_positions().await.map(|_| ())
    }
}

/// Moves the file and what belongs to it to the first free name; answers the file's.
fn set_aside(path: &Path) -> Result<PathBuf> {
    let beside = |end: &str| {
        let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
        name.push(end);
        path.with_file_name(name)
    };
    let kept = (1_u32..)
        .map(|n| beside(&format!(".damaged-{n}")))
        .find(|p| !p.exists())
        .ok_or_else(|| Error::limit("every name for a damaged catalog is taken"))?;
    std::fs::rename(path, &kept).map_err(|e| Error::io("move the file", path.display(), e))?;
    for end in SIDECARS {
        let mut name = kept.clone().into_os_string();
        name.push(end);
        match std::fs::rename(beside(end), &name) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("move the file", beside(end).display(), e)),
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::testlog::lake_spec;

    async fn made(path: &Path) -> Vec<u8> {
        let catalog = SqliteCatalog::open(path).await.unwrap();
        catalog.bind(&lake_spec("lake-1")).await.unwrap();
        catalog.close().await;
        std::fs::read(path).unwrap()
    }

    /// Every damage is an error that says what to do, and is set aside by a rebuild, byte for byte.
    #[tokio::test]
    async fn damage_of_every_kind_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let whole = made(&dir.path().join("sound.db")).await;
        let mut torn = whole.clone();
        torn[4096..].fill(0x5a);
        let mut no_header = whole.clone();
        no_header[..16].fill(0);
        let cases = [
            ("garbage", b"\x7fELF nothing of a catalog\n".repeat(400)),
            ("zeros", vec![0; 8192]),
            ("short", whole[..50].to_vec()),
            ("half", whole[..whole.len() / 2].to_vec()),
            ("cut", whole[..whole.len() - 10_000].to_vec()),
            ("torn", torn),
            ("no header", no_header),
        ];
        for (n, (what, bytes)) in cases.into_iter().enumerate() {
            let path = dir.path().join("catalog.db");
            std::fs::write(&path, &bytes).unwrap();
            std::fs::write(dir.path().join("catalog.db-wal"), b"old").unwrap();
            if let Err(error) = SqliteCatalog::open(&path).await {
                assert_eq!(error.kind(), ErrorKind::CorruptData, "{what}: {error}");
                let advice = error.hints().join(" ");
                assert!(
                    advice.contains("lakebed catalog rebuild"),
                    "{what}: {advice}"
                );
            }
            let (catalog, kept) = SqliteCatalog::open_for_rebuild(&path).await.unwrap();
            let kept = kept.unwrap_or_else(|| panic!("{what} was taken for sound"));
            assert!(
                kept.ends_with(format!("catalog.db.damaged-{}", n + 1)),
                "{kept:?}"
            );
            assert_eq!(std::fs::read(&kept).unwrap().len(), bytes.len(), "{what}");
            assert_eq!(catalog.find_lake().await.unwrap(), None);
            catalog.close().await;
        }
    }

    #[tokio::test]
    async fn a_lost_table_is_damage_and_a_sound_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("catalog.db");
        made(&path).await;
        let (catalog, kept) = SqliteCatalog::open_for_rebuild(&path).await.unwrap();
        assert_eq!(kept, None);
        assert!(catalog.find_lake().await.unwrap().is_some());
        sqlx::raw_sql("DROP TABLE commit_info")
            .execute(&catalog.pool)
            .await
            .unwrap();
        let error = catalog.list_commits(None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
        catalog.close().await;
        let (_, kept) = SqliteCatalog::open_for_rebuild(&path).await.unwrap();
        assert!(kept.is_some());
    }

    #[tokio::test]
    async fn a_database_of_another_program_is_not_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("places.db");
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true);
        let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
        sqlx::raw_sql("CREATE TABLE moz_places (id INTEGER)")
            .execute(&pool)
            .await
            .unwrap();
        pool.close().await;
        let error = SqliteCatalog::open_for_rebuild(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
        assert!(path.exists());
    }
}

//! A lake: a store with its `lake.json`, and the clock of whoever works on it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::name::LakeId;
use crate::spec::{LAKE_FORMAT, LakeSpec};
use crate::store::probe::probe;
use crate::store::{PutOutcome, Store, lake_json_path};
use crate::time::{Clock, time_zone, unique_id};

/// An opened lake; cheap to clone.
#[derive(Debug, Clone)]
pub struct Lake {
    store: Arc<dyn Store>,
    clock: Arc<Clock>,
    spec: Arc<LakeSpec>,
    shared: Shared,
}

/// What those who hold clones of one lake share, by type and name.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<HashMap<(TypeId, String), SharedPart>>>);

type SharedPart = Arc<dyn Any + Send + Sync>;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

impl Lake {
    /// Opens the lake in `store`; a lake of a newer format is refused.
    pub async fn open(store: Arc<dyn Store>, clock: Arc<Clock>) -> Result<Self> {
        let spec = Self::find_spec(&*store).await?.ok_or_else(|| {
            Error::not_found("there is no lake here: `lake.json` is missing")
                .with("lake", store.location())
                .hint("`lakebed init` makes one; check `lake` in lakebed.toml")
        })?;
        Ok(Self {
            store,
            clock,
            spec: Arc::new(spec),
            shared: Shared::default(),
        })
    }

    /// Opens the lake in `store`, making it first where there is none; the store is probed before.
    pub async fn open_or_create(
        store: Arc<dyn Store>,
        clock: Arc<Clock>,
        zone: &str,
    ) -> Result<Self> {
        time_zone(zone)?;
        if Self::find_spec(&*store).await?.is_none() {
            probe(&*store, &clock).await?;
            let spec = LakeSpec {
                format: LAKE_FORMAT,
                lake: unique_id(&clock).parse::<LakeId>()?,
                time_zone: zone.to_owned(),
                created_at: clock.now(),
            };
            let mut bytes = serde_json::to_vec_pretty(&spec)
                .map_err(|e| Error::internal("write lake.json as JSON").caused_by(e))?;
            bytes.push(b'\n');
            // Two programs that make the same lake at once: one wins, both open what it made.
            match store.put_once(&lake_json_path(), &bytes).await? {
                PutOutcome::Created | PutOutcome::Exists => {}
            }
        }
        Self::open(store, clock).await
    }

    async fn find_spec(store: &dyn Store) -> Result<Option<LakeSpec>> {
        let Some(bytes) = store.find(&lake_json_path()).await? else {
            return Ok(None);
        };
        let at = || format!("{}/lake.json", store.location());
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| {
            Error::corrupt("read lake.json: it is not JSON")
                .with("file", at())
                .caused_by(e)
        })?;
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        if format.is_some_and(|f| f > u64::from(LAKE_FORMAT)) {
            return Err(Error::unavailable("this lake was made by a newer Lakebed")
                .with("file", at())
                .with("format", format.unwrap_or(0))
                .hint(format!(
                    "this program knows format {LAKE_FORMAT}; install a newer one"
                )));
        }
        serde_json::from_value(value).map(Some).map_err(|e| {
            Error::corrupt(format!("read lake.json: {e}"))
                .with("file", at())
                .caused_by(e)
        })
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What `lake.json` says.
    #[must_use]
    pub fn spec(&self) -> &LakeSpec {
        &self.spec
    }

    /// The one `T` of that name which all clones of this lake share; made when it is first asked for.
    ///
    /// It is for meeting other callers of the same process, never for state: a lake that is opened
    /// twice has two.
    #[must_use]
    pub fn shared<T: Any + Send + Sync + Default>(&self, name: &str) -> Arc<T> {
        let mut all = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all
            .entry((TypeId::of::<T>(), name.to_owned()))
            .or_insert_with(|| Arc::new(T::default()));
        Arc::clone(known).downcast().unwrap_or_default()
    }

    /// The lake's id.
    #[must_use]
    pub fn id(&self) -> &LakeId {
        &self.spec.lake
    }
}

//! The parts of a Parquet footer that statistics are made of, borrowed from its bytes.
//!
//! A footer is Thrift's `FileMetaData`. Of its fields these are wanted: the number of rows (3), of each row group (4)
//! the statistics of the wanted columns and the number of rows, and by what order bounds were found (7). The
//! schema (2) comes before them; it is read elsewhere, once for many files that have the same.

use crate::catalog::thrift::{Damage, Kind, Read, Thrift};

/// What a footer says of one column chunk. Bytes are as Parquet's plain encoding has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    pub(super) null_count: Option<u64>,
    pub(super) min: Option<&'a [u8]>,
    pub(super) max: Option<&'a [u8]>,
    pub(super) min_exact: bool,
    pub(super) max_exact: bool,
    /// Whether the bounds are of the old kind, whose order nobody knows for texts and bytes.
    pub(super) is_old: bool,
}

/// By what order the bounds of a column were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// That of its type.
    Typed,
    /// One that this program does not know.
    Unknown,
}

/// A footer after its schema.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Footer<'a> {
    pub(super) rows: i64,
    /// Rows of each row group.
    pub(super) groups: Vec<u64>,
    /// Row group by row group, a chunk for each wanted column.
    pub(super) chunks: Vec<Chunk<'a>>,
    /// One for each column of the schema; `None` = the footer does not say.
    pub(super) orders: Option<Vec<Order>>,
}

/// How many bytes of the footer come before what follows the schema.
pub(super) fn schema_end(footer: &[u8]) -> Read<usize> {
    let mut thrift = Thrift::new(footer);
    let mut last = 0;
    while let Some((id, kind)) = thrift.field(last)? {
        match id {
            1 => thrift.skip(kind)?,
            2 => {
                thrift.skip(kind)?;
                return Ok(footer.len() - thrift.left());
            }
            _ => return Err(Damage::SchemaNotFirst),
        }
        last = id;
    }
    Err(Damage::NoSchema)
}

impl<'a> Footer<'a> {
    /// Reads what follows the schema. `wanted` has an entry for each column of the schema.
    pub(super) fn read(after_schema: &'a [u8], wanted: &[bool]) -> Read<Self> {
        let mut thrift = Thrift::new(after_schema);
        let mut footer = Self::default();
        let (mut rows, mut has_groups) = (None, false);
        let mut last = 2;
        while let Some((id, kind)) = thrift.field(last)? {
            last = id;
            match (id, kind) {
                (3, Kind::I64) => rows = Some(thrift.int()?),
                (4, Kind::List) if !has_groups => {
                    footer.read_groups(&mut thrift, wanted)?;
                    has_groups = true;
                }
                (7, Kind::List) => footer.orders = Some(read_orders(&mut thrift)?),
                _ => thrift.skip(kind)?,
            }
        }
        if footer
            .orders
            .as_ref()
            .is_some_and(|o| o.len() != wanted.len())
        {
            return Err(Damage::OtherOrders);
        }
        footer.rows = rows.ok_or(Damage::NoRows)?;
        has_groups.then_some(footer).ok_or(Damage::NoGroups)
    }

    fn read_groups(&mut self, thrift: &mut Thrift<'a>, wanted: &[bool]) -> Read<()> {
        let count = read_structs(thrift)?;
        let of_group = wanted.iter().filter(|w| **w).count();
        self.groups.reserve(count);
        // A footer may claim any number of row groups: what it has is read, not what it says.
        self.chunks.reserve(count.min(1024) * of_group);
        for _ in 0..count {
            let rows = self.read_group(thrift, wanted)?;
            self.groups.push(rows);
        }
        Ok(())
    }

    /// Reads a row group; answers its rows.
    fn read_group(&mut self, thrift: &mut Thrift<'a>, wanted: &[bool]) -> Read<u64> {
        let (mut rows, mut has_columns) = (None, false);
        let mut last = 0;
        while let Some((id, kind)) = thrift.field(last)? {
            last = id;
            match (id, kind) {
                (1, Kind::List) if !has_columns => {
                    has_columns = true;
                    if read_structs(thrift)? != wanted.len() {
                        return Err(Damage::OtherColumns);
                    }
                    for is_wanted in wanted {
                        match is_wanted {
                            true => self.chunks.push(read_chunk(thrift)?),
                            false => thrift.skip(Kind::Struct)?,
                        }
                    }
                }
                (3, Kind::I64) => rows = Some(thrift.int()?),
                _ => thrift.skip(kind)?,
            }
        }
        let rows = rows.ok_or(Damage::NoRows)?;
        let rows = u64::try_from(rows).map_err(|_| Damage::NegativeRows)?;
        has_columns.then_some(rows).ok_or(Damage::NoColumns)
    }
}

/// The head of a list of structs: how many there are.
fn read_structs(thrift: &mut Thrift<'_>) -> Read<usize> {
    match thrift.list()? {
        (Kind::Struct, count) | (_, count @ 0) => Ok(count),
        _ => Err(Damage::NoStructs),
    }
}

/// `ColumnChunk`: its metadata (3) have the statistics (12).
fn read_chunk<'a>(thrift: &mut Thrift<'a>) -> Read<Chunk<'a>> {
    let mut chunk = Chunk::default();
    let mut last = 0;
    while let Some((id, kind)) = thrift.field(last)? {
        last = id;
        if (id, kind) != (3, Kind::Struct) {
            thrift.skip(kind)?;
            continue;
        }
        let mut last = 0;
        while let Some((id, kind)) = thrift.field(last)? {
            last = id;
            match (id, kind) {
                (12, Kind::Struct) => chunk = read_statistics(thrift)?,
                _ => thrift.skip(kind)?,
            }
        }
    }
    Ok(chunk)
}

fn read_statistics<'a>(thrift: &mut Thrift<'a>) -> Read<Chunk<'a>> {
    let mut chunk = Chunk::default();
    let (mut old_min, mut old_max) = (None, None);
    let mut last = 0;
    while let Some((id, kind)) = thrift.field(last)? {
        last = id;
        match (id, kind) {
            (1, Kind::Binary) => old_max = Some(thrift.binary()?),
            (2, Kind::Binary) => old_min = Some(thrift.binary()?),
            (3, Kind::I64) => {
                let count = u64::try_from(thrift.int()?);
                chunk.null_count = Some(count.map_err(|_| Damage::NegativeNulls)?);
            }
            (5, Kind::Binary) => chunk.max = Some(thrift.binary()?),
            (6, Kind::Binary) => chunk.min = Some(thrift.binary()?),
            (7, Kind::True) => chunk.max_exact = true,
            (8, Kind::True) => chunk.min_exact = true,
            _ => thrift.skip(kind)?,
        }
    }
    chunk.is_old = chunk.min.is_none() && chunk.max.is_none();
    if chunk.is_old {
        (chunk.min, chunk.max) = (old_min, old_max);
    }
    Ok(chunk)
}

/// `ColumnOrder` is a union: the one field that it has says which order it is.
fn read_orders(thrift: &mut Thrift<'_>) -> Read<Vec<Order>> {
    let count = read_structs(thrift)?;
    let mut orders = Vec::with_capacity(count);
    for _ in 0..count {
        let Some((id, kind)) = thrift.field(0)? else {
            return Err(Damage::NoOrder);
        };
        thrift.skip(kind)?;
        if thrift.field(id)?.is_some() {
            return Err(Damage::TwoOrders);
        }
        orders.push(if id == 1 {
            Order::Typed
        } else {
            Order::Unknown
        });
    }
    Ok(orders)
}

//! Undoes content encodings: gzip, deflate, br, zstd, one over the other.
//!
//! FET-5: what a body becomes without its encodings is bounded while it is made, whatever its bytes promise
//! (a "zip bomb" costs the limit and no more).

use std::io::{self, Read};

use bytes::Bytes;

/// More encodings over one another are a joke.
const MAX_ENCODINGS: usize = 5;
/// Largest zstd window that is taken, as a power of two: what RFC 9659 allows.
const ZSTD_WINDOW_LOG: u32 = 23;

/// A body without its encodings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) body: Bytes,
    /// What was removed, outermost first; empty where nothing was, or an encoding is not known.
    pub(super) removed: Vec<String>,
    pub(super) end: DecodeEnd,
}

/// How decoding ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DecodeEnd {
    /// The body is what its bytes say.
    Whole,
    /// The limit was reached: the body is what fits.
    TooLarge,
    /// The bytes are no valid encoding, or end too early: the body is what could be read before.
    Broken(String),
}

/// Undoes the encodings that the values of `Content-Encoding` name, in reverse, up to `max` bytes.
///
/// A body with an encoding that is not known stays as it is. An empty body is empty in every encoding
/// (servers mark those, too).
pub(super) fn decode(wire: Bytes, encodings: &[String], max: u64) -> Decoded {
    let names: Vec<String> = encodings
        .iter()
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty() && name != "identity")
        .collect();
    let is_known = |n: &String| matches!(n.as_str(), "gzip" | "x-gzip" | "deflate" | "br" | "zstd");
    let mut decoded = Decoded {
        body: wire,
        removed: Vec::new(),
        end: DecodeEnd::Whole,
    };
    if decoded.body.is_empty() || names.is_empty() || !names.iter().all(is_known) {
        let room = usize::try_from(max).unwrap_or(usize::MAX);
        if decoded.body.len() > room {
            decoded.body.truncate(room);
            decoded.end = DecodeEnd::TooLarge;
        }
        return decoded;
    }
    if names.len() > MAX_ENCODINGS {
        decoded.end = DecodeEnd::Broken(format!("{} encodings over one another", names.len()));
        return decoded;
    }
    for name in names.into_iter().rev() {
        let (body, end) = undo(&name, &decoded.body, max);
        if matches!(end, DecodeEnd::Broken(_)) && body.is_empty() {
            // Nothing could be read: what came says more than nothing.
            decoded.end = end;
            return decoded;
        }
        decoded.body = body.into();
        decoded.removed.push(name);
        decoded.end = end;
        if decoded.end != DecodeEnd::Whole {
            return decoded;
        }
    }
    decoded
}

fn undo(name: &str, bytes: &[u8], max: u64) -> (Vec<u8>, DecodeEnd) {
    match name {
        "br" => read_new(brotli::Decompressor::new(bytes, 4096), max),
        "zstd" => match zstd::stream::read::Decoder::new(bytes) {
            Ok(mut decoder) => match decoder.window_log_max(ZSTD_WINDOW_LOG) {
                Ok(()) => read_new(decoder, max),
                Err(e) => (Vec::new(), DecodeEnd::Broken(e.to_string())),
            },
            Err(e) => (Vec::new(), DecodeEnd::Broken(e.to_string())),
        },
        // RFC 9110 means the zlib form; some servers send the bare one.
        "deflate" if is_zlib(bytes) => read_new(flate2::bufread::ZlibDecoder::new(bytes), max),
        "deflate" => read_new(flate2::bufread::DeflateDecoder::new(bytes), max),
        _ => read_gzip(bytes, max),
    }
}

/// Whether bytes begin like zlib (RFC 1950): method 8, and a check that divides by 31.
fn is_zlib(bytes: &[u8]) -> bool {
    match bytes {
        [a, b, ..] => a & 0x0f == 8 && u16::from_be_bytes([*a, *b]) % 31 == 0,
        _ => false,
    }
}

/// All members of a gzip stream; zeros or rubbish behind them is passed over, as by everybody.
fn read_gzip(bytes: &[u8], max: u64) -> (Vec<u8>, DecodeEnd) {
    let mut rest = bytes;
    let mut out = Vec::new();
    loop {
        let mut decoder = flate2::bufread::GzDecoder::new(rest);
        let end = read_all(&mut decoder, &mut out, max);
        if end != DecodeEnd::Whole {
            return (out, end);
        }
        rest = decoder.into_inner();
        if !rest.starts_with(&[0x1f, 0x8b]) {
            return (out, DecodeEnd::Whole);
        }
    }
}

fn read_new(from: impl Read, max: u64) -> (Vec<u8>, DecodeEnd) {
    let mut out = Vec::new();
    let end = read_all(from, &mut out, max);
    (out, end)
}

/// Reads until `out` has `max` bytes, and says whether there was more.
fn read_all(mut from: impl Read, out: &mut Vec<u8>, max: u64) -> DecodeEnd {
    let mut chunk = vec![0_u8; 16 * 1024];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return DecodeEnd::Whole,
            Ok(n) => {
                let room = max.saturating_sub(u64::try_from(out.len()).unwrap_or(u64::MAX));
                let room = usize::try_from(room).unwrap_or(usize::MAX);
                out.extend_from_slice(&chunk[..n.min(room)]);
                if n > room {
                    return DecodeEnd::TooLarge;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return DecodeEnd::Broken(e.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn encode(name: &str, bytes: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::default();
        match name {
            "gzip" | "x-gzip" => {
                let mut e = flate2::write::GzEncoder::new(Vec::new(), level);
                e.write_all(bytes).unwrap();
                e.finish().unwrap()
            }
            "deflate" => {
                let mut e = flate2::write::ZlibEncoder::new(Vec::new(), level);
                e.write_all(bytes).unwrap();
                e.finish().unwrap()
            }
            "br" => {
                let mut out = Vec::new();
                brotli::CompressorWriter::new(&mut out, 4096, 5, 22)
                    .write_all(bytes)
                    .unwrap();
                out
            }
            _ => zstd::encode_all(bytes, 3).unwrap(),
        }
    }

    fn names(text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    const ALL: [&str; 5] = ["gzip", "x-gzip", "deflate", "br", "zstd"];

    #[test]
    fn every_encoding_and_all_over_one_another() {
        let page = "<html>中文</html>".repeat(1000);
        for name in ALL {
            let decoded = decode(
                encode(name, page.as_bytes()).into(),
                &names(&name.to_uppercase()),
                1 << 20,
            );
            assert_eq!(decoded.body, page.as_bytes(), "{name}");
            assert_eq!(
                (decoded.removed, decoded.end),
                (vec![name.to_owned()], DecodeEnd::Whole)
            );
        }
        let twice = encode("br", &encode("gzip", page.as_bytes()));
        let values = ["gzip".to_owned(), "identity, br".to_owned()];
        let decoded = decode(twice.into(), &values, 1 << 20);
        assert_eq!(decoded.body, page.as_bytes());
        assert_eq!(decoded.removed, ["br", "gzip"]);
    }

    #[test]
    fn sloppy_servers() {
        let mut e = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        e.write_all(b"bare").unwrap();
        assert_eq!(
            decode(e.finish().unwrap().into(), &names("deflate"), 99).body,
            "bare"
        );
        let members = [encode("gzip", b"one "), encode("gzip", b"two"), vec![0; 7]].concat();
        let decoded = decode(members.into(), &names("gzip"), 99);
        assert_eq!(
            (&decoded.body[..], decoded.end),
            (&b"one two"[..], DecodeEnd::Whole)
        );
        let untouched = decode(Bytes::from_static(b"x"), &names("gzip, aws-chunked"), 99);
        assert_eq!(
            (&untouched.body[..], untouched.removed.len()),
            (&b"x"[..], 0)
        );
        let long = decode(Bytes::from_static(b"0123456789"), &[], 9);
        assert_eq!(
            (&long.body[..], long.end),
            (&b"012345678"[..], DecodeEnd::TooLarge)
        );
        assert_eq!(
            decode(Bytes::new(), &names("gzip"), 99).end,
            DecodeEnd::Whole
        );
        let plain = decode(Bytes::from_static(b"<html>"), &names("gzip"), 99);
        assert!(matches!(plain.end, DecodeEnd::Broken(_)));
        assert_eq!((&plain.body[..], plain.removed.len()), (&b"<html>"[..], 0));
        let many = decode(Bytes::from_static(b"x"), &vec!["gzip".to_owned(); 6], 99);
        assert!(matches!(many.end, DecodeEnd::Broken(_)));
    }

    #[test]
    fn a_bomb_costs_the_limit() {
        let zeros = vec![0_u8; 4 << 20];
        for name in ALL {
            let bomb = encode(name, &zeros);
            assert!(bomb.len() < 1 << 16, "{name}");
            let decoded = decode(bomb.into(), &names(name), 1 << 17);
            assert_eq!(
                (decoded.body.len(), decoded.end),
                (1 << 17, DecodeEnd::TooLarge),
                "{name}"
            );
        }
        let nested = encode("gzip", &encode("gzip", &zeros));
        let decoded = decode(nested.into(), &names("gzip, gzip"), 1000);
        assert_eq!(decoded.end, DecodeEnd::TooLarge);
        let many_members = encode("gzip", &[7; 300]).repeat(100);
        let decoded = decode(many_members.into(), &names("gzip"), 1000);
        assert_eq!(
            (decoded.body.len(), decoded.end),
            (1000, DecodeEnd::TooLarge)
        );
    }

    #[test]
    fn a_body_of_just_the_limit_is_whole() {
        for name in ALL {
            let decoded = decode(encode(name, &[7; 5000]).into(), &names(name), 5000);
            assert_eq!(
                (decoded.body.len(), decoded.end),
                (5000, DecodeEnd::Whole),
                "{name}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_cut_body_is_never_whole(bytes in proptest::collection::vec(any::<u8>(), 1..2000), name in 0..ALL.len(), at in any::<proptest::sample::Index>()) {
            let whole = encode(ALL[name], &bytes);
            let cut = 1 + at.index(whole.len() - 1);
            let decoded = decode(whole[..cut].to_vec().into(), &names(ALL[name]), 1 << 20);
            prop_assert!(matches!(decoded.end, DecodeEnd::Broken(_)), "{} of {}", cut, whole.len());
        }

        #[test]
        fn rubbish_is_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..500), name in 0..ALL.len()) {
            let decoded = decode(bytes.into(), &names(ALL[name]), 10_000);
            prop_assert!(decoded.body.len() <= 10_000);
        }
    }
}

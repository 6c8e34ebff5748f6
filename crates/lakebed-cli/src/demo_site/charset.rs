//! In which charset a page is written, and what header and page say about it.

use encoding_rs::{BIG5, Encoding, GBK};

use crate::demo_site::fault::CharsetFault;

fn encoding(fault: CharsetFault) -> &'static Encoding {
    match fault {
        CharsetFault::Gbk | CharsetFault::None => GBK,
        CharsetFault::Big5 | CharsetFault::Lie | CharsetFault::Meta => BIG5,
    }
}

/// The bytes of a text. What the charset lacks becomes a numeric reference, as browsers do it.
pub(crate) fn encode(fault: Option<CharsetFault>, text: &str) -> Vec<u8> {
    match fault {
        Some(fault) => encoding(fault).encode(text).0.into_owned(),
        None => text.as_bytes().to_vec(),
    }
}

/// The charset that the element `meta` names; `None` = there is no such element.
pub(crate) fn declared_in_page(fault: Option<CharsetFault>) -> Option<&'static str> {
    match fault {
        None | Some(CharsetFault::Lie) => Some("utf-8"),
        Some(CharsetFault::Gbk) => Some("gbk"),
        Some(CharsetFault::Big5 | CharsetFault::Meta) => Some("big5"),
        Some(CharsetFault::None) => None,
    }
}

/// The charset that the header `Content-Type` names; `None` = it names none.
pub(crate) fn declared_in_header(fault: Option<CharsetFault>) -> Option<&'static str> {
    match fault {
        None | Some(CharsetFault::Lie) => Some("utf-8"),
        Some(CharsetFault::Gbk) => Some("gbk"),
        Some(CharsetFault::Big5) => Some("big5"),
        Some(CharsetFault::Meta | CharsetFault::None) => None,
    }
}

//! The polite fetcher: one request in, one capture and its body out.

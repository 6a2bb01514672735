//! What stands in for the page in a build without it.

use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};

use crate::base_path::BasePath;
use crate::http::Refusal;

/// There is none.
#[derive(Debug)]
pub(crate) struct Dashboard;

impl Dashboard {
    pub(crate) fn new(_: &BasePath) -> Self {
        Self
    }

    /// Says so to whoever looks for it.
    #[expect(clippy::unused_self, reason = "the shape of the one that there is")]
    pub(crate) fn answer(&self, method: &Method, path: &str, _: &HeaderMap) -> Option<Response> {
        if path != "/" || !matches!(*method, Method::GET | Method::HEAD) {
            return None;
        }
        let detail = "this build has no page: the feature `ui` is off; `redrive --help` says what the command line does, \
                      and openapi.json what the API does";
        Some(Refusal::new(StatusCode::NOT_FOUND, "NO_SUCH_ROUTE", detail).into_response())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_looks_for_the_page_is_told_where_else_to_look() {
        let of = |method: Method, path: &str| Dashboard.answer(&method, path, &HeaderMap::new());
        assert_eq!(of(Method::GET, "/").map(|answer| answer.status()), Some(StatusCode::NOT_FOUND));
        assert!(of(Method::GET, "/queues").is_none() && of(Method::POST, "/").is_none());
    }
}

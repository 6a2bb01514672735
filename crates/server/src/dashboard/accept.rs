//! What a browser says that it takes, and how gladly.

use axum::http::{HeaderMap, HeaderName, header};

/// The highest weight, in thousandths.
const GLADLY: u16 = 1_000;

/// An encoding that a file may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// As it is.
    Identity,
    Gzip,
    Brotli,
}

impl Encoding {
    /// The best last: of those that are taken as gladly, it is the one.
    const ALL: [Self; 3] = [Self::Identity, Self::Gzip, Self::Brotli];

    /// Its name in headers.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
        }
    }

    /// The one that is taken most gladly, of those that there are. Who refuses all of them gets the file as it is.
    pub(super) fn chosen(headers: &HeaderMap, there: impl Fn(Self) -> bool) -> Self {
        let weighed = Self::ALL.into_iter().filter(|encoding| there(*encoding));
        let weighed = weighed.map(|encoding| (encoding.weight(headers), encoding));
        let best = weighed.filter(|(weight, _)| *weight > 0).max_by_key(|(weight, _)| *weight);
        best.map_or(Self::Identity, |(_, encoding)| encoding)
    }

    /// How gladly it is taken. What nobody speaks of is not taken, but as it is a file always may come, if less gladly than
    /// in any way that was named.
    fn weight(self, headers: &HeaderMap) -> u16 {
        let said = |name: &str| {
            let mut all = listed(headers, &header::ACCEPT_ENCODING);
            all.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, weight)| weight)
        };
        match said(self.name()).or_else(|| said("*")) {
            Some(0) => 0,
            Some(weight) => weight + 1,
            None => u16::from(self == Self::Identity),
        }
    }
}

/// Whether a page is wanted. Programs take anything, and say so; only a browser that shows what it gets asks for this.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    let mut kinds = listed(headers, &header::ACCEPT);
    kinds.any(|(kind, weight)| weight > 0 && kind.eq_ignore_ascii_case("text/html"))
}

/// Whether the sender has it already.
pub(super) fn has_already(headers: &HeaderMap, tag: &str) -> bool {
    let mut known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known.any(|list| {
        list.split(',').map(str::trim).any(|known| known == "*" || known.trim_start_matches("W/") == tag)
    })
}

/// What a header lists, each with how gladly it is taken. What has a weight that is none is not taken.
fn listed<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = (&'a str, u16)> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|item| {
        let mut parts = item.split(';').map(str::trim);
        let what = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        (what, weight.map_or(GLADLY, |text| thousandths(text).unwrap_or(0)))
    })
}

/// A number from 0 to 1 with three digits at most.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
    if digits.len() > 3 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let part: u16 = format!("{digits:0<3}").parse().ok()?;
    match whole {
        "0" => Some(part),
        "1" if part == 0 => Some(GLADLY),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let value = |text: &&str| (name.clone(), HeaderValue::from_bytes(text.as_bytes()).unwrap());
        values.iter().map(value).collect()
    }

    #[test]
    fn the_encoding_that_is_taken_most_gladly_is_chosen() {
        let of = |values: &[&str]| Encoding::chosen(&headers(&header::ACCEPT_ENCODING, values), |_| true);
        for (said, chosen) in [
            (&["gzip, deflate, br, zstd"][..], Encoding::Brotli),
            (&["gzip", "br"], Encoding::Brotli),
            (&["GZIP"], Encoding::Gzip),
            (&["br;q=0.5, gzip;q=0.8"], Encoding::Gzip),
            (&["br; q=0.5 , gzip ;Q=0.5"], Encoding::Brotli),
            (&["br;q=0, gzip"], Encoding::Gzip),
            (&["br;q=0.000"], Encoding::Identity),
            (&["gzip;q=0.001"], Encoding::Gzip),
            (&["gzip;q=0.5, identity"], Encoding::Identity),
            (&["*"], Encoding::Brotli),
            (&["*;q=0"], Encoding::Identity),
            (&["*;q=0.5, br;q=0"], Encoding::Gzip),
            (&["identity;q=0, gzip;q=0.1"], Encoding::Gzip),
            (&["identity;q=0"], Encoding::Identity),
            (&["deflate, zstd"], Encoding::Identity),
            (&["br;q=2"], Encoding::Identity),
            (&["br;q=0.1234"], Encoding::Identity),
            (&["br;q="], Encoding::Identity),
            (&["br;q=1.001, gzip;q=x"], Encoding::Identity),
            (&[""], Encoding::Identity),
            (&[], Encoding::Identity),
            (&["\u{e9}br"], Encoding::Identity),
            (&["brr, xgzip, gzip/br"], Encoding::Identity),
        ] {
            assert_eq!(of(said), chosen, "{said:?}");
        }
        let small = Encoding::chosen(&headers(&header::ACCEPT_ENCODING, &["br, gzip"]), |encoding| {
            encoding != Encoding::Brotli
        });
        assert_eq!(small, Encoding::Gzip, "it is not there otherwise");
    }

    #[test]
    fn only_who_asks_for_a_page_wants_one() {
        let of = |values: &[&str]| wants_page(&headers(&header::ACCEPT, values));
        assert!(of(&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"]));
        assert!(of(&["application/json", "TEXT/HTML;level=1;q=0.1"]));
        for other in
            [&["*/*"][..], &["text/*"], &["text/html;q=0"], &["application/json"], &["text/htmlx"], &[]]
        {
            assert!(!of(other), "{other:?}");
        }
    }

    #[test]
    fn what_is_there_already_is_known_by_its_tag() {
        let of = |values: &[&str]| has_already(&headers(&header::IF_NONE_MATCH, values), "\"a-br\"");
        for known in
            [&["\"a-br\""][..], &["W/\"a-br\""], &["\"x\", \"a-br\""], &["\"x\"", "\"a-br\""], &["*"]]
        {
            assert!(of(known), "{known:?}");
        }
        for other in [&[][..], &[""], &["\"a\""], &["a-br"], &["\"a-br"], &["\"A-BR\""]] {
            assert!(!of(other), "{other:?}");
        }
    }
}

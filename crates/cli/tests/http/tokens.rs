//! What is not a key, however it is shown.

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Answer, Server, generate_key};

/// Ways to show a token that is right in itself.
const SCHEMES: [&str; 24] = [
    "{}",
    "Bearer{}",
    "Bearer  {}",
    "Bearer\t{}",
    " Bearer: {}",
    "Bearer:{}",
    "Bearer {} ,",
    "Bearer {}, Bearer {}",
    "Bearer \"{}\"",
    "Bearer '{}'",
    "Bearer <{}>",
    "Bearer token={}",
    "Bearer {}=",
    "Bearer {}.",
    "Bearer {};",
    "Bearer {} x",
    "Bearer Bearer {}",
    "Basic {}",
    "Basic {}:",
    "Digest {}",
    "Token {}",
    "ApiKey {}",
    "AWS4-HMAC-SHA256 Credential={}",
    "Negotiate {}",
];

/// Things that are keys elsewhere, or nowhere.
const OTHERS: [&str; 40] = [
    "",
    "Bearer",
    "Bearer ",
    "Bearer null",
    "Bearer undefined",
    "Bearer none",
    "Bearer true",
    "Bearer 0",
    "Bearer -1",
    "Bearer *",
    "Bearer %",
    "Bearer _",
    "Bearer rdk",
    "Bearer rdk_",
    "Bearer rdk__",
    "Bearer rdk_0000000000000000_",
    "Bearer rdk_0000000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "Bearer rdk_ffffffffffffffff_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "Bearer rdk_0000000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB",
    "Bearer rdk_0000000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "Bearer rdk_0000000000000000_++++++++++++++++++++++++++++++++++++++++++A",
    "Bearer rdk_0000000000000000_//////////////////////////////////////////A",
    "Bearer rdk_../../../../etc/passwd_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "Bearer rdk_' OR '1'='1_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "Bearer ' OR 1=1 --",
    "Bearer {\"$ne\": null}",
    "Bearer ${jndi:ldap://127.0.0.1/a}",
    "Bearer {{7*7}}",
    "Bearer <script>alert(1)</script>",
    "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.AAAA",
    "Bearer ghp_000000000000000000000000000000000000",
    "Bearer sk_live_000000000000000000000000",
    "Bearer AKIAIOSFODNN7EXAMPLE",
    "Basic YWRtaW46YWRtaW4=",
    "Basic Og==",
    "Basic !!!!",
    "Digest username=\"admin\", realm=\"redrive\"",
    "Bearer \u{7f}",
    "Bearer %72%64%6b_",
];

async fn ask(server: &Server, header: HeaderValue) -> Answer {
    let request = server.client.get(server.url("/v1/whoami")).header(AUTHORIZATION, header);
    Answer::of(request.send().await.unwrap()).await
}

/// Every text that is one change away from a token.
fn near(token: &str) -> Vec<String> {
    let mut all = Vec::new();
    for at in 0..token.len() {
        all.push(token[..at].to_owned());
        let other = if token[at..].starts_with('Q') { 'g' } else { 'Q' };
        all.push(format!("{}{other}{}", &token[..at], &token[at + 1..]));
        all.push(format!("{}-{}", &token[..at], &token[at..]));
    }
    all.push(token.to_uppercase());
    all.push(token.to_lowercase());
    all.push(token.chars().rev().collect());
    all.push(token.repeat(2));
    all.push(token.repeat(500));
    all.retain(|near| near != token);
    all
}

#[tokio::test]
async fn what_is_not_a_key_lets_nobody_in_and_says_nothing_about_those_that_are() {
    let server = Server::keyed(&["--log-level", "error"]);
    let (_, token) = server.key(&[("read", "*")], serde_json::json!({})).await;
    let schemes = SCHEMES.iter().map(|scheme| scheme.replace("{}", &token));
    let near = near(&token).into_iter().map(|near| format!("Bearer {near}"));
    let others = OTHERS.iter().map(|&other| other.to_owned());
    let mut tried = 0;
    for text in schemes.chain(near).chain(others) {
        // What is no header is tried below, byte by byte.
        let Ok(header) = HeaderValue::from_str(&text) else { continue };
        let answer = ask(&server, header).await;
        answer.refused(401, "KEY_INVALID");
        assert_eq!(answer.headers["www-authenticate"], "Bearer realm=\"redrive\"");
        assert_eq!(answer.body["detail"], "this is not an API key of this server", "always the same");
        tried += 1;
    }
    assert!(tried >= 200, "{tried}");
    for right in [format!("Bearer {token}"), format!("bearer {token}"), format!("BEARER {token}")] {
        assert_eq!(
            ask(&server, HeaderValue::from_str(&right).unwrap()).await.status,
            200,
            "the scheme has no case"
        );
    }
}

/// What is answered to a head that is sent as it is.
async fn raw(server: &Server, head: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(head).await.unwrap();
    let mut answer = Vec::new();
    // The server may cut the connection instead.
    drop(stream.read_to_end(&mut answer).await);
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn headers_that_no_client_would_send_let_nobody_in() {
    let server = Server::keyed(&["--log-level", "error"]);
    let token = server.token.clone().unwrap();
    let get = |headers: &[u8]| {
        let host = format!("GET /v1/whoami HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", server.address());
        [host.as_bytes(), headers, b"\r\n\r\n"].concat()
    };
    let right = get(format!("authorization: Bearer {token}").as_bytes());
    assert!(raw(&server, &right).await.starts_with("HTTP/1.1 200"));
    let twice = format!("authorization: Bearer {token}\r\nauthorization: Bearer {token}");
    let other = format!("authorization: Bearer {}\r\nAuthorization: Bearer {token}", generate_key());
    let folded = format!("authorization: Bearer\r\n {token}");
    let spaced = format!("authorization : Bearer {token}");
    let null = format!("authorization: Bearer {token}\0");
    let bare = format!("authorization: Bearer {token}\rx");
    let cookie = format!("cookie: authorization=Bearer {token}; token={token}");
    let proxy = format!(
        "proxy-authorization: Bearer {token}\r\nx-api-key: {token}\r\nx-forwarded-authorization: Bearer {token}"
    );
    let high = [b"authorization: Bearer \xff\xfe".as_slice(), token.as_bytes()].concat();
    let texts = [twice, other, folded, spaced, null, bare, cookie, proxy];
    let heads = texts.iter().map(|text| text.as_bytes().to_vec()).chain([high]);
    for head in heads {
        let answer = raw(&server, &get(&head)).await;
        let shown = String::from_utf8_lossy(&head).into_owned();
        assert!(
            answer.starts_with("HTTP/1.1 401") || answer.starts_with("HTTP/1.1 400"),
            "{shown:?}: {answer}"
        );
    }
    // Never in a URL.
    for path in ["/v1/whoami?token=", "/v1/whoami?access_token=", "/v1/whoami?authorization=Bearer%20"] {
        let request = server.request_as(None, Method::GET, &format!("{path}{token}"));
        assert_eq!(request.send().await.unwrap().status(), 401);
    }
}

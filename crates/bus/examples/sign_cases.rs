//! Prints signed requests as JSON, for somebody else's library to verify: see `webhook_signatures.py` among the foreign
//! clients of the command line. The secrets are the same each time; the time is an argument, in seconds.

use data_encoding::BASE64;
use redrive_bus::webhook::{SigningSecret, sign};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timestamp: u64 = std::env::args().nth(1).ok_or("usage: sign_cases SECONDS")?.parse()?;
    let bodies = [
        String::new(),
        "{}".to_owned(),
        r#"{"test": 2432232314}"#.to_owned(),
        "Grüße, 世界 🎉".to_owned(),
        " a.b.c\r\n\t\0".to_owned(),
        "x".repeat(100_000),
    ];
    let mut cases = Vec::new();
    for length in [24_u8, 25, 31, 32, 33, 48, 63, 64] {
        let secret = |first: u8| {
            let bytes: Vec<u8> = (0..length).map(|n| n.wrapping_mul(37).wrapping_add(first)).collect();
            SigningSecret::parse(&BASE64.encode(&bytes))
        };
        let (new, old) = (secret(length)?, secret(length.wrapping_add(1))?);
        for (n, body) in bodies.iter().enumerate() {
            let id = format!("msg_{length}_{n}");
            for secrets in [vec![new.clone()], vec![old.clone(), new.clone()]] {
                let signature = sign(&secrets, &id, timestamp, body.as_bytes());
                // The receiver knows the new one alone.
                cases.push(json!({
                    "secret": new.reveal(),
                    "id": id,
                    "timestamp": timestamp.to_string(),
                    "body": body,
                    "signature": signature,
                }));
            }
        }
    }
    println!("{}", serde_json::to_string(&cases)?);
    Ok(())
}

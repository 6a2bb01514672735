//! The API key that a server is started with.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use redrive_core::access::{KeyId, Secret, Token};
use rustix::rand::{GetRandomFlags, getrandom};

/// The variable in which the key stands that may do everything.
pub(crate) const BOOTSTRAP: &str = "REDRIVE_BOOTSTRAP_KEY";

/// A key that nobody can guess.
pub(crate) fn generate() -> anyhow::Result<Token> {
    let (mut id, mut secret) = ([0; 8], [0; 32]);
    fill(&mut id)?;
    fill(&mut secret)?;
    Ok(Token { id: KeyId::new(id), secret: Secret::new(secret) })
}

fn fill(bytes: &mut [u8]) -> anyhow::Result<()> {
    let got = getrandom(&mut *bytes, GetRandomFlags::empty()).context("randomness")?;
    // The kernel gives up to 256 bytes whole.
    if got == bytes.len() { Ok(()) } else { bail!("the machine has too little randomness") }
}

/// The key from the environment, or from the file that the configuration names. What is wrong with it is told without it.
pub(crate) fn bootstrap(variable: Option<String>, file: Option<&Path>) -> anyhow::Result<Option<Token>> {
    let (place, text) = match (variable, file) {
        (Some(_), Some(_)) => bail!("{BOOTSTRAP} and bootstrap_key_file: only one must be given"),
        (Some(text), None) => (BOOTSTRAP.to_owned(), text),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path);
            (path.display().to_string(), text.with_context(|| format!("reading {}", path.display()))?)
        }
        (None, None) => return Ok(None),
    };
    let token = text.trim_end_matches(['\r', '\n']).parse();
    token.map(Some).map_err(|wrong| anyhow!("{place}: {wrong}; `redrive key generate` prints one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_all_different_and_are_taken_as_they_are_printed() {
        let (one, other) = (generate().unwrap().expose(), generate().unwrap().expose());
        assert_ne!(one, other);
        assert_eq!(bootstrap(Some(one.clone()), None).unwrap().unwrap().expose(), one);
    }

    #[test]
    fn a_key_may_stand_in_a_file_and_what_is_wrong_is_told_without_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let token = generate().unwrap().expose();
        std::fs::write(file.path(), format!("{token}\n")).unwrap();
        assert_eq!(bootstrap(None, Some(file.path())).unwrap().unwrap().expose(), token);
        assert!(bootstrap(Some(token.clone()), Some(file.path())).is_err());
        let wrong = format!("{token}x");
        let error = format!("{:#}", bootstrap(Some(wrong.clone()), None).unwrap_err());
        assert!(error.starts_with(BOOTSTRAP) && !error.contains(&token[20..]), "{error}");
        std::fs::write(file.path(), wrong).unwrap();
        let error = format!("{:#}", bootstrap(None, Some(file.path())).unwrap_err());
        assert!(error.contains("16 hexadecimal digits") && !error.contains(&token[20..]), "{error}");
        assert!(bootstrap(None, Some(Path::new("/nowhere"))).is_err());
        assert!(bootstrap(None, None).unwrap().is_none());
    }
}

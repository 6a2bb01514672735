//! Which server is asked, and as whom: flags, over the environment, over a context, over the default.

use std::path::{Path, PathBuf};

use clap::Args;
use reqwest::Url;

use super::contexts::{self, Context, Contexts};
use super::failure::Failure;

/// The server that is asked where nothing is said.
const URL: &str = "http://127.0.0.1:7400";

/// Which server is asked, and as whom.
#[derive(Args)]
pub(crate) struct ConnectionArguments {
    /// Where the server is, `http://127.0.0.1:7400` where nothing is said (`REDRIVE_URL`).
    #[arg(long, value_name = "URL", global = true, help_heading = "Server")]
    pub(crate) url: Option<String>,
    /// The API key to show (`REDRIVE_TOKEN`).
    #[arg(long, value_name = "TOKEN", global = true, help_heading = "Server")]
    pub(crate) token: Option<String>,
    /// A file with the authorities that the server's certificate must come from (`REDRIVE_CA`).
    #[arg(long, value_name = "FILE", global = true, help_heading = "Server")]
    pub(crate) ca: Option<PathBuf>,
    /// The server of this name in contexts.toml (`REDRIVE_CONTEXT`).
    #[arg(long, value_name = "NAME", global = true, help_heading = "Server")]
    pub(crate) context: Option<String>,
}

impl std::fmt::Debug for ConnectionArguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionArguments").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The server, and what it is shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Connection {
    pub(crate) url: Url,
    pub(crate) token: Option<String>,
    pub(crate) ca: Option<PathBuf>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("url", &self.url.as_str())
            .field("ca", &self.ca)
            .finish_non_exhaustive()
    }
}

impl ConnectionArguments {
    /// Whether somebody said which server is meant.
    pub(crate) fn is_said(&self) -> bool {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        self.url.is_some() || self.context.is_some() || set("REDRIVE_URL") || set("REDRIVE_CONTEXT")
    }

    /// What they mean on this machine.
    pub(crate) fn resolve(&self) -> Result<Connection, Failure> {
        self.within(|name| std::env::var(name).ok())
    }

    fn within(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Connection, Failure> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = contexts::path(&variable);
        let find = |name: Option<&str>| match &path {
            Some(path) => Contexts::read(path)?.find(name, path),
            None if name.is_some() => {
                Err(Failure::Usage("neither XDG_CONFIG_HOME nor HOME is set".to_owned()))
            }
            None => Ok(None),
        };
        let environment = Context {
            url: set("REDRIVE_URL"),
            token: set("REDRIVE_TOKEN"),
            ca: set("REDRIVE_CA").map(PathBuf::from),
        };
        let flags = Context { url: self.url.clone(), token: self.token.clone(), ca: self.ca.clone() };
        // A context that a flag names is a flag's word; any other is under the environment.
        let layers = if let Some(name) = &self.context {
            [flags, find(Some(name))?.unwrap_or_default(), environment]
        } else {
            // With an address from above no context is needed, and a broken file does not matter.
            let above = flags.url.is_some() || environment.url.is_some();
            let named = set("REDRIVE_CONTEXT");
            let context = if above { None } else { find(named.as_deref())? };
            [flags, environment, context.unwrap_or_default()]
        };
        Connection::of(&layers)
    }
}

impl Connection {
    /// One layer over the other. What a context or the environment shows is meant for the address that stands beside it: a
    /// token goes nowhere else, unless it has no address of its own.
    fn of(layers: &[Context]) -> Result<Self, Failure> {
        let at = layers.iter().position(|layer| layer.url.is_some());
        let text = at.and_then(|at| layers[at].url.as_deref()).unwrap_or(URL);
        let meant = |(below, layer): &(usize, &Context)| layer.url.is_none() || Some(*below) == at;
        let of = |get: fn(&Context) -> Option<&Path>| {
            layers.iter().enumerate().filter(meant).find_map(|(_, layer)| get(layer)).map(Path::to_owned)
        };
        let token = layers.iter().enumerate().filter(meant).find_map(|(_, layer)| layer.token.clone());
        Ok(Self { url: address(text)?, token, ca: of(|layer| layer.ca.as_deref()) })
    }
}

/// An address without anything that does not belong there.
fn address(text: &str) -> Result<Url, Failure> {
    let wrong = |why: &str| Failure::Usage(format!("url: `{text}` {why}, such as {URL}"));
    let url: Url = text.parse().map_err(|_| wrong("must be an address"))?;
    if !matches!(url.scheme(), "http" | "https") || url.cannot_be_a_base() {
        return Err(wrong("must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // It is not repeated: there is a password in it.
        return Err(Failure::Usage(
            "url: must have no user and no password; an API key goes into --token".to_owned(),
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("must have nothing behind the path"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(flags: [Option<&str>; 3], environment: &[(&str, &str)]) -> Result<Connection, Failure> {
        let [url, token, context] = flags.map(|flag| flag.map(str::to_owned));
        let arguments = ConnectionArguments { url, token, ca: None, context };
        arguments.within(|name| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn seen(connection: &Connection) -> (&str, &str) {
        (connection.url.as_str(), connection.token.as_deref().unwrap_or_default())
    }

    fn home(text: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("redrive")).unwrap();
        std::fs::write(dir.path().join("redrive/contexts.toml"), text).unwrap();
        dir
    }

    const FILE: &str = "current = \"prod\"\n[contexts.prod]\nurl = \"https://prod\"\ntoken = \"p\"\n[contexts.test]\nurl = \"http://test\"\nca = \"t.pem\"\n";

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_current_context() {
        let dir = home(FILE);
        let xdg = ("XDG_CONFIG_HOME", dir.path().to_str().unwrap());
        let env = ("REDRIVE_URL", "http://env");
        let of = |flags, environment: &[(&str, &str)]| resolve(flags, environment).unwrap();
        assert_eq!(seen(&of([None; 3], &[])), ("http://127.0.0.1:7400/", ""));
        assert_eq!(seen(&of([None; 3], &[xdg])), ("https://prod/", "p"));
        assert_eq!(seen(&of([None; 3], &[xdg, ("REDRIVE_CONTEXT", "test")])), ("http://test/", ""));
        assert_eq!(seen(&of([None; 3], &[xdg, env, ("REDRIVE_TOKEN", "e")])), ("http://env/", "e"));
        assert_eq!(seen(&of([Some("http://flag"), None, None], &[xdg, env])), ("http://flag/", ""));
        let named = of([None, None, Some("test")], &[xdg, env]);
        assert_eq!((seen(&named).0, named.ca.clone()), ("http://test/", Some("t.pem".into())));
    }

    #[test]
    fn a_token_goes_only_to_the_address_beside_which_it_stands() {
        let dir = home(FILE);
        let xdg = ("XDG_CONFIG_HOME", dir.path().to_str().unwrap());
        let (url, token) = (("REDRIVE_URL", "http://env"), ("REDRIVE_TOKEN", "e"));
        let of = |flags, environment: &[(&str, &str)]| resolve(flags, environment).unwrap();
        assert_eq!(seen(&of([Some("http://flag"), None, None], &[xdg])), ("http://flag/", ""), "not prod's");
        assert_eq!(seen(&of([Some("http://flag"), None, None], &[url, token])), ("http://flag/", ""));
        assert_eq!(seen(&of([None, None, Some("test")], &[xdg, url, token])), ("http://test/", ""));
        assert_eq!(
            seen(&of([Some("http://flag"), None, None], &[token])),
            ("http://flag/", "e"),
            "it stands alone"
        );
        assert_eq!(seen(&of([None, Some("f"), None], &[xdg])), ("https://prod/", "f"));
    }

    #[test]
    fn what_is_wrong_is_told_without_the_token() {
        let said = |text: &str, flags| {
            let dir = home(text);
            resolve(flags, &[("XDG_CONFIG_HOME", dir.path().to_str().unwrap())]).unwrap_err().to_string()
        };
        let unknown = said(FILE, [None, None, Some("tset")]);
        assert!(unknown.starts_with("there is no context `tset` in /"), "{unknown}");
        assert!(unknown.ends_with("contexts.toml, which has prod, test"), "{unknown}");
        let broken = said("[contexts.a]\ntoken = \"secret\" x", [None; 3]);
        assert!(broken.contains("contexts.toml: line 2, column ") && !broken.contains("secret"), "{broken}");
        assert!(said("[contexts.a]\nuri = \"x\"", [None; 3]).contains("unknown field `uri`"));
        for (url, why) in [
            ("here", "must be an address"),
            ("ftp://here", "must begin with http:// or https://"),
            ("mailto:me", "must begin with http:// or https://"),
            ("http://a/?b", "must have nothing behind the path"),
            ("http://me:secret@here", "must have no user and no password"),
        ] {
            let error = resolve([Some(url), None, None], &[]).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
    }
}

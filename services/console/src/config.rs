//! What the console has to know: where the API is.

/// The console's settings.
#[derive(Clone, Debug)]
pub struct Config {
    api: String,
}

/// The base URL of the API is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidUrl;

impl std::fmt::Display for InvalidUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the address of the API must begin with http:// or https://")
    }
}

impl std::error::Error for InvalidUrl {}

impl Config {
    /// Settings for the API at this base URL.
    ///
    /// # Errors
    /// When it is no HTTP URL.
    pub fn new(api: &str) -> Result<Self, InvalidUrl> {
        let rest = api
            .strip_prefix("http://")
            .or_else(|| api.strip_prefix("https://"));
        match rest {
            Some(host) if !host.is_empty() => Ok(Self { api: api.to_owned() }),
            Some(_) | None => Err(InvalidUrl),
        }
    }

    pub(crate) fn api(&self) -> &str {
        &self.api
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_has_an_http_address() {
        assert!(Config::new("http://127.0.0.1:7401").is_ok());
        assert!(Config::new("https://journeyman.example").is_ok());
        for wrong in ["", "127.0.0.1:7401", "file:///etc/passwd", "https://"] {
            assert_eq!(Config::new(wrong).unwrap_err(), InvalidUrl, "{wrong}");
        }
    }
}

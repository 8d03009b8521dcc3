//! The pages of other origins that may use the API.

use url::Url;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origins {
    #[default]
    None,
    /// All of them, but without cookies.
    Any,
    /// These, also with the session of the person who uses them. As browsers write them.
    Listed(Vec<String>),
}

impl Origins {
    /// Reads a list like `https://app.example.com, http://localhost:5173`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let named: Vec<&str> = text.split(',').map(str::trim).filter(|origin| !origin.is_empty()).collect();
        match named.as_slice() {
            [] => Ok(Self::None),
            ["*"] => Ok(Self::Any),
            named => named.iter().map(|origin| parse_one(origin)).collect::<Result<_, _>>().map(Self::Listed),
        }
    }

    /// Whether a page of this origin may use the session of the person who looks at it.
    pub fn trusts(&self, origin: &str) -> bool {
        matches!(self, Self::Listed(listed) if listed.iter().any(|one| one == origin))
    }
}

fn parse_one(text: &str) -> Result<String, String> {
    let wrong = || {
        "origins like https://app.example.com with commas between them, each without a path, or * alone"
            .to_owned()
    };
    let url = Url::parse(text).map_err(|_| wrong())?;
    let origin = url.origin().ascii_serialization();
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && !text.ends_with('/')
        // A part of a name that stands for others is not what a browser sends.
        && !text.contains('*')
        && url.query().is_none()
        && url.fragment().is_none();
    if is_plain { Ok(origin) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_listed_exactly() {
        assert_eq!(Origins::parse(" ").unwrap(), Origins::None);
        assert_eq!(Origins::parse("*").unwrap(), Origins::Any);
        let listed =
            Origins::parse("https://App.example.com, http://localhost:5173,https://x.example:443").unwrap();
        let expected = ["https://app.example.com", "http://localhost:5173", "https://x.example"];
        assert_eq!(listed, Origins::Listed(expected.map(str::to_owned).to_vec()));
        assert!(listed.trusts("https://app.example.com"));
        for other in [
            "http://app.example.com",
            "https://app.example.com.evil.example",
            "https://app.example.com:444",
            "null",
            "",
        ] {
            assert!(!listed.trusts(other), "{other}");
        }
        assert!(!Origins::Any.trusts("https://app.example.com"), "anyone is no one in particular");
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for wrong in [
            "app.example.com",
            "https://app.example.com/",
            "https://app.example.com/path",
            "https://user@app.example.com",
            "https://*.example.com",
            "https://app.example.com, *",
            "null",
            "file:///x",
        ] {
            assert!(Origins::parse(wrong).is_err(), "{wrong}");
        }
    }
}

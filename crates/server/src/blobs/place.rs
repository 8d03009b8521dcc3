//! Where the storage is: a folder, or a bucket of an object store.

use std::path::PathBuf;

/// The storage as it is configured.
#[derive(Debug, Clone)]
pub struct StorageConfig {
    pub place: Place,
    /// Where parts of an upload wait on disk until they are large enough for the object store.
    pub spool: PathBuf,
    /// The largest file that is accepted, which decides how large the parts of an upload are.
    pub max_file_bytes: u64,
}

#[derive(Debug, Clone)]
pub enum Place {
    Folder(PathBuf),
    Objects(Bucket),
}

/// A bucket, or a container, and how to reach it.
#[derive(Clone)]
pub struct Bucket {
    pub kind: StoreKind,
    pub name: String,
    /// What all keys begin with: nothing, or a path without a slash at its ends.
    pub prefix: String,
    /// The variables of the store's own convention, like `AWS_REGION`.
    pub options: Vec<(String, String)>,
    /// Where clients reach the object store, if that is not where this server reaches it.
    pub public_endpoint: Option<String>,
}

/// What speaks which API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    S3,
    Azure,
    Gcs,
}

impl StoreKind {
    /// The variables of this store begin so.
    pub const fn variables(self) -> &'static [&'static str] {
        match self {
            Self::S3 => &["AWS_"],
            Self::Azure => &["AZURE_"],
            Self::Gcs => &["GOOGLE_"],
        }
    }
}

impl Place {
    /// Reads `file://FOLDER`, `s3://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or `gs://BUCKET/PREFIX`.
    pub fn parse(url: &str) -> Result<Self, String> {
        const FORM: &str =
            "file://FOLDER, s3://BUCKET, az://CONTAINER or gs://BUCKET; a bucket may be followed by /PREFIX";
        let wrong = || FORM.to_owned();
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        if rest.is_empty() {
            return Err(wrong());
        }
        let kind = match scheme {
            "file" => return Ok(Self::Folder(rest.into())),
            "s3" => StoreKind::S3,
            "az" | "azure" => StoreKind::Azure,
            "gs" => StoreKind::Gcs,
            _ => return Err(wrong()),
        };
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_end_matches('/');
        let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        let is_segment =
            |segment: &str| !segment.is_empty() && segment != "." && segment != ".." && is_plain(segment);
        if !is_segment(name) || !(prefix.is_empty() || prefix.split('/').all(is_segment)) {
            return Err(wrong());
        }
        Ok(Self::Objects(Bucket {
            kind,
            name: name.to_owned(),
            prefix: prefix.to_owned(),
            options: Vec::new(),
            public_endpoint: None,
        }))
    }

    /// The folder, where it is one.
    pub fn folder(&self) -> Option<&PathBuf> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Objects(_) => None,
        }
    }
}

/// Without the values of the options: there are keys among them.
impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.options.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Bucket")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .field("prefix", &self.prefix)
            .field("options", &names)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_folder_or_a_bucket_with_a_prefix() {
        assert!(
            matches!(Place::parse("file://data/blobs"), Ok(Place::Folder(folder)) if folder.ends_with("blobs"))
        );
        for (url, kind, name, prefix) in [
            ("s3://files", StoreKind::S3, "files", ""),
            ("s3://files/", StoreKind::S3, "files", ""),
            ("s3://my.files/a/b/", StoreKind::S3, "my.files", "a/b"),
            ("az://files/landfall", StoreKind::Azure, "files", "landfall"),
            ("gs://files_1", StoreKind::Gcs, "files_1", ""),
        ] {
            let Ok(Place::Objects(bucket)) = Place::parse(url) else { panic!("{url}") };
            assert_eq!((bucket.kind, &*bucket.name, &*bucket.prefix), (kind, name, prefix), "{url}");
        }
        for url in
            ["", "data", "file://", "s3://", "s3:///a", "s3://a//b", "s3://a/../b", "http://a/b", "s3://a b"]
        {
            assert!(Place::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn the_keys_of_a_store_are_not_printed() {
        let Ok(Place::Objects(mut bucket)) = Place::parse("s3://files") else { panic!("a bucket") };
        bucket.options.push(("AWS_SECRET_ACCESS_KEY".to_owned(), "swordfish".to_owned()));
        let printed = format!("{bucket:?}");
        assert!(printed.contains("AWS_SECRET_ACCESS_KEY") && !printed.contains("swordfish"), "{printed}");
    }
}

//! A folder of real documents: `KIND/NAME`, and for some of them `KIND/NAME.txt` with the text of a reference tool.

use std::path::{Path, PathBuf};

use anyhow::Context;

const FOLDER: &str = "LANDFALL_CORPUS";
/// Where it is kept beside a checkout.
const BESIDE: &str = "../shared/corpus";

pub struct Corpus {
    pub documents: Vec<Document>,
}

pub struct Document {
    /// The name in the questions: the path inside the folder.
    pub name: String,
    pub path: PathBuf,
    /// Whether a reference tool found text in it.
    pub has_text: bool,
}

impl Corpus {
    /// `None` if there is none. A folder that is named explicitly must exist.
    pub fn find() -> anyhow::Result<Option<Self>> {
        let folder = match std::env::var_os(FOLDER) {
            Some(folder) => PathBuf::from(folder),
            None => Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(BESIDE),
        };
        if std::env::var_os(FOLDER).is_none() && !folder.is_dir() {
            return Ok(None);
        }
        let documents = documents(&folder).with_context(|| format!("{FOLDER}: {}", folder.display()))?;
        anyhow::ensure!(!documents.is_empty(), "{FOLDER}: no documents in {}", folder.display());
        Ok(Some(Self { documents }))
    }

    pub fn has(&self, name: &str) -> bool {
        self.documents.iter().any(|document| document.name == name)
    }
}

fn documents(folder: &Path) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    for kind in entries(folder)?.into_iter().filter(|kind| kind.is_dir()) {
        let inside = entries(&kind)?;
        let reference_of = |path: &Path| PathBuf::from(format!("{}.txt", path.display()));
        let references: Vec<PathBuf> = inside.iter().map(|path| reference_of(path)).collect();
        for path in inside.iter().filter(|path| path.is_file() && !references.contains(path)) {
            let name = path.strip_prefix(folder)?.to_str().context("a name that is no text")?.to_owned();
            let has_text = inside.contains(&reference_of(path));
            documents.push(Document { name, path: path.clone(), has_text });
        }
    }
    Ok(documents)
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut entries = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<PathBuf>>>()?;
    entries.sort();
    Ok(entries)
}

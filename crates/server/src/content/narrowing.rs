//! Which of the owner's files a search looks into.

use uuid::Uuid;

use landfall_core::caller::TenantUser;
use landfall_core::clock::Time;
use landfall_store::{Arg, places};

/// The files that are searched. What is `None` or empty matches all.
#[derive(Debug, Clone, Default)]
pub struct Narrowing {
    pub files: Vec<Uuid>,
    pub batch: Option<Uuid>,
    /// A part of the name.
    pub name: Option<String>,
    /// The content types; one that ends with `/` stands for all that begin with it.
    pub types: Vec<String>,
    /// Registered at this time or later, and before that one.
    pub created_after: Option<Time>,
    pub created_before: Option<Time>,
    /// Attributes that a file must have, each with its value as text.
    pub attributes: Vec<(String, String)>,
}

impl Narrowing {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
            && self.batch.is_none()
            && self.name.is_none()
            && self.types.is_empty()
            && self.created_after.is_none()
            && self.created_before.is_none()
            && self.attributes.is_empty()
    }

    /// The condition on the rows of `files`, named `f`, to be added to a statement: empty, or it begins with `AND`.
    /// Its arguments are added to those of the statement.
    pub fn condition(&self, owner: &TenantUser, arguments: &mut Vec<Arg>) -> String {
        let mut all: Vec<String> = Vec::new();
        if !self.files.is_empty() {
            all.push(format!("f.id IN ({})", places(self.files.iter().copied(), arguments)));
        }
        let mut place = |argument: Arg| {
            arguments.push(argument);
            format!("${}", arguments.len())
        };
        if let Some(batch) = self.batch {
            all.push(format!("f.batch_id = {}", place(batch.into())));
        }
        if let Some(name) = &self.name {
            all.push(format!(
                "LOWER(f.file_name) LIKE {} ESCAPE '!'",
                place(format!("%{}%", literal(name)).into())
            ));
        }
        if !self.types.is_empty() {
            let any: Vec<String> = self
                .types
                .iter()
                .map(|kind| {
                    // Parameters such as the character set do not count.
                    let pattern = if kind.ends_with('/') {
                        format!("{}%", literal(kind))
                    } else {
                        format!("{};%", literal(kind))
                    };
                    let (kind, pattern) = (place(kind.to_lowercase().into()), place(pattern.into()));
                    format!(
                        "LOWER(f.content_type) = {kind} OR LOWER(f.content_type) LIKE {pattern} ESCAPE '!'"
                    )
                })
                .collect();
            all.push(format!("({})", any.join(" OR ")));
        }
        if let Some(time) = self.created_after {
            all.push(format!("f.created_at >= {}", place(time.into())));
        }
        if let Some(time) = self.created_before {
            all.push(format!("f.created_at < {}", place(time.into())));
        }
        for (key, value) in &self.attributes {
            all.push(format!(
                "EXISTS (SELECT 1 FROM file_attributes a WHERE a.tenant_id = {} AND a.user_id = {} AND a.name = {}
                 AND a.value = {} AND a.file_id = f.id)",
                place((&owner.tenant).into()),
                place((&owner.user).into()),
                place(key.into()),
                place(value.into()),
            ));
        }
        all.iter().map(|condition| format!(" AND {condition}")).collect()
    }
}

/// The same characters in a pattern for `LIKE` with `ESCAPE '!'`.
fn literal(text: &str) -> String {
    text.to_lowercase().replace('!', "!!").replace('%', "!%").replace('_', "!_").replace('\0', "")
}

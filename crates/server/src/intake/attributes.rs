//! A client changes what it noted about a file.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::announce::check_attributes;
use crate::records::file::File;
use crate::records::files::attributes;
use landfall_core::caller::Caller;
use landfall_core::lifecycle::Status;
use landfall_core::refusal::Refusal;
use landfall_store::Error;
use landfall_store::{Tx, Write};

/// Replaces all attributes of a file.
pub struct ChangeAttributes {
    caller: Caller,
    file: Uuid,
    attributes: Value,
}

impl ChangeAttributes {
    pub fn new(caller: Caller, file: Uuid, attributes: Map<String, Value>) -> Result<Self, Refusal> {
        Ok(Self { caller, file, attributes: check_attributes(attributes)? })
    }
}

impl Write for ChangeAttributes {
    type Output = File;

    async fn apply(&self, tx: &mut Tx) -> Result<File, Error> {
        let file = File::lock_for(tx, &self.caller, self.file).await?;
        if file.status == Status::Deleted {
            return Err(Refusal::gone().into());
        }
        attributes::replace(tx, (&file.tenant_id, &file.user_id), file.id, &self.attributes).await?;
        Ok(File { attributes: Some(self.attributes.clone()), ..file })
    }
}

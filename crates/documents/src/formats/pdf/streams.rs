//! Unpacks streams, also those of encrypted documents. The library decrypts those that it reads itself, and has no call for
//! others.

use pdf_oxide::PdfDocument;
use pdf_oxide::encryption::EncryptionHandler;
use pdf_oxide::object::{Object, ObjectRef};

/// How the streams of a document are unpacked.
pub enum Streams {
    Plain,
    Encrypted(Box<EncryptionHandler>),
    /// The document is encrypted in a way that only the library's own calls know.
    Closed,
}

impl Streams {
    /// For a document that opens without a password.
    pub fn of(document: &PdfDocument) -> Self {
        if !document.is_encrypted() {
            return Self::Plain;
        }
        handler(document).map_or(Self::Closed, |handler| Self::Encrypted(Box::new(handler)))
    }

    /// What the stream with this number holds; `None` if it cannot be unpacked.
    pub fn unpack(&self, stream: &Object, number: ObjectRef) -> Option<Vec<u8>> {
        match self {
            Self::Plain => stream.decode_stream_data().ok(),
            Self::Encrypted(handler) => {
                let generation = u32::from(number.r#gen);
                let decrypt = |data: &[u8]| handler.decrypt_stream(data, number.id, generation);
                stream.decode_stream_data_with_decryption(Some(&decrypt), number.id, generation).ok()
            }
            Self::Closed => None,
        }
    }

    /// The stream that is referred to, and what it holds.
    pub fn load(&self, document: &PdfDocument, reference: &Object) -> Option<(Object, Vec<u8>)> {
        let number = reference.as_reference()?;
        let stream = document.load_object(number).ok()?;
        let content = self.unpack(&stream, number)?;
        Some((stream, content))
    }
}

fn handler(document: &PdfDocument) -> Option<EncryptionHandler> {
    let trailer = document.trailer().as_dict()?;
    let identifier = trailer.get("ID").and_then(|ids| document.resolve_object(ids).ok());
    let first = match &identifier {
        Some(Object::Array(ids)) => ids.first().and_then(|id| document.resolve_object(id).ok()),
        _ => None,
    };
    let first = first.as_ref().and_then(Object::as_string).map(<[u8]>::to_vec).unwrap_or_default();
    let Ok(Object::Dictionary(mut dictionary)) = document.resolve_object(trailer.get("Encrypt")?) else {
        return None;
    };
    for value in dictionary.values_mut() {
        if let Ok(resolved) = document.resolve_object(value) {
            *value = resolved;
        }
    }
    let mut handler = EncryptionHandler::new(&Object::Dictionary(dictionary), first).ok()?;
    handler.authenticate(b"").is_ok_and(|is_open| is_open).then_some(handler)
}

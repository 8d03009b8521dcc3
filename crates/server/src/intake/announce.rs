//! What a client declares about a file before it sends the bytes, and the checks of that.

use base64::Engine;
use serde_json::{Map, Value, json};

use super::batches::check_mapping;
use landfall_api::uploads::Announcement;
use landfall_core::refusal::{Refusal, RefusalCode};

const MAX_NAME_BYTES: usize = 255;
const MAX_TYPE_BYTES: usize = 255;
const MAX_ATTRIBUTES: usize = 16;
const MAX_ATTRIBUTE_NAME: usize = 64;
const MAX_ATTRIBUTE_TEXT: usize = 512;

/// An announcement that passed all checks.
#[derive(Debug, Clone, Default)]
pub struct Announced {
    pub name: String,
    pub size: i64,
    pub content_type: Option<String>,
    pub md5: Option<String>,
    pub sha256: Option<String>,
    pub mapping: Option<serde_json::Value>,
    pub attributes: Option<serde_json::Value>,
}

pub fn check(announcement: Announcement, max_file_bytes: u64) -> Result<Announced, Refusal> {
    let Announcement { file_name, file_size, content_type, md5, sha256, attributes, mapping } = announcement;
    check_name(&file_name)?;
    check_size(file_size, max_file_bytes)?;
    if let Some(content_type) = &content_type {
        check_content_type(content_type)?;
    }
    if let Some(mapping) = &mapping {
        check_mapping(mapping)?;
    }
    Ok(Announced {
        name: file_name,
        size: file_size,
        content_type,
        md5: md5.as_deref().map(parse_md5).transpose()?,
        sha256: sha256.as_deref().map(parse_sha256).transpose()?,
        mapping,
        attributes: attributes.map(check_attributes).transpose()?,
    })
}

/// Small, flat values, so that a search can filter by them.
pub(super) fn check_attributes(attributes: Map<String, Value>) -> Result<Value, Refusal> {
    let refuse = |message: String| Err(Refusal::new(RefusalCode::InvalidAttributes, message));
    if attributes.len() > MAX_ATTRIBUTES {
        return refuse(format!(
            "A file has at most {MAX_ATTRIBUTES} attributes; this one has {}",
            attributes.len()
        ));
    }
    for (name, value) in &attributes {
        if name.is_empty() || name.chars().count() > MAX_ATTRIBUTE_NAME || name.contains('\0') {
            return refuse(format!("The name of an attribute has 1 to {MAX_ATTRIBUTE_NAME} characters"));
        }
        let is_valid = match value {
            Value::String(text) => text.chars().count() <= MAX_ATTRIBUTE_TEXT && !text.contains('\0'),
            Value::Number(_) | Value::Bool(_) => true,
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        };
        if !is_valid {
            return refuse(format!(
                "The attribute {name:?} must be a string of up to {MAX_ATTRIBUTE_TEXT} characters, a number or a boolean"
            ));
        }
    }
    Ok(Value::Object(attributes))
}

/// A name is data and never becomes a path, so nearly everything is allowed. Refused are names that could deceive a
/// reader or break a terminal, a header or a list.
pub(super) fn check_name(name: &str) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(RefusalCode::InvalidFileName, message));
    if name.trim().is_empty() {
        return refuse("A file needs a name".to_owned());
    }
    if name.len() > MAX_NAME_BYTES {
        return refuse(format!(
            "A file name has at most {MAX_NAME_BYTES} bytes; this one has {}",
            name.len()
        ));
    }
    if name == "." || name == ".." {
        return refuse("A file cannot be called . or ..".to_owned());
    }
    if let Some(bad) = name.chars().find(|c| is_bad_in_name(*c)) {
        return refuse(format!("A file name cannot contain the character U+{:04X}", u32::from(bad)));
    }
    Ok(())
}

/// Whether a file name cannot contain the character.
pub(super) fn is_bad_in_name(c: char) -> bool {
    c.is_control() || matches!(c, '/' | '\\') || turns_direction(c)
}

/// Characters that display `gpj.exe` as `exe.jpg`, and the invisible characters of the same block.
const fn turns_direction(c: char) -> bool {
    matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

pub fn check_size(size: i64, most: u64) -> Result<(), Refusal> {
    if size < 0 {
        return Err(Refusal::new(RefusalCode::InvalidFileSize, "A file cannot have less than no bytes"));
    }
    if size.unsigned_abs() > most {
        return Err(Refusal::new(
            RefusalCode::TooLarge,
            format!("File exceeds {} limit", in_megabytes(most)),
        )
        .details(json!({ "maxFileSize": most, "fileSize": size })));
    }
    Ok(())
}

fn in_megabytes(bytes: u64) -> String {
    const MEGABYTE: u64 = 1 << 20;
    if bytes.is_multiple_of(MEGABYTE) { format!("{} MB", bytes / MEGABYTE) } else { format!("{bytes} bytes") }
}

fn check_content_type(content_type: &str) -> Result<(), Refusal> {
    // https://www.rfc-editor.org/rfc/rfc6838#section-4.2
    let is_name = |name: &str| {
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        !name.is_empty() && name.bytes().all(usual)
    };
    let visible = content_type.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let essence = content_type.split(';').next().unwrap_or_default().trim_end_matches(' ');
    let shaped = essence.split_once('/').is_some_and(|(kind, rest)| is_name(kind) && is_name(rest));
    if visible && shaped && content_type.len() <= MAX_TYPE_BYTES {
        Ok(())
    } else {
        Err(Refusal::new(RefusalCode::InvalidContentType, "A content type looks like text/plain"))
    }
}

/// Returns an MD5 in hexadecimal. The input may be hexadecimal or base64.
pub fn parse_md5(text: &str) -> Result<String, Refusal> {
    let bytes = hex::decode(text).or_else(|_| base64::engine::general_purpose::STANDARD.decode(text));
    match bytes {
        Ok(bytes) if bytes.len() == 16 => Ok(hex::encode(bytes)),
        _ => Err(Refusal::new(
            RefusalCode::InvalidMd5,
            "An MD5 is 32 hexadecimal digits, or 24 characters of base64",
        )),
    }
}

/// Returns a SHA-256 in hexadecimal. The input may be hexadecimal or base64.
pub fn parse_sha256(text: &str) -> Result<String, Refusal> {
    let bytes = hex::decode(text).or_else(|_| base64::engine::general_purpose::STANDARD.decode(text));
    match bytes {
        Ok(bytes) if bytes.len() == 32 => Ok(hex::encode(bytes)),
        _ => Err(Refusal::new(
            RefusalCode::InvalidSha256,
            "A SHA-256 is 64 hexadecimal digits, or 44 characters of base64",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(name: &str) -> Option<&'static str> {
        check_name(name).err().map(|refusal| refusal.code.code())
    }

    #[test]
    fn names_are_data_and_may_be_nearly_anything() {
        for name in ["a.txt", "Überschrift (2).md", "报告.pdf", "<script>.html", "a b'c\"d.txt", "...", "-rf"]
        {
            assert_eq!(code(name), None, "{name}");
        }
    }

    #[test]
    fn names_that_deceive_or_break_things_are_refused() {
        for name in ["", "  ", ".", "..", "a/b", "a\\b", "a\0b", "a\nb", "x\u{202E}fdp.exe", &"x".repeat(256)]
        {
            assert_eq!(code(name), Some("INVALID_FILE_NAME"), "{name:?}");
        }
    }

    #[test]
    fn a_content_type_is_two_names_and_what_may_follow_them() {
        for good in ["text/plain", "text/plain; charset=utf-8", "application/vnd.ms-excel", "image/svg+xml ;"]
        {
            assert!(check_content_type(good).is_ok(), "{good}");
        }
        for bad in ["", "text", "/", "text/", "a/b/c", "te xt/plain", "text/plain\n", "text/\u{fc}", " / "] {
            assert!(check_content_type(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn attributes_are_few_small_and_flat() {
        let check = |value: Value| check_attributes(value.as_object().unwrap().clone()).err();
        assert!(
            check(json!({ "path": "a/b.pdf", "year": 2024, "is_draft": false, "": 1 })).is_some(),
            "no name"
        );
        assert!(check(json!({ "path": "a/b.pdf", "year": 2024, "is_draft": false })).is_none());
        for bad in
            [json!({ "a": null }), json!({ "a": [1] }), json!({ "a": { "b": 1 } }), json!({ "a": "\0" })]
        {
            assert_eq!(check(bad.clone()).unwrap().code, RefusalCode::InvalidAttributes, "{bad}");
        }
        assert!(check(json!({ "a": "x".repeat(512) })).is_none());
        assert!(check(json!({ "a": "x".repeat(513) })).is_some());
        assert!(check(json!({ "x".repeat(65): 1 })).is_some());
        let many: Map<String, Value> = (0..17).map(|n| (n.to_string(), json!(n))).collect();
        assert!(check_attributes(many).is_err());
    }

    #[test]
    fn an_md5_is_taken_in_hexadecimal_and_in_base64() {
        let hex = "d41d8cd98f00b204e9800998ecf8427e";
        assert_eq!(parse_md5(hex).unwrap(), hex);
        assert_eq!(parse_md5("1B2M2Y8AsgTpgAmY7PhCfg==").unwrap(), hex);
        assert_eq!(parse_md5("nonsense").unwrap_err().code.code(), "INVALID_MD5");
    }
}

//! The schemas of codes in the description of the API.
//!
//! A request may name only a known code. In a response a code is as it was stored, and a newer version may have stored one
//! that this version does not know: there the schema is open.

use std::borrow::Cow;
use std::collections::BTreeSet;

use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::failure::Code;
use crate::refusal::RefusalCode;
use crate::warning::WarningCode;

fn closed(names: impl Iterator<Item = &'static str>, description: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
        .enum_values(Some(names))
        .into()
}

fn open<T: ToSchema>(description: &str) -> RefOr<Schema> {
    AnyOfBuilder::new()
        .description(Some(description))
        .item(Ref::from_schema_name(<T as ToSchema>::name()))
        .item(ObjectBuilder::new().schema_type(Type::String))
        .into()
}

impl PartialSchema for RefusalCode {
    fn schema() -> RefOr<Schema> {
        // Two refusals with different statuses may have the same code.
        let codes: BTreeSet<&'static str> = Self::ALL.iter().map(|reason| reason.code()).collect();
        closed(codes.into_iter(), "Why a request was refused. A later version may have more codes.")
    }
}

impl ToSchema for RefusalCode {
    fn name() -> Cow<'static, str> {
        "RefusalCode".into()
    }
}

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        closed(Self::ALL.iter().map(|code| code.name()), "The codes of failures that this version knows.")
    }
}

impl ToSchema for Code {
    fn name() -> Cow<'static, str> {
        "KnownFailureCode".into()
    }
}

impl PartialSchema for WarningCode {
    fn schema() -> RefOr<Schema> {
        closed(Self::ALL.iter().map(|code| code.name()), "The codes of warnings that this version knows.")
    }
}

impl ToSchema for WarningCode {
    fn name() -> Cow<'static, str> {
        "KnownWarningCode".into()
    }
}

/// The code of a failure in a response.
#[derive(Debug)]
pub struct StoredCode;

impl PartialSchema for StoredCode {
    fn schema() -> RefOr<Schema> {
        open::<Code>("Why a file failed. A newer version may have stored a code that this one does not know.")
    }
}

impl ToSchema for StoredCode {
    fn name() -> Cow<'static, str> {
        "FailureCode".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((<Code as ToSchema>::name().into_owned(), Code::schema()));
    }
}

/// The code of a warning in a response.
#[derive(Debug)]
pub struct StoredWarningCode;

impl PartialSchema for StoredWarningCode {
    fn schema() -> RefOr<Schema> {
        open::<WarningCode>(
            "What is missing of a file. A newer version may have stored a code that this one does not know.",
        )
    }
}

impl ToSchema for StoredWarningCode {
    fn name() -> Cow<'static, str> {
        "WarningCode".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((<WarningCode as ToSchema>::name().into_owned(), WarningCode::schema()));
    }
}

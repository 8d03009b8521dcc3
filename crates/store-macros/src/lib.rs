//! `#[derive(FromRow)]`: each field of a struct is read from the column of its name.
//!
//! - `#[row(rename = "tenant_id")]`: from a column of another name.
//! - `#[row(try_from = "String")]`: read as the other type first.
//! - `#[row(flatten)]`: the field is a struct that is read from the same row.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Code;
use quote::quote;
use syn::{Data, DeriveInput, Error, Field, Fields, LitStr, Type};

#[proc_macro_derive(FromRow, attributes(row))]
pub fn derive_from_row(item: TokenStream) -> TokenStream {
    let item = syn::parse_macro_input!(item as DeriveInput);
    implementation(&item).unwrap_or_else(Error::into_compile_error).into()
}

fn implementation(item: &DeriveInput) -> Result<Code, Error> {
    let Data::Struct(data) = &item.data else {
        return Err(Error::new_spanned(&item.ident, "only a struct is read from a row"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&item.ident, "columns are found by the names of the fields"));
    };
    let names = fields.named.iter().map(|field| &field.ident);
    let values = fields.named.iter().map(value_of).collect::<Result<Vec<_>, _>>()?;
    let name = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    Ok(quote! {
        impl #impl_generics ::landfall_store::FromRow for #name #type_generics #where_clause {
            fn from_row(row: &::landfall_store::Row<'_>) -> ::std::result::Result<Self, ::landfall_store::Error> {
                ::std::result::Result::Ok(Self { #(#names: #values),* })
            }
        }
    })
}

/// `#[derive(FromColumn)]`: a struct of one unnamed field is read as that field.
#[proc_macro_derive(FromColumn)]
pub fn derive_from_column(item: TokenStream) -> TokenStream {
    let item = syn::parse_macro_input!(item as DeriveInput);
    let name = &item.ident;
    quote! {
        impl ::landfall_store::FromColumn for #name {
            fn from_sqlite(
                value: ::landfall_store::SqliteValue<'_>,
            ) -> ::std::result::Result<Self, ::landfall_store::Unreadable> {
                ::landfall_store::FromColumn::from_sqlite(value).map(Self)
            }

            fn from_postgres(
                row: &::landfall_store::PostgresRow,
                column: usize,
            ) -> ::std::result::Result<Self, ::landfall_store::Unreadable> {
                ::landfall_store::FromColumn::from_postgres(row, column).map(Self)
            }
        }
    }
    .into()
}

fn value_of(field: &Field) -> Result<Code, Error> {
    let mut column = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut stored: Option<Type> = None;
    let mut is_flat = false;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("row")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("flatten") {
                is_flat = true;
            } else if meta.path.is_ident("rename") {
                column = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.path.is_ident("try_from") {
                stored = Some(meta.value()?.parse::<LitStr>()?.parse()?);
            } else {
                return Err(meta.error("this is flatten, rename or try_from"));
            }
            Ok(())
        })?;
    }
    Ok(match stored {
        _ if is_flat => quote!(::landfall_store::FromRow::from_row(row)?),
        Some(stored) => quote!(row.converted::<#stored, _>(#column)?),
        None => quote!(row.get(#column)?),
    })
}

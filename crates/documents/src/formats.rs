//! A reader for each format, and code that several of them share.

pub mod compound;
pub mod csv;
pub mod docx;
pub mod email;
pub mod html;
pub mod json;
pub mod markdown;
pub mod odf;
pub mod office;
pub mod pdf;
pub mod pptx;
pub mod rtf;
pub mod sheets;
pub mod text;
pub mod xml;

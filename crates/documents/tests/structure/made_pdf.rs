//! PDFs that `files/pdf/make.py` made with programs that people use. Their references were written before they were read.

use super::Builder;

macro_rules! file {
    ($name:literal) => {
        ($name, || include_bytes!(concat!("files/pdf/", $name)).to_vec())
    };
}

pub const DOCUMENTS: &[(&str, Builder)] = &[
    file!("bands.pdf"),
    file!("booktabs.pdf"),
    file!("code.pdf"),
    file!("encrypted.pdf"),
    file!("form.pdf"),
    file!("handbook.pdf"),
    file!("invoice.pdf"),
    file!("lists.pdf"),
    file!("locked.pdf"),
    file!("minutes.pdf"),
    file!("newsletter.pdf"),
    file!("paper.pdf"),
    file!("registration.pdf"),
    file!("right-to-left.pdf"),
    file!("sidebar.pdf"),
    file!("slides.pdf"),
    file!("spans.pdf"),
    file!("tables.pdf"),
    file!("turned.pdf"),
];

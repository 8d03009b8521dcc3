#![no_main]

landfall_fuzz::reads!("a.pdf");

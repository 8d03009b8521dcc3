#![no_main]

landfall_fuzz::reads!("a.p7m");

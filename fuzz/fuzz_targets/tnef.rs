#![no_main]

landfall_fuzz::reads!("winmail.dat");

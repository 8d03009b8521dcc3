#![no_main]

landfall_fuzz::reads!(packed "a.odt");

//! Tides.
fn high() -> bool {
    true
}

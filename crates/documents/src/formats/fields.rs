//! Fields of word processors: an instruction, and its result as it was last shown.

/// The address of a link, from the instruction of its field. One with a switch such as `\l` leads inside the document.
pub fn hyperlink(instruction: &str) -> Option<String> {
    const NAME: &str = "HYPERLINK";
    let rest = instruction.trim_start();
    if !rest.get(..NAME.len())?.eq_ignore_ascii_case(NAME) {
        return None;
    }
    let rest = rest[NAME.len()..].trim_start();
    let target = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => rest.split_whitespace().next()?,
    };
    (!target.is_empty() && !target.starts_with('\\')).then(|| target.to_owned())
}

/// Whether the result is the number of a page, which differs on each page.
pub fn is_page_number(instruction: &str) -> bool {
    let name = instruction.split_whitespace().next().map(str::to_ascii_uppercase);
    matches!(name.as_deref(), Some("PAGE" | "NUMPAGES" | "SECTIONPAGES"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_link_is_found() {
        assert_eq!(
            hyperlink(" HYPERLINK \"https://a.example/x y\" \\h ").as_deref(),
            Some("https://a.example/x y")
        );
        assert_eq!(hyperlink("hyperlink mailto:a@example.org").as_deref(), Some("mailto:a@example.org"));
        assert_eq!(hyperlink(" HYPERLINK \\l \"top\""), None);
        assert_eq!(hyperlink(" PAGE "), None);
        assert_eq!(hyperlink("HYPERLINK"), None);
        assert!(is_page_number(" page \\* MERGEFORMAT") && !is_page_number("PAGEREF x"));
    }
}

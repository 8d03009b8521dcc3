//! What is known about the elements of HTML by their names.

use super::Attributes;
use crate::flow::Gap;

/// Elements whose content a browser does not show.
pub fn is_never_shown(element: &str) -> bool {
    matches!(
        element,
        "script"
            | "style"
            | "template"
            | "noscript"
            | "svg"
            | "iframe"
            | "object"
            | "noembed"
            | "audio"
            | "video"
            | "canvas"
            | "datalist"
            | "annotation"
            | "annotation-xml"
    )
}

/// Whether the attributes of an element hide it.
pub fn is_hidden_by(element: &str, attributes: Attributes<'_>) -> bool {
    if attributes.get("hidden").is_some_and(|value| !value.eq_ignore_ascii_case("until-found")) {
        return true;
    }
    if element == "dialog" && attributes.get("open").is_none() {
        return true;
    }
    attributes.get("style").is_some_and(|style| {
        style.split(';').filter_map(|rule| rule.split_once(':')).any(|(name, value)| {
            let value = value.trim().trim_end_matches("!important").trim_end();
            let is = |wanted: &str, hidden: &str| {
                name.trim().eq_ignore_ascii_case(wanted) && value.eq_ignore_ascii_case(hidden)
            };
            is("display", "none") || is("visibility", "hidden") || is("mso-hide", "all")
        })
    })
}

/// Elements without content and without an end.
pub fn is_void(element: &str) -> bool {
    matches!(
        element,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Elements that may end without an end tag.
pub fn ends_by_itself(element: &str) -> bool {
    matches!(
        element,
        "p" | "li" | "dt" | "dd" | "tr" | "td" | "th" | "thead" | "tbody" | "tfoot" | "option" | "optgroup"
    )
}

/// The level of a heading.
pub fn heading_level(element: &str) -> Option<u8> {
    match element.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(level - b'0'),
        _ => None,
    }
}

/// The gap before and after an element.
pub fn gap_around(element: &str) -> Gap {
    match element {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "dl" | "table" | "pre"
        | "blockquote" | "section" | "article" | "header" | "footer" | "main" | "nav" | "aside"
        | "figure" | "form" | "hr" | "title" | "details" | "summary" | "fieldset" | "caption"
        | "figcaption" | "dialog" | "center" | "hgroup" | "menu" | "dir" => Gap::Paragraph,
        "div" | "li" | "tr" | "dt" | "dd" | "address" | "option" | "body" | "legend" | "optgroup" => {
            Gap::Line
        }
        "td" | "th" | "button" | "select" | "textarea" | "input" => Gap::Space,
        _ => Gap::None,
    }
}

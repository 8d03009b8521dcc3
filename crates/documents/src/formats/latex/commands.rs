//! The commands of LaTeX that are known.

use unicode_normalization::UnicodeNormalization;

/// What is dropped with the name of a command.
pub enum Dropped {
    Name,
    Arguments(usize),
    Definition,
}

pub fn section_level(command: &str, has_chapters: bool) -> Option<u8> {
    let level = match command {
        "part" | "chapter" => return Some(1),
        "section" => 1,
        "subsection" => 2,
        "subsubsection" => 3,
        "paragraph" => 4,
        "subparagraph" => 5,
        _ => return None,
    };
    Some(level + u8::from(has_chapters))
}

pub fn dropped(command: &str) -> Dropped {
    match command {
        "label" | "ref" | "eqref" | "pageref" | "autoref" | "cref" | "Cref" | "cite" | "citep" | "citet"
        | "citealp" | "parencite" | "textcite" | "autocite" | "nocite" | "includegraphics" | "usepackage"
        | "documentclass" | "vspace" | "hspace" | "bibliographystyle" | "bibliography" | "addbibresource"
        | "pagestyle" | "thispagestyle" | "pagenumbering" | "color" | "index" | "hypersetup"
        | "graphicspath" | "geometry" | "textcolor" | "hyphenation" | "linespread" | "cline" | "cmidrule"
        | "bibitem" | "title" | "date" | "phantom" | "selectlanguage" | "theoremstyle" | "captionsetup"
        | "lstset" | "tikzset" | "rowcolor" | "hypertarget" => Dropped::Arguments(1),
        "setlength" | "addtolength" | "setcounter" | "addtocounter" | "fontsize" | "rule" | "newtheorem"
        | "multirow" | "definecolor" | "raisebox" | "resizebox" | "parbox" | "addcontentsline" => {
            Dropped::Arguments(2)
        }
        "newenvironment" | "renewenvironment" => Dropped::Arguments(3),
        "def"
        | "newcommand"
        | "renewcommand"
        | "providecommand"
        | "DeclareMathOperator"
        | "let"
        | "gdef"
        | "edef" => Dropped::Definition,
        _ => Dropped::Name,
    }
}

/// Environments whose content is not text of LaTeX.
pub fn is_raw(environment: &str) -> bool {
    matches!(
        environment,
        "verbatim"
            | "Verbatim"
            | "lstlisting"
            | "minted"
            | "alltt"
            | "Highlighting"
            | "comment"
            | "tikzpicture"
            | "pgfpicture"
            | "filecontents"
    )
}

pub fn is_mathematics(environment: &str) -> bool {
    matches!(
        environment,
        "equation"
            | "align"
            | "gather"
            | "multline"
            | "eqnarray"
            | "displaymath"
            | "math"
            | "alignat"
            | "flalign"
    )
}

/// The language of a listing, and its lines.
pub fn listing<'a>(environment: &str, content: &'a str) -> (&'a str, &'a str) {
    let line_end = content.find('\n').unwrap_or(content.len());
    let (first, lines) = content.split_at(line_end);
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "+#-".contains(c))
    };
    match environment {
        "minted" => {
            let language =
                first.rsplit_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(name, _)| name);
            (language.filter(is_name).unwrap_or_default(), lines)
        }
        "lstlisting" => {
            let language = first
                .split_once("language=")
                .map(|(_, rest)| rest.split([',', ']']).next().unwrap_or_default());
            let has_options = first.trim_start().starts_with('[');
            (language.filter(is_name).unwrap_or_default(), if has_options { lines } else { content })
        }
        _ => ("", content),
    }
}

/// Code whose words are arguments of commands that colour them, as pandoc writes it: `\KeywordTok{def}`.
pub fn without_colours(content: &str) -> String {
    let mut code = String::with_capacity(content.len());
    let mut rest = content.split_once(']').map_or(content, |(_, code)| code);
    while let Some(at) = rest.find(['\\', '{', '}']) {
        code.push_str(&rest[..at]);
        let is_command = rest[at..].starts_with('\\');
        rest = &rest[at + 1..];
        if !is_command {
            continue;
        }
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (name, after) = rest.split_at(letters);
        if let Some(symbol) = symbol(name) {
            code.push_str(symbol);
            rest = after.strip_prefix("{}").unwrap_or(after);
        } else if name.is_empty() {
            let length = after.chars().next().map_or(0, char::len_utf8);
            code.push_str(&after[..length]);
            rest = &after[length..];
        } else {
            rest = after;
        }
    }
    code + rest
}

/// The mark that a command puts on the next letter.
pub fn accent(command: &str) -> Option<char> {
    Some(match command {
        "\"" => '\u{308}',
        "'" => '\u{301}',
        "`" => '\u{300}',
        "^" => '\u{302}',
        "~" => '\u{303}',
        "=" => '\u{304}',
        "." => '\u{307}',
        "u" => '\u{306}',
        "v" => '\u{30C}',
        "H" => '\u{30B}',
        "c" => '\u{327}',
        "k" => '\u{328}',
        "r" => '\u{30A}',
        "d" => '\u{323}',
        _ => return None,
    })
}

pub fn with_accent(letter: char, mark: char) -> String {
    if letter == ' ' { String::new() } else { [letter, mark].into_iter().nfc().collect() }
}

/// The character that a command stands for.
pub fn symbol(command: &str) -> Option<&'static str> {
    Some(match command {
        "&" => "&",
        "%" => "%",
        "$" => "$",
        "#" => "#",
        "_" => "_",
        "{" => "{",
        "}" => "}",
        "ldots" | "dots" | "textellipsis" => "…",
        "LaTeX" => "LaTeX",
        "TeX" => "TeX",
        "BibTeX" => "BibTeX",
        "S" => "§",
        "P" => "¶",
        "ss" => "ß",
        "ae" => "æ",
        "AE" => "Æ",
        "oe" => "œ",
        "OE" => "Œ",
        "o" => "ø",
        "O" => "Ø",
        "aa" => "å",
        "AA" => "Å",
        "l" => "ł",
        "L" => "Ł",
        "i" => "ı",
        "copyright" => "©",
        "pounds" => "£",
        "euro" | "texteuro" => "€",
        "textdegree" | "degree" => "°",
        "textbackslash" => "\\",
        "textasciitilde" => "~",
        "textasciicircum" => "^",
        "textbar" => "|",
        "textless" => "<",
        "textgreater" => ">",
        "textquotedblleft" => "“",
        "textquotedblright" => "”",
        "textquoteleft" => "‘",
        "textquoteright" => "’",
        "textendash" => "–",
        "textemdash" => "—",
        "textbullet" => "•",
        "textregistered" => "®",
        "texttrademark" => "™",
        _ => return None,
    })
}

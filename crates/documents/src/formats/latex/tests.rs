use std::ops::ControlFlow;

use super::*;
use crate::limits::Limits;

fn read(source: &str) -> Extracted {
    let limits = Limits::default();
    extract(source, Bounds::new(&limits, &|| ControlFlow::Continue(()))).unwrap()
}

fn text(source: &str) -> String {
    read(source).text
}

#[test]
fn sections_lists_and_words_are_read() {
    let source = r#"\documentclass[a4]{article}\usepackage{x}\title{The \emph{Tides}}\author{Ada Wright \and Ben Okafor}
\newcommand{\hi}[1]{no #1}
\begin{document}\maketitle
\section{Spring} % a comment
High water~\cite{a} at 5\,\% --- see \href{http://a.b}{the \textbf{table}}\footnote{Or not}.
It's ``caf\'e'' and G\"oteborg, \ss{} \o re.

\subsection*{Neap}\label{x}
\begin{itemize}
  \item one
  \begin{enumerate}\item first\item second\end{enumerate}
  \item[Tide] two
\end{itemize}
After.
\end{document} never"#;
    assert_eq!(
        text(source),
        "# The Tides\n\nAda Wright, Ben Okafor\n\n# Spring\n\nHigh water at 5 % — see [the table](http://a.b) (Or not). It’s “café” and Göteborg, \
         ß øre.\n\n## Neap\n\n- one\n  1. first\n  2. second\n- Tide two\n\nAfter."
    );
}

#[test]
fn mathematics_and_code_are_kept_as_they_are_written() {
    let source = r"Let $a_1 \le \frac{b}{2}$ and \(c\) for \$5.
\begin{align*} x &= 1 \\ y &= 2 \end{align*}
\begin{lstlisting}[language=C]
int a; % no comment
\end{lstlisting}
\verb|\x| done";
    assert_eq!(
        text(source),
        "Let $a_1 \\le \\frac{b}{2}$ and $c$ for $5.\n\n$$x &= 1 \\\\ y &= 2$$\n\n```C\nint a; % no comment\n```\n\n\\x done"
    );
}

#[test]
fn tables_are_tables() {
    let source = r"\begin{table}\caption{Waters}\begin{tabular}{|l|r|}\hline a & \textbf{b} \\ \hline
\multicolumn{2}{c}{wide} \\ 1 & \\ & 2 \\\end{tabular}\end{table}";
    assert_eq!(text(source), "Waters\n\n| a | b |\n| --- | --- |\n| wide | |\n| 1 | |\n| | 2 |");
}

#[test]
fn what_pandoc_writes_is_read() {
    let source = r"\hypertarget{low}{%
\section{\texorpdfstring{Low \(x_1\)}{Low x1}}\label{low}}
\begin{longtable}[]{@{}lr@{}}
\caption{Waters}\tabularnewline
\toprule
Port & High \\
\midrule
\endfirsthead
\toprule
Port & High \\
\midrule
\endhead
Ayr & 2 \\
\bottomrule
\end{longtable}
\begin{Shaded}
\begin{Highlighting}[]
\KeywordTok{def}\NormalTok{ f(x):}
    \ControlFlowTok{return}\NormalTok{ \{x }\OperatorTok{\textbar{}}\NormalTok{ a\_b\}}
\end{Highlighting}
\end{Shaded}
So \[a = b\] holds.";
    assert_eq!(
        text(source),
        "# Low $x_1$\n\nWaters\n\n| Port | High |\n| --- | --- |\n| Ayr | 2 |\n\n```\ndef f(x):\n    return {x | a_b}\n```\n\n\
         So\n\n$$a = b$$\n\nholds."
    );
}

#[test]
fn chapters_are_above_sections_and_files_that_are_included_are_named() {
    let extracted = read(r"\chapter{One}\section{Two}\input{three}");
    assert_eq!(extracted.text, "# One\n\n## Two");
    assert!(extracted.warnings[0].message.contains("three"), "{:?}", extracted.warnings);
}

#[test]
fn what_has_no_end_is_bounded() {
    for source in [
        "{".repeat(20_000),
        "\\begin{x}".repeat(20_000),
        "\\section{".repeat(20_000),
        "\\label{".repeat(20_000),
        "\\item[".repeat(20_000),
        "$".repeat(20_000),
        "$a ".repeat(20_001),
        "\\x[".repeat(20_000),
        "\\verb".repeat(20_000),
        "\\texorpdfstring{".repeat(20_000),
        "\\begin{longtable}{}\\caption{".repeat(20_000),
        "\\begin{longtable}{}\\endfirsthead".repeat(20_000),
    ] {
        let limits = Limits::default();
        drop(extract(&source, Bounds::new(&limits, &|| ControlFlow::Continue(()))));
    }
}

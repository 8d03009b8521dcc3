//! The command lines of the child processes: `--name value` pairs, then for some a `--` and the rest as it is.

use std::ffi::OsString;

/// The arguments of a child process, read one after the other.
pub struct CommandLine<A> {
    arguments: A,
}

impl<A: Iterator<Item = OsString>> CommandLine<A> {
    pub fn new(arguments: A) -> Self {
        Self { arguments }
    }

    /// The next option; `None` at the end, or after `--`.
    pub fn next_option(&mut self) -> Result<Option<(String, OsString)>, String> {
        let Some(name) = self.arguments.next() else { return Ok(None) };
        if name == "--" {
            return Ok(None);
        }
        let name = name.into_string().map_err(|name| format!("{} is no option", name.display()))?;
        let value = self.arguments.next().ok_or_else(|| format!("{name} has no value"))?;
        Ok(Some((name, value)))
    }

    /// The arguments after `--`.
    pub fn rest(self) -> Vec<OsString> {
        self.arguments.collect()
    }
}

pub fn number<N: std::str::FromStr>(name: &str, value: &OsString) -> Result<N, String> {
    let parsed = value.to_str().and_then(|value| value.parse().ok());
    parsed.ok_or_else(|| format!("{name} {} is not a number", value.display()))
}

pub fn required<T>(name: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("{name} is missing"))
}

pub fn unknown(name: &str) -> String {
    format!("{name} is not an option")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command_line(arguments: &[&str]) -> CommandLine<impl Iterator<Item = OsString>> {
        CommandLine::new(arguments.iter().map(OsString::from).collect::<Vec<_>>().into_iter())
    }

    #[test]
    fn options_end_at_two_dashes() {
        let mut arguments = command_line(&["--a", "1", "--b", "--", "--", "run", "--a"]);
        assert_eq!(arguments.next_option(), Ok(Some(("--a".to_owned(), "1".into()))));
        assert_eq!(arguments.next_option(), Ok(Some(("--b".to_owned(), "--".into()))));
        assert_eq!(arguments.next_option(), Ok(None));
        assert_eq!(arguments.rest(), ["run", "--a"]);
    }

    #[test]
    fn an_option_without_a_value_is_an_error() {
        assert_eq!(command_line(&["--a"]).next_option(), Err("--a has no value".to_owned()));
        assert_eq!(number::<u64>("--a", &"x".into()), Err("--a x is not a number".to_owned()));
    }
}

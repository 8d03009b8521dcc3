//! The profile of the AWS command line: keys and region from `~/.aws/credentials` and `~/.aws/config`.

use std::path::PathBuf;

use landfall_store::Error;

/// Which entry of a profile stands for which variable.
const ENTRIES: [(&str, &str); 5] = [
    ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
    ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    ("aws_session_token", "AWS_SESSION_TOKEN"),
    ("region", "AWS_REGION"),
    ("endpoint_url", "AWS_ENDPOINT_URL"),
];

/// The variables that the profile `AWS_PROFILE` stands for. Nothing, if no profile is named.
pub fn read(options: &[(String, String)]) -> Result<Vec<(String, String)>, Error> {
    let option =
        |name: &str| options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let Some(profile) = option("AWS_PROFILE") else { return Ok(Vec::new()) };
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let file = |variable: &str, name: &str| {
        option(variable).map_or_else(|| home.join(".aws").join(name), PathBuf::from)
    };
    let files = [
        (file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile.to_owned()),
        (file("AWS_CONFIG_FILE", "config"), section_of_config(profile)),
    ];
    let (mut found, mut is_known) = (Vec::new(), false);
    for (path, section) in files {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Some(entries) = entries_of(&text, &section) else { continue };
        is_known = true;
        for (name, value) in entries {
            if let Some((_, variable)) = ENTRIES.iter().find(|(entry, _)| *entry == name) {
                found.push(((*variable).to_owned(), value));
            }
        }
    }
    if !is_known {
        return Err(Error::Storage {
            what: "read the AWS profile".to_owned(),
            source: format!("there is no profile {profile} in the files of the AWS command line").into(),
        });
    }
    Ok(found)
}

/// In `config`, every profile but the default one has a longer name.
fn section_of_config(profile: &str) -> String {
    if profile == "default" { profile.to_owned() } else { format!("profile {profile}") }
}

/// The entries of a section. `None` if there is no such section.
fn entries_of(text: &str, section: &str) -> Option<Vec<(String, String)>> {
    let mut entries = None;
    let mut is_inside = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_inside = name.trim() == section;
            if is_inside {
                entries.get_or_insert_with(Vec::new);
            }
        } else if is_inside
            // An indented line belongs to the entry above it.
            && !line.starts_with([' ', '\t'])
            && let Some((name, value)) = trimmed.split_once('=')
            && let Some(entries) = &mut entries
        {
            entries.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_its_keys_and_its_region_from_both_files() {
        let folder = tempfile::tempdir().unwrap();
        let (credentials, config) = (folder.path().join("credentials"), folder.path().join("config"));
        std::fs::write(
            &credentials,
            "[default]\naws_access_key_id = other\n\n# ours\n[ours]\naws_access_key_id=key\naws_secret_access_key = s=1\n",
        )
        .unwrap();
        std::fs::write(
            &config,
            "[default]\nregion=x\n[profile ours]\nregion = eu-north-1\ns3 =\n  region = no\n",
        )
        .unwrap();
        let mut options = vec![
            ("AWS_PROFILE".to_owned(), "ours".to_owned()),
            ("AWS_SHARED_CREDENTIALS_FILE".to_owned(), credentials.display().to_string()),
            ("AWS_CONFIG_FILE".to_owned(), config.display().to_string()),
        ];
        let expected =
            [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "s=1"), ("AWS_REGION", "eu-north-1")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read(&options).unwrap(), expected);
        options[0].1 = "theirs".to_owned();
        assert!(read(&options).unwrap_err().to_string().contains("no profile theirs"));
        assert_eq!(read(&options[1..]).unwrap(), []);
    }
}

use std::io::Write;

use landfall_test_documents as made;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;

/// The paths of the members, and their content.
type Members = Vec<(String, Vec<u8>)>;

fn unpack_within(bytes: &[u8], limits: &ArchiveLimits) -> (Result<Unpacked, Error>, Members) {
    let mut members = Vec::new();
    let unpacked = archive_members(bytes, limits, &|| ControlFlow::Continue(()), &mut |member| {
        members.push((member.path, member.bytes));
        Ok(())
    });
    (unpacked, members)
}

fn unpack(bytes: &[u8]) -> (Unpacked, Members) {
    let (unpacked, members) = unpack_within(bytes, &ArchiveLimits::default());
    (unpacked.unwrap(), members)
}

fn paths(members: &[(String, Vec<u8>)]) -> Vec<&str> {
    members.iter().map(|(path, _)| path.as_str()).collect()
}

#[test]
fn each_file_has_its_path_and_its_content() {
    let bytes = made::archive(&[
        ("a.txt", b"one"),
        ("folder/", b""),
        ("folder/b.txt", b"two"),
        ("__MACOSX/._a.txt", b"x"),
        (".DS_Store", b"x"),
    ]);
    let (unpacked, members) = unpack(&bytes);
    let expected = [("a.txt".to_owned(), b"one".to_vec()), ("folder/b.txt".to_owned(), b"two".to_vec())];
    assert_eq!(members, expected);
    assert_eq!(unpacked, Unpacked { members: 2, ..Unpacked::default() });
}

#[test]
fn two_files_never_have_the_same_path() {
    let names = ["../a.txt", "a.txt", "/A.txt", "a (2).txt", "x/../a.txt"];
    let parts: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, &b"x"[..])).collect();
    let (_, members) = unpack(&made::archive(&parts));
    assert_eq!(paths(&members), ["a.txt", "a (2).txt", "A (3).txt", "a (2) (2).txt", "x/a.txt"]);
}

#[test]
fn an_archive_in_an_archive_is_unpacked_up_to_the_limit_of_depth() {
    let mut bytes = made::archive(&[("deep.txt", b"here")]);
    for _ in 0..2 {
        bytes = made::archive(&[("in.zip", &bytes), ("beside.txt", b"x")]);
    }
    let (_, members) = unpack(&bytes);
    assert_eq!(paths(&members), ["in.zip/in.zip/deep.txt", "in.zip/beside.txt", "beside.txt"]);
    let (unpacked, members) = unpack_within(&bytes, &ArchiveLimits { depth: 1, ..ArchiveLimits::default() });
    assert_eq!(paths(&members), ["in.zip/beside.txt", "beside.txt"]);
    let left_out = vec![LeftOut { path: "in.zip/in.zip".to_owned(), reason: WhyLeftOut::TooDeep }];
    assert_eq!(unpacked.unwrap().left_out, left_out);
}

#[test]
fn a_document_that_is_stored_as_an_archive_is_one_file() {
    let docx = made::docx(&made::paragraph("words"));
    assert!(!is_archive(&docx));
    assert!(!is_archive(&made::archive(&[("mimetype", b"application/epub+zip")])));
    let bytes = made::archive(&[("a.docx", &docx)]);
    assert!(is_archive(&bytes));
    let (_, members) = unpack(&bytes);
    assert_eq!(members, [("a.docx".to_owned(), docx)]);
}

#[test]
fn files_beyond_a_limit_are_left_out_or_refused() {
    let big = vec![b'x'; 5_000];
    let bytes = made::archive(&[("big.txt", &big), ("small.txt", b"x"), ("last.txt", b"y")]);
    let limits = ArchiveLimits { member_bytes: 4_999, ..ArchiveLimits::default() };
    let (unpacked, members) = unpack_within(&bytes, &limits);
    assert_eq!(paths(&members), ["small.txt", "last.txt"]);
    assert_eq!(unpacked.unwrap().left_out[0].reason, WhyLeftOut::TooLarge);

    for limits in [
        ArchiveLimits { members: 2, ..ArchiveLimits::default() },
        ArchiveLimits { total_bytes: 5_001, ..ArchiveLimits::default() },
        ArchiveLimits { ratio: 10, suspicious_bytes: 1_000, ..ArchiveLimits::default() },
    ] {
        let failure = unpack_within(&bytes, &limits).0.unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::TooLarge, "{limits:?}: {failure}");
    }
}

#[test]
fn the_files_of_inner_archives_count_too() {
    let inner = made::archive(&[("1", b"x"), ("2", b"x"), ("3", b"x")]);
    let bytes = made::archive(&[("a.zip", &inner), ("b.zip", &inner)]);
    let limits = ArchiveLimits { members: 5, ..ArchiveLimits::default() };
    assert_eq!(unpack_within(&bytes, &limits).0.unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(unpack(&bytes).0.members, 6);
}

#[test]
fn an_encrypted_file_is_named() {
    let mut bytes = made::archive(&[("secret.txt", b"hidden"), ("open.txt", b"seen")]);
    // The flag that says so, in the local header and in the directory.
    bytes[6] |= 1;
    let directory = memchr::memmem::find(&bytes, b"PK\x01\x02").unwrap();
    bytes[directory + 8] |= 1;
    let (unpacked, members) = unpack(&bytes);
    assert_eq!(paths(&members), ["open.txt"]);
    let left_out = [LeftOut { path: "secret.txt".to_owned(), reason: WhyLeftOut::Encrypted }];
    assert_eq!(unpacked.left_out, left_out);
}

#[test]
fn a_link_is_not_followed() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    writer.start_file("a.txt", SimpleFileOptions::default()).unwrap();
    writer.write_all(b"x").unwrap();
    let (unpacked, members) = unpack(&writer.finish().unwrap().into_inner());
    assert_eq!(paths(&members), ["a.txt"]);
    assert_eq!(unpacked.left_out[0].reason, WhyLeftOut::Link);
}

#[test]
fn a_damaged_archive_ends_in_files_or_in_an_error() {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("a.txt", options).unwrap();
    writer.write_all(b"some words").unwrap();
    writer.start_file("b.txt", options).unwrap();
    writer.write_all(b"others").unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    let content = memchr::memmem::find(&bytes, b"some").unwrap();
    let mut damaged = bytes.clone();
    damaged[content] ^= 1;
    let (unpacked, members) = unpack(&damaged);
    assert_eq!(paths(&members), ["b.txt"]);
    assert_eq!(unpacked.left_out[0].reason, WhyLeftOut::Damaged);
    for length in 0..bytes.len() {
        if let (Err(failure), _) = unpack_within(&bytes[..length], &ArchiveLimits::default()) {
            assert_eq!(failure.kind(), ErrorKind::Damaged);
        }
    }
}

#[test]
fn the_caller_can_stop() {
    let bytes = made::archive(&[("a.txt", b"one")]);
    let failure =
        archive_members(&bytes, &ArchiveLimits::default(), &|| ControlFlow::Break(()), &mut |_| Ok(()))
            .unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Stopped);
}

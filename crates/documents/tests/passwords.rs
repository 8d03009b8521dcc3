//! Documents that open with Excel's default password, or with none. They were encrypted by another implementation.

use std::ops::ControlFlow;

use landfall_documents::{Document, Error, ErrorKind, Limits, Recognised};
use landfall_test_documents as made;

fn read(bytes: &[u8], name: &str) -> Result<String, Error> {
    let document = Document { bytes, name, content_type: None };
    let reading = landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Continue(()))?;
    Ok(reading.finish(Recognised::NotInstalled)?.text)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(char::is_ascii_hexdigit).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn package(info: &[u8], package: &str) -> Vec<u8> {
    made::compound_of(&[("EncryptionInfo", info), ("EncryptedPackage", &bytes(package))])
}

const AGILE: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<encryption xmlns="http://schemas.microsoft.com/office/2006/encryption" xmlns:p="http://schemas.microsoft.com/office/2006/keyEncryptor/password">
<keyData saltSize="16" blockSize="16" keyBits="256" hashSize="64" cipherAlgorithm="AES" cipherChaining="ChainingModeCBC"
 hashAlgorithm="SHA512" saltValue="jU7z8YChPK0Rc+chwhSJLw=="/><keyEncryptors>
<keyEncryptor uri="http://schemas.microsoft.com/office/2006/keyEncryptor/password"><p:encryptedKey spinCount="100000" saltSize="16"
 blockSize="16" keyBits="256" hashSize="64" cipherAlgorithm="AES" cipherChaining="ChainingModeCBC" hashAlgorithm="SHA512"
 saltValue="OYIqAu1ub9INqYL0JkW+Vw==" encryptedVerifierHashInput="MIiupeCdPslcscxWorXWkA=="
 encryptedVerifierHashValue="0yvU9nrbFV9YIed6k56lwKjFSnF+IBwiuJ9uNBBg2+tqII6r9Ab5QJS72URtG0tJpO8b504wQtVsJrZLt5xB+g=="
 encryptedKeyValue="tUz3Xx/RfMlWa2iRoyr+zuTxZH15XaD+ZKh2Cqvn6Sc="/></keyEncryptor></keyEncryptors></encryption>"#;
const AGILE_PACKAGE: &str =
    "2000000000000000 d51810730610e7a9697f08484589710198fcc20afc7378978d1aa13259dfb7f1";

fn agile(xml: &str) -> Vec<u8> {
    package(&[&[4, 0, 4, 0, 0x40, 0, 0, 0], xml.as_bytes()].concat(), AGILE_PACKAGE)
}

const STANDARD: &str = "03000200240000002800000024000000000000000e660000048000008000000018000000000000000000000041004500\
    5300000010000000000102030405060708090a0b0c0d0e0fc9c388ad490e94704544db5bb838b6ee14000000be5b1399420b30a6bd10f8474fc0\
    1c60b4ea54ab54faf94e4e62a270c21bb933";
const STANDARD_PACKAGE: &str =
    "2000000000000000 ee5f8777677009fb00e1cfdc1cc8f2659d715e7a942a719ee0ba9f155aa0315f";

/// The streams of a workbook with a sheet `Tides`: by Excel 97, and by Excel 2002.
const EXCEL_97: &str = "09081000000605000000000000000000000000002f003600010001000100000102030405060708090a0b0c0d0e0f01fd4e05\
    dc6e0e72fcc4b72175686883ded643a3b989170bc6e163b5debaf71485000d007b00000040e6ffcd4dd8f67a07e00014000433c90f113d8939604f\
    37edf9bcd13e27fa13380a000000090810000006100000000000000000000000000004022f000354ddae9240db66c60368067dbf7313d81d9573c3\
    eed9084f4dbd703f940ee5af9874cf1471108bc06fa074dde57203020e00178499b71b7074def292ad1f006d0a000000";
const EXCEL_2002: &str = "09081000000605000000000000000000000000002f006c000100020002000400000022000000040000000000000001680000\
    0480000080000000010000000000000000000000000010000000000102030405060708090a0b0c0d0e0fa024a295d910dcd16b2b69c9dfef19191400\
    000074a70eb0e7278136e857318b9e9a13d19115d50b85000d00b10000009fd1f875777136cad5e0001400e595abb93a5300ae56d89b24fd677e9f53\
    b803550a000000090810000006100000000000000000000000000004022f0070023f967c957f62e15a5661be64259271bcb044fdd5519e8623db9297\
    5e491201c5b1697cecabc6fe3d6772ffc41303020e009b275f373e4d93816f72351150a70a000000";

#[test]
fn documents_of_both_kinds_of_encryption_are_opened() {
    for document in [agile(AGILE), package(&bytes(STANDARD), STANDARD_PACKAGE)] {
        assert_eq!(read(&document, "a.xlsx").unwrap().trim(), "The harbour closes at low tide.");
    }
}

#[test]
fn old_workbooks_of_both_kinds_of_encryption_are_opened() {
    for stream in [EXCEL_97, EXCEL_2002] {
        let document = made::compound_of(&[("Workbook", &bytes(stream))]);
        let text = read(&document, "a.xls").unwrap();
        assert_eq!(text, "## Tides\n\n| Low water at noon. Low water at noon. |\n| --- |\n| 4.25 |");
    }
}

#[test]
fn a_password_of_its_own_is_named() {
    let other_salt = AGILE.replace("OYIqAu1u", "OYIqAu1v");
    let mut workbook = bytes(EXCEL_97);
    workbook[40] ^= 1;
    for (document, name) in
        [(agile(&other_salt), "a.xlsx"), (made::compound_of(&[("Workbook", &workbook)]), "a.xls")]
    {
        let error = read(&document, name).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}: {error}");
        assert!(error.message().contains("password"), "{name}: {error}");
    }
}

#[test]
fn a_pdf_of_revision_5_opens_without_a_password_and_names_one_of_its_own() {
    let document = include_bytes!("structure/files/pdf/encrypted.pdf");
    assert!(read(document, "a.pdf").unwrap().contains("The chair opened the meeting at seven"));
    let mut other = document.to_vec();
    let user = other.windows(4).position(|window| window == b"/U <").unwrap();
    other[user + 4] = if other[user + 4] == b'0' { b'1' } else { b'0' };
    let error = read(&other, "a.pdf").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.message().contains("password"), "{error}");
}

/// Hashing billions of times would keep the reader busy for hours.
#[test]
fn endless_hashing_is_not_begun() {
    let error = read(&agile(&AGILE.replace("100000", "4000000000")), "a.xlsx").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn what_is_cut_short_ends_in_the_whole_text_or_in_an_error() {
    let (agile, old) = (agile(AGILE), made::compound_of(&[("Workbook", &bytes(EXCEL_2002))]));
    for whole in [agile, old] {
        let text = read(&whole, "a.xlsx").unwrap();
        for part in 1..12 {
            match read(&whole[..whole.len() * part / 12], "a.xlsx") {
                Ok(found) => assert_eq!(found, text),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Damaged), "{error}");
                }
            }
        }
    }
}

//! Additional certificate authorities: their file, and a file with those of the system as well.

use std::{
    io::{self, Write},
    path::Path,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use tempfile::TempPath;

use crate::settings::ProxyError;

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
// Length of a line of base64 in a PEM file.
const LINE: usize = 64;

/// Reads a PEM file of authorities.
pub(crate) fn read_authorities(file: &Path) -> Result<Vec<u8>, ProxyError> {
    let wrong = |problem: String| ProxyError::new("proxy.ca", problem);
    let text =
        std::fs::read(file).map_err(|error| wrong(format!("cannot read {}: {error}", file.display())))?;
    let has_certificate = String::from_utf8_lossy(&text).contains(CERTIFICATE);
    if has_certificate {
        Ok(text)
    } else {
        Err(wrong(format!(
            "{} contains no certificate in PEM format",
            file.display()
        )))
    }
}

/// Writes a file with these authorities and those of the system.
pub(crate) fn write_bundle(own: &[u8], folder: &Path) -> io::Result<TempPath> {
    let mut file = tempfile::Builder::new()
        .prefix("authorities-")
        .suffix(".pem")
        .tempfile_in(folder)?;
    file.write_all(own)?;
    file.write_all(b"\n")?;
    // Authorities of the system that cannot be read are not trusted, as for the other clients.
    for certificate in rustls_native_certs::load_native_certs().certs {
        let text = STANDARD.encode(&certificate);
        writeln!(file, "{CERTIFICATE}")?;
        for line in text.as_bytes().chunks(LINE) {
            file.write_all(line)?;
            file.write_all(b"\n")?;
        }
        writeln!(file, "-----END CERTIFICATE-----")?;
    }
    file.flush()?;
    Ok(file.into_temp_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundle_begins_with_own_authorities() {
        let folder = tempfile::tempdir().unwrap();
        let own = format!("{CERTIFICATE}\nAAAA\n-----END CERTIFICATE-----");
        let written = write_bundle(own.as_bytes(), folder.path()).unwrap();
        let text = std::fs::read_to_string(&written).unwrap();
        assert!(text.starts_with(&own), "{text}");
        assert_eq!(
            text.matches(CERTIFICATE).count(),
            text.matches("-----END CERTIFICATE-----\n").count()
        );
        let path = written.to_path_buf();
        drop(written);
        assert!(!path.exists());
    }

    #[test]
    fn file_without_certificate_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        assert!(
            read_authorities(&file)
                .unwrap_err()
                .problem
                .contains("cannot read")
        );
        std::fs::write(&file, "-----BEGIN PRIVATE KEY-----\n").unwrap();
        let refused = read_authorities(&file).unwrap_err();
        assert!(refused.problem.contains("no certificate"), "{refused}");
        std::fs::write(&file, format!("{CERTIFICATE}\nAAAA\n")).unwrap();
        read_authorities(&file).unwrap();
    }
}

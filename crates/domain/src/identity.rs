//! Identity of a service: the URI in its certificate.

/// Returns the only URI (SPIFFE format) in the certificate of a service.
///
/// A host name only identifies the location of a peer. The URI identifies the service.
pub fn service_identity(service: &str) -> String {
    format!("spiffe://journeyman/{service}")
}

//! Identity of a service: the URI in its certificate.

/// Returns the only URI (SPIFFE format) in the certificate of a service.
///
/// A host name only identifies the location of a peer. The URI identifies the service.
// A URI cannot be confused with a host name that the authority issued for another purpose.
pub fn service_identity(service: &str) -> String {
    format!("spiffe://journeyman/{service}")
}

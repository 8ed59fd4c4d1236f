//! Who a service is to the others: the name in its certificate.

/// The URI that the certificate of a service has as its only one. A name of a host says where a peer is, this says what it is.
pub fn service_identity(service: &str) -> String {
    format!("spiffe://journeyman/{service}")
}

//! What can be wrong with a certificate or its making.

/// Why a certificate cannot be made or read. It never holds a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is none.
    #[error("this is no certificate in PEM")]
    NoCertificate,
    /// The text is none.
    #[error("this is no private key in PEM")]
    NoKey,
    /// The authority's key is another's.
    #[error("the key is not the one of the authority's certificate")]
    OtherKey,
    /// The authority can issue nothing that is valid.
    #[error("the authority's certificate has expired")]
    AuthorityExpired,
    /// A host has a name that certificates cannot hold.
    #[error("{0:?} is no name of a host and no address")]
    Name(String),
    /// The library refused.
    #[error("the certificate cannot be made")]
    Make(#[from] rcgen::Error),
}

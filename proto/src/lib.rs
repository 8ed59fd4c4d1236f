//! gRPC contracts between planner and executor, generated from `journeyman/executor/v1/executor.proto`.

mod check;
mod merge;

/// Package `journeyman.executor.v1`: requests of the planner to an executor pod.
pub mod executor {
    use tokio_stream::Stream;

    #[allow(
        missing_docs,
        unreachable_pub,
        clippy::doc_markdown,
        clippy::too_long_first_doc_paragraph,
        clippy::large_enum_variant,
        clippy::allow_attributes_without_reason,
        reason = "generated code; its documentation is in the proto file"
    )]
    mod generated {
        tonic::include_proto!("journeyman.executor.v1");
    }
    pub use generated::*;

    /// Bytes of a pack in one message. gRPC limits a message to 4 MiB by default.
    pub const PACK_CHUNK_BYTES: usize = 64 * 1024;
    /// Maximum size of a snapshot's pack, in bytes.
    pub const MAX_PACK_BYTES: usize = 256 * 1024 * 1024;

    /// Metadata key of an `unavailable` answer to `OpenWorkspace` during the first fetch of the repository, and while the
    /// base branch lacks `reported_base`: the progress in percent, or empty if unknown.
    pub const NOT_READY: &str = "journeyman-not-ready";

    /// Messages of one `OpenWorkspace` request. `pack` is that of `spec.restore`, and empty without one.
    pub fn open_request(
        spec: WorkspaceSpec,
        pack: impl AsRef<[u8]> + Send + 'static,
    ) -> impl Stream<Item = OpenWorkspaceRequest> + Send + 'static {
        use open_workspace_request::Part;
        let chunks = (0..pack.as_ref().len()).step_by(PACK_CHUNK_BYTES);
        let chunks = chunks.map(move |start| {
            let rest = &pack.as_ref()[start..];
            Part::PackChunk(rest[..rest.len().min(PACK_CHUNK_BYTES)].to_vec())
        });
        // The spec goes first: it names the snapshot that the chunks belong to.
        let parts = std::iter::once(Part::Spec(spec)).chain(chunks);
        tokio_stream::iter(parts.map(|part| OpenWorkspaceRequest { part: Some(part) }))
    }
}

impl From<executor::Fence> for domain::RunFence {
    fn from(fence: executor::Fence) -> Self {
        Self::new(fence.epoch, fence.sequence, fence.delivered)
    }
}

impl From<domain::RunFence> for executor::Fence {
    fn from(fence: domain::RunFence) -> Self {
        let stamp = fence.stamp();
        Self {
            epoch: stamp.epoch,
            sequence: stamp.sequence,
            delivered: stamp.delivered,
        }
    }
}

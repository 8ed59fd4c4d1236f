//! The gRPC contracts between planner and executor, generated from `journeyman/executor/v1/executor.proto`.

/// `journeyman.executor.v1`: what the planner asks of an executor pod.
pub mod executor {
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

//! A content of Git LFS as the body of a response, with a deadline.

use std::{io, path::Path, time::Duration};

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse as _, Response},
};
use futures::StreamExt as _;
use tokio_util::io::ReaderStream;

/// Serves a file. After the deadline the body ends early, so that a client does not take it as complete.
pub(super) async fn serve_content(file: &Path, deadline: Duration) -> io::Result<Response> {
    let file = tokio::fs::File::open(file).await?;
    let size = file.metadata().await?.len();
    let parts = ReaderStream::new(file).take_until(Box::pin(tokio::time::sleep(deadline)));
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, size.to_string()),
    ];
    Ok((headers, Body::from_stream(parts)).into_response())
}

//! Layer that renders pages with the name of their user.

use axum::{
    body::Body,
    extract::{Request, State},
    http::{
        HeaderValue,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
    middleware::Next,
    response::Response,
};

use crate::{
    layout::{ConsolePage, PageFrame},
    person::{ConsoleState, find_visitor, session_id},
};

/// Renders the page of a response. Other responses pass unchanged.
pub(crate) async fn render_response(
    State(state): State<ConsoleState>,
    request: Request,
    next: Next,
) -> Response {
    // The id is read before the handler consumes the request.
    let session = session_id(&state, request.headers());
    let mut response = next.run(request).await;
    let Some(page) = response.extensions_mut().remove::<ConsolePage>() else {
        return response;
    };
    let visitor = match session {
        Some(id) if page.has_navigation() => find_visitor(&state, &id).await,
        Some(_) | None => None,
    };
    let frame = PageFrame {
        visitor,
        environment: state.environment.clone(),
    };
    *response.body_mut() = Body::from(page.markup(&frame).into_string());
    let headers = response.headers_mut();
    // The router has counted the empty body.
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

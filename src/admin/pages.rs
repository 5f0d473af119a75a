//! What can be asked by HTTP, and who is answered.
//!
//! Health tells nothing but whether we answer, so whoever may speak RESP may ask for it.
//! Metrics tell more, and there is no password here: other machines read them only where
//! `server.protected_mode` is off.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};

use crate::server::{Hub, Readiness, is_elsewhere};
use crate::telemetry::{METRICS_CONTENT_TYPE, metrics_page};

const INDEX: &str = concat!(
    "Tollgate ",
    env!("CARGO_PKG_VERSION"),
    " answers here by HTTP:

  /metrics        every metric, for Prometheus
  /health/live    200 while the process answers
  /health/ready   200 while it takes clients, 503 with the reason while it does not

Limits are asked for on the RESP port, by any Redis client.
"
);

/// All below this are answered to whoever may speak RESP.
const HEALTH: &str = "/health/";

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller(pub(super) IpAddr);

pub(super) fn router(hub: Arc<Hub>) -> Router {
    Router::new()
        .route("/", get(|| async { INDEX }))
        .route("/metrics", get(|State(hub)| async move { metrics(&hub) }))
        .route("/health/live", get(|| async { json(StatusCode::OK, r#"{"status":"live"}"#) }))
        .route("/health/ready", get(|State(hub)| async move { ready(&hub) }))
        .fallback(|| async { (StatusCode::NOT_FOUND, "Nothing is here. / says what there is.\n") })
        .layer(middleware::from_fn_with_state(Arc::clone(&hub), guard))
        .with_state(hub)
}

fn metrics(hub: &Arc<Hub>) -> Response {
    let page = metrics_page(hub.service(), &**hub, hub.clock().now());
    ([(header::CONTENT_TYPE, METRICS_CONTENT_TYPE)], page).into_response()
}

fn ready(hub: &Arc<Hub>) -> Response {
    match hub.readiness() {
        Readiness::Ready => json(StatusCode::OK, r#"{"status":"ready"}"#),
        Readiness::Starting => unready(r#"{"status":"not ready","reason":"starting"}"#),
        Readiness::Draining => unready(r#"{"status":"not ready","reason":"draining"}"#),
    }
}

fn unready(body: &'static str) -> Response {
    json(StatusCode::SERVICE_UNAVAILABLE, body)
}

fn json(status: StatusCode, body: &'static str) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// What every request passes before it is answered.
async fn guard(
    State(hub): State<Arc<Hub>>,
    Extension(Caller(address)): Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    if let Some(reason) = refusal(&hub, address, request.uri().path()) {
        return (StatusCode::FORBIDDEN, format!("{reason}\n")).into_response();
    }
    if !request.body().is_end_stream() {
        return (StatusCode::PAYLOAD_TOO_LARGE, "No request here has a body.\n").into_response();
    }
    next.run(request).await
}

fn refusal(hub: &Hub, address: IpAddr, path: &str) -> Option<&'static str> {
    let private = hub.service().runtime().is_protected() && is_elsewhere(address);
    hub.shut_out(address).or_else(|| {
        (private && !path.starts_with(HEALTH)).then_some(
            "In protected mode other machines are answered only under /health. Set \
             `server.protected_mode: false` where the network of the HTTP port is trusted, and \
             start Tollgate again.",
        )
    })
}

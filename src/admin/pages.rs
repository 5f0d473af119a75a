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
use crate::telemetry::{HttpEvents, METRICS_CONTENT_TYPE, metrics_page};

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

const ROOT: &str = "/";
const METRICS: &str = "/metrics";
const LIVE: &str = "/health/live";
const READY: &str = "/health/ready";

/// All below this are answered to whoever may speak RESP.
const HEALTH: &str = "/health/";

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller(pub(super) IpAddr);

pub(super) fn router(hub: Arc<Hub>) -> Router {
    let events = Arc::new(hub.events().http(&[ROOT, METRICS, LIVE, READY]));
    Router::new()
        .route(ROOT, get(|| async { INDEX }))
        .route(METRICS, get(|State(hub)| async move { metrics(&hub) }))
        .route(LIVE, get(|| async { json(StatusCode::OK, r#"{"status":"live"}"#) }))
        .route(READY, get(|State(hub)| async move { ready(&hub) }))
        .fallback(|| async { (StatusCode::NOT_FOUND, "Nothing is here. / says what there is.\n") })
        .layer(middleware::from_fn_with_state(Arc::clone(&hub), guard))
        .layer(middleware::from_fn_with_state((Arc::clone(&hub), events), count))
        .with_state(hub)
}

fn metrics(hub: &Arc<Hub>) -> Response {
    let page = metrics_page(hub.service(), &**hub, hub.events(), hub.clock().now());
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

/// Counts every request when it has its answer, a refusal included.
async fn count(
    State((hub, events)): State<(Arc<Hub>, Arc<HttpEvents>)>,
    request: Request,
    next: Next,
) -> Response {
    let began = hub.clock().now();
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    let took = hub.clock().now().since(began);
    events.answered(&path, response.status().as_u16(), took);
    response
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::hub_for_test;
    use axum::body::Body;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const ELSEWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn ask(hub: Hub, caller: IpAddr, request: Request) -> Response {
        let pages = router(Arc::new(hub)).layer(Extension(Caller(caller)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let answer = TowerToHyperService::new(pages).call(request);
        runtime.block_on(answer).expect("the pages answer everything")
    }

    fn request(method: &str, path: &str, body: impl Into<Body>) -> Request {
        Request::builder().method(method).uri(path).body(body.into()).expect("a request")
    }

    fn status(hub: Hub, caller: IpAddr, path: &str) -> u16 {
        ask(hub, caller, request("GET", path, Body::empty())).status().as_u16()
    }

    #[test]
    fn protected_mode_keeps_other_machines_to_health_and_without_password_out() {
        let rows = [
            // password, protected mode, whose request: status of /metrics, of /health/live
            ("", true, HERE, 200, 200),
            ("", true, ELSEWHERE, 403, 403),
            ("", false, ELSEWHERE, 200, 200),
            ("secret", true, HERE, 200, 200),
            ("secret", true, ELSEWHERE, 403, 200),
            ("secret", false, ELSEWHERE, 200, 200),
        ];
        for (password, protected, caller, metrics, health) in rows {
            let row = (password, protected, caller);
            assert_eq!(
                status(hub_for_test(password, protected), caller, "/metrics"),
                metrics,
                "{row:?}"
            );
            let live = status(hub_for_test(password, protected), caller, "/health/live");
            assert_eq!(live, health, "{row:?}");
        }
        let mapped = "::ffff:127.0.0.1".parse().expect("an address");
        assert_eq!(status(hub_for_test("", true), mapped, "/metrics"), 200);
    }

    #[test]
    fn server_that_is_not_listening_yet_is_alive_and_not_ready() {
        assert_eq!(status(hub_for_test("", true), HERE, "/health/live"), 200);
        assert_eq!(status(hub_for_test("", true), HERE, "/health/ready"), 503);
    }

    #[test]
    fn only_plain_questions_are_answered() {
        let rows = [
            ("GET", "/", "", 200),
            ("HEAD", "/metrics", "", 200),
            ("GET", "/nothing", "", 404),
            ("POST", "/metrics", "", 405),
            ("POST", "/metrics", "body", 413),
            ("GET", "/metrics", "body", 413),
        ];
        for (method, path, body, expected) in rows {
            let answer = ask(hub_for_test("", true), HERE, request(method, path, body));
            assert_eq!(answer.status().as_u16(), expected, "{method} {path} {body}");
        }
    }
}

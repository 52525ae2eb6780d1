//! Extractors whose rejections are problems.

use crate::shared::problem::{
    BODY_TOO_LARGE, INVALID_BODY, INVALID_QUERY, MALFORMED_BODY, Problem, Result, UNSUPPORTED_MEDIA_TYPE,
};
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// A JSON body.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>> {
        match axum::Json::<T>::from_request(request, state).await {
            Ok(axum::Json(body)) => Ok(Body(body)),
            Err(rejection) => Err(refused_body(&rejection)),
        }
    }
}

fn refused_body(rejection: &JsonRejection) -> Problem {
    let kind = match rejection {
        JsonRejection::JsonDataError(_) => &INVALID_BODY,
        JsonRejection::JsonSyntaxError(_) => &MALFORMED_BODY,
        JsonRejection::MissingJsonContentType(_) => {
            return Problem::new(&UNSUPPORTED_MEDIA_TYPE, "send the body as application/json");
        }
        other if other.status() == StatusCode::PAYLOAD_TOO_LARGE => &BODY_TOO_LARGE,
        _ => &MALFORMED_BODY,
    };
    Problem::new(kind, rejection.body_text())
}

/// Query parameters.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query<T>> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        match query {
            Ok(axum::extract::Query(query)) => Ok(Query(query)),
            Err(rejection) => Err(refused_query(&rejection)),
        }
    }
}

fn refused_query(rejection: &QueryRejection) -> Problem {
    Problem::new(&INVALID_QUERY, rejection.body_text())
}

/// Path parameters; one that can't be read names nothing.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>> {
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(path)) => Ok(Path(path)),
            Err(_) => Err(Problem::not_found()),
        }
    }
}

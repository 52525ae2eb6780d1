//! Files: uploads that can be gone on with after a break, downloads with ranges (RFC 9110).

use super::{Me, Social, schema};
use crate::shared::etag::has_already;
use crate::shared::extract::{Body, Path, Query};
use crate::shared::problem::{INVALID_BODY, Problem, RANGE_NOT_SATISFIABLE, Result, UNSUPPORTED_MEDIA_TYPE};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Deserialize;
use social::{Access, File, Id, Network, NewFile, Upload};
use std::ops::Range;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How much of a file is read at once: four chunks.
const PIECE_BYTES: u64 = 4 * 255 * 1024;
const BINARY: &str = "application/octet-stream";

pub(super) fn routes() -> OpenApiRouter<Arc<Social>> {
    OpenApiRouter::default()
        .routes(routes!(begin_upload))
        .routes(routes!(upload, append_upload))
        .routes(routes!(finish_upload))
        .routes(routes!(download, delete_file))
        .routes(routes!(file))
}

/// Who may read it: everybody, its owner, or a conversation's members.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum Readers {
    Public,
    Owner,
    Conversation,
}

/// A file to upload.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UploadRequest {
    /// Its name; an older file of the owner and name is replaced.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    #[schema(min_length = 3, max_length = 100, pattern = "^[a-z]+/[A-Za-z0-9.+-]+$")]
    content_type: String,
    #[schema(minimum = 0)]
    length: u64,
    /// In hex digits; checked when all is there.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    sha256: Option<String>,
    readers: Readers,
    /// Whose members may read it.
    #[schema(pattern = "^[0-9a-f]{24}$")]
    conversation: Option<String>,
}

impl UploadRequest {
    fn checked(self) -> Result<NewFile> {
        let wrong = |why: &str| Problem::new(&INVALID_BODY, why);
        let token =
            |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b".+-".contains(&b));
        if self.content_type.len() > 100
            || !self.content_type.split_once('/').is_some_and(|(a, b)| token(a) && token(b))
        {
            return Err(wrong("'contentType' must be a media type such as image/png"));
        }
        if self.name.is_empty() || self.name.chars().count() > 200 {
            return Err(wrong("'name' has 1 to 200 characters"));
        }
        let access = match (self.readers, self.conversation) {
            (Readers::Public, None) => Access::Public,
            (Readers::Owner, None) => Access::Owner,
            (Readers::Conversation, Some(id)) => {
                Access::Conversation(id.parse().map_err(|_| wrong("'conversation' must be a conversation's id"))?)
            }
            _ => return Err(wrong("'conversation' goes with the readers of the same name")),
        };
        let UploadRequest { name, content_type, length, sha256, .. } = self;
        Ok(NewFile { name, content_type, length, sha256, access })
    }
}

/// Begin an upload
#[utoipa::path(
    post, path = "/v1/uploads", tag = "files", security(("bearer" = ["user"])), request_body = UploadRequest,
    extensions(("x-problems" = json!(["not-found"]))),
    responses((status = 201, description = "The upload, whose id becomes the file's", body = schema::Upload)),
)]
async fn begin_upload(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Body(body): Body<UploadRequest>,
) -> Result<Response> {
    let upload = social.network.begin_upload(me, &body.checked()?).await?;
    let at = HeaderValue::from_str(&format!("/v1/uploads/{}", upload.id)).expect("an id is hex digits");
    Ok((StatusCode::CREATED, [(header::LOCATION, at)], Json(upload)).into_response())
}

/// How far one's upload is, to go on after a break
#[utoipa::path(
    get, path = "/v1/uploads/{id}", tag = "files", security(("bearer" = ["user"])), params(("id" = String, Path)),
    responses((status = 200, description = "The upload", body = schema::Upload)),
)]
async fn upload(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<Json<Upload>> {
    Ok(Json(social.network.upload(me, id).await?))
}

/// Where the bytes belong.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OffsetQuery {
    /// `received` of the upload.
    #[param(minimum = 0)]
    offset: u64,
}

/// Send the next bytes: whole chunks of 255 KiB are taken, and the last one
#[utoipa::path(
    patch, path = "/v1/uploads/{id}", tag = "files", security(("bearer" = ["user"])),
    params(("id" = String, Path), OffsetQuery), request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    extensions(("x-body-limit" = json!(8388608)), ("x-problems" = json!(["precondition-failed"]))),
    responses((status = 200, description = "The upload now; go on at `received`", body = schema::Upload)),
)]
async fn append_upload(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
    Query(query): Query<OffsetQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Upload>> {
    if headers.get(header::CONTENT_TYPE).is_none_or(|media_type| media_type != BINARY) {
        return Err(Problem::new(&UNSUPPORTED_MEDIA_TYPE, format!("send the bytes as {BINARY}")));
    }
    Ok(Json(social.network.append_upload(me, id, query.offset, &body).await?))
}

/// Make an upload that is complete a file
#[utoipa::path(
    post, path = "/v1/uploads/{id}/finish", tag = "files", security(("bearer" = ["user"])),
    params(("id" = String, Path)), extensions(("x-problems" = json!(["corrupt", "invalid-body"]))),
    responses((status = 201, description = "The file", body = schema::File)),
)]
async fn finish_upload(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<Response> {
    let file = social.network.finish_upload(me, id).await?;
    let at = HeaderValue::from_str(&format!("/v1/files/{}", file.id)).expect("an id is hex digits");
    Ok((StatusCode::CREATED, [(header::LOCATION, at)], Json(file)).into_response())
}

/// What is known of a file that the caller may read
#[utoipa::path(
    get, path = "/v1/files/{id}/about", tag = "files", security(("bearer" = ["user"])), params(("id" = String, Path)),
    responses((status = 200, description = "It", body = schema::File)),
)]
async fn file(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<Json<File>> {
    Ok(Json(social.network.file(me, id).await?))
}

/// Delete a file of one's own
#[utoipa::path(
    delete, path = "/v1/files/{id}", tag = "files", security(("bearer" = ["user"])), params(("id" = String, Path)),
    extensions(("x-problems" = json!(["not-allowed"]))), responses((status = 204, description = "It is gone")),
)]
async fn delete_file(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.delete_file(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The bytes of a file that the caller may read, all or a range
#[utoipa::path(
    get, path = "/v1/files/{id}", tag = "files", security(("bearer" = ["user"])),
    params(("id" = String, Path), ("Range" = Option<String>, Header, description = "One range of bytes"),
        ("If-Range" = Option<String>, Header, description = "The ETag for which the range is meant")),
    extensions(("x-problems" = json!(["range-not-satisfiable"]))),
    responses(
        (status = 200, description = "All", body = Vec<u8>, content_type = "*/*", headers(("ETag" = String))),
        (status = 206, description = "The range", body = Vec<u8>, content_type = "*/*"),
    ),
)]
async fn download(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
    headers: HeaderMap,
) -> Result<Response> {
    let file = social.network.file(me, id).await?;
    let tag = HeaderValue::from_str(&format!("\"{}\"", file.sha256)).expect("a checksum is hex digits");
    if has_already(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let meant = headers.get(header::IF_RANGE).is_none_or(|wanted| *wanted == tag);
    let asked = headers.get(header::RANGE).filter(|_| meant).and_then(|range| range.to_str().ok());
    let wanted = asked.map_or(Wanted::All, |range| parse(range, file.length));
    let (status, range) = match wanted {
        Wanted::All => (StatusCode::OK, 0..file.length),
        Wanted::Some(range) => (StatusCode::PARTIAL_CONTENT, range),
        Wanted::None => {
            let size = HeaderValue::from_str(&format!("bytes */{}", file.length)).expect("digits are a header value");
            let why = format!("the file has {} bytes", file.length);
            return Err(Problem::new(&RANGE_NOT_SATISFIABLE, why).header(header::CONTENT_RANGE, size));
        }
    };
    let mut answer = Response::new(stream(social.network.clone(), file.clone(), range.clone()));
    *answer.status_mut() = status;
    let answered = answer.headers_mut();
    let binary = HeaderValue::from_static(BINARY);
    answered.insert(header::CONTENT_TYPE, HeaderValue::from_str(&file.content_type).unwrap_or(binary));
    answered.insert(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    answered.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    answered.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    answered.insert(header::ETAG, tag);
    if status == StatusCode::PARTIAL_CONTENT {
        let place = format!("bytes {}-{}/{}", range.start, range.end - 1, file.length);
        answered.insert(header::CONTENT_RANGE, HeaderValue::from_str(&place).expect("digits are a header value"));
    }
    Ok(answer)
}

/// A range of a file, piece by piece.
fn stream(network: Network, file: File, range: Range<u64>) -> axum::body::Body {
    let pieces = futures_util::stream::unfold((network, file, range), |(network, file, range)| async move {
        if range.is_empty() {
            return None;
        }
        let end = range.end.min(range.start + PIECE_BYTES);
        let read = network.read_file(&file, range.start..end).await.map(Bytes::from);
        let rest = if read.is_ok() { end..range.end } else { 0..0 };
        Some((read, (network, file, rest)))
    });
    axum::body::Body::from_stream(pieces)
}

/// What a `Range` asks for.
#[derive(Debug, PartialEq)]
enum Wanted {
    All,
    Some(Range<u64>),
    None,
}

/// Reads a `Range` of one range of bytes; others may be, and are, ignored.
fn parse(text: &str, length: u64) -> Wanted {
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|range| range.trim().split_once('-')) else {
        return Wanted::All;
    };
    let range = match (first.parse::<u64>().ok(), last.parse::<u64>().ok()) {
        (Some(first), None) if last.is_empty() => first..length,
        (Some(first), Some(last)) if first <= last => first..length.min(last.saturating_add(1)),
        (None, Some(count)) if first.is_empty() => length.saturating_sub(count)..length,
        _ => return Wanted::All,
    };
    if range.is_empty() { Wanted::None } else { Wanted::Some(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        let table = [
            ("bytes=0-499", Wanted::Some(0..500)),
            ("bytes=500-999", Wanted::Some(500..1000)),
            ("bytes=-500", Wanted::Some(9500..10000)),
            ("bytes=9500-", Wanted::Some(9500..10000)),
            ("bytes=0-0", Wanted::Some(0..1)),
            ("bytes=9999-20000", Wanted::Some(9999..10000)),
            ("bytes=-20000", Wanted::Some(0..10000)),
            ("bytes=10000-", Wanted::None),
            ("bytes=-0", Wanted::None),
            ("bytes=5-4", Wanted::All),
            ("bytes=0-1,4-5", Wanted::All),
            ("lines=1-2", Wanted::All),
            ("bytes=-", Wanted::All),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text, 10_000), expected, "{text}");
        }
        assert_eq!(parse("bytes=0-", 0), Wanted::None);
    }
}

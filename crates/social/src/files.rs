//! Files, as GridFS keeps them: `fs.files` and `fs.chunks`, so that any driver's bucket reads them.
//!
//! An upload goes into chunks of [`FILE_CHUNK`] bytes under its own id, which nobody sees before it is finished: finishing
//! checks length and checksum of what is stored and then makes the file, in one transaction with the end of the upload and
//! of the file that it replaces. After a break an upload goes on where it was; one that nobody goes on with is collected.
//! What is replaced or deleted stays for a while, so that whoever is reading it can finish.

use crate::error::{Error, Result};
use crate::id::{Id, Time};
use crate::network::{FILE_CHUNKS, FILES, Network, UPLOADS};
use crate::read;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ops::Range;
use store::{Find, Update};

/// The bytes of a chunk: 255 KiB, as drivers have it.
pub const FILE_CHUNK: u64 = 255 * 1024;

/// The largest file.
pub const MAX_FILE: u64 = 1 << 32;

/// The chunks that are deleted at once.
const CHUNKS_PER_DELETE: i64 = 64;

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// Everybody.
    Public,
    /// Its owner.
    Owner,
    /// The members of a conversation.
    Conversation(Id),
}

/// A file to upload.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewFile {
    /// Its name. An owner's file of the same name is replaced.
    pub name: String,
    /// Its media type.
    pub content_type: String,
    /// Its bytes.
    pub length: u64,
    /// Its SHA-256 in hex digits, to be checked when all is there.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Who may read it.
    pub access: Access,
}

/// An upload under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upload {
    /// Its id, which becomes the file's.
    pub id: Id,
    /// How many bytes are there; the next ones belong behind them.
    pub received: u64,
    /// How many bytes it will have.
    pub length: u64,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Its id.
    pub id: Id,
    /// Its name.
    pub name: String,
    /// Its media type.
    pub content_type: String,
    /// Its bytes.
    pub length: u64,
    /// Its SHA-256 in hex digits.
    pub sha256: String,
    /// Whose it is.
    pub owner: Id,
    /// Since when it is there.
    pub uploaded_at: Time,
}

fn file(document: &Document) -> File {
    let empty = Document::new();
    let metadata = document.get_document("metadata").unwrap_or(&empty);
    File {
        id: read::id(document, "_id"),
        name: read::text(document, "filename"),
        content_type: read::text(metadata, "contentType"),
        length: read::number(document, "length") as u64,
        sha256: read::text(metadata, "sha256"),
        owner: read::id(metadata, "ownerId"),
        uploaded_at: read::time(document, "uploadDate"),
    }
}

fn access_fields(access: Access) -> Document {
    match access {
        Access::Public => doc! { "access": "public" },
        Access::Owner => doc! { "access": "owner" },
        Access::Conversation(id) => doc! { "access": "conversation", "conversationId": id },
    }
}

fn bytes_of(chunk: &Document) -> &[u8] {
    match chunk.get("data") {
        Some(Bson::Binary(data)) => &data.bytes,
        _ => &[],
    }
}

/// How many bytes a chunk of a file has.
fn chunk_length(length: u64, number: u64) -> u64 {
    (length - number * FILE_CHUNK).min(FILE_CHUNK)
}

impl Network {
    /// Begins an upload.
    ///
    /// # Errors
    /// [`Error::UnknownUser`], [`Error::UnknownConversation`], [`Error::Invalid`].
    pub async fn begin_upload(&self, owner: Id, new: &NewFile) -> Result<Upload> {
        if new.name.is_empty() || new.name.len() > 255 || new.length > MAX_FILE {
            return Err(Error::Invalid(format!("a file has a name of 1 to 255 bytes and at most {MAX_FILE} bytes")));
        }
        self.user(owner, None).await?;
        if let Access::Conversation(id) = new.access
            && !self.is_member(owner, id).await?
        {
            return Err(Error::UnknownConversation(id));
        }
        let id = Id::new();
        let mut metadata = doc! { "contentType": &new.content_type, "ownerId": owner };
        metadata.extend(access_fields(new.access));
        let upload = doc! {
            "_id": id, "ownerId": owner, "filename": &new.name, "length": new.length as i64, "received": 0_i64,
            "expected": new.sha256.as_deref().map(str::to_lowercase), "metadata": metadata, "touchedAt": Time::now(),
        };
        self.collection(UPLOADS).insert_one(upload, None).await?;
        Ok(Upload { id, received: 0, length: new.length })
    }

    /// How far an upload is, to go on after a break.
    ///
    /// # Errors
    /// [`Error::UnknownFile`].
    pub async fn upload(&self, owner: Id, id: Id) -> Result<Upload> {
        let found = self.upload_of(owner, id).await?;
        Ok(Upload {
            id,
            received: read::number(&found, "received") as u64,
            length: read::number(&found, "length") as u64,
        })
    }

    async fn upload_of(&self, owner: Id, id: Id) -> Result<Document> {
        let open = doc! { "_id": id, "ownerId": owner, "collected": { "$ne": true } };
        let found = self.collection(UPLOADS).find_one(open, None).await?;
        found.ok_or_else(|| Error::UnknownFile(id.to_string()))
    }

    /// Takes bytes at an offset, which must be where the upload is: whole chunks, and the last one. What comes after the
    /// last whole chunk is not taken; send it again from [`Upload::received`] on, with more.
    ///
    /// # Errors
    /// [`Error::UnknownFile`], [`Error::Changed`] for another offset, [`Error::Invalid`] beyond the length.
    pub async fn append_upload(&self, owner: Id, id: Id, offset: u64, bytes: &[u8]) -> Result<Upload> {
        let upload = self.upload(owner, id).await?;
        if offset != upload.received {
            return Err(Error::Changed);
        }
        let end = offset + bytes.len() as u64;
        if end > upload.length {
            return Err(Error::Invalid(format!("the file has {} bytes", upload.length)));
        }
        let taken =
            if end == upload.length { bytes.len() } else { bytes.len() / FILE_CHUNK as usize * FILE_CHUNK as usize };
        let chunks = self.collection(FILE_CHUNKS);
        let first = (offset / FILE_CHUNK) as i32;
        for (number, data) in (first..).zip(bytes[..taken].chunks(FILE_CHUNK as usize)) {
            let data = Binary { subtype: BinarySubtype::Generic, bytes: data.to_vec() };
            let place = doc! { "files_id": id, "n": number };
            let upsert = Update { upsert: true, ..Update::default() };
            chunks.update_one(place, doc! { "$set": { "data": data } }, upsert, None).await?;
        }
        let received = offset + taken as u64;
        let here = doc! { "_id": id, "received": offset as i64, "collected": { "$ne": true } };
        let on = doc! { "$set": { "received": received as i64, "touchedAt": Time::now() } };
        let done = self.collection(UPLOADS).update_one(here, on, Update::default(), None).await?;
        if done.matched == 0 {
            return Err(Error::Changed);
        }
        Ok(Upload { received, ..upload })
    }

    /// Makes an upload that is complete a file; an older file of the owner and name is replaced in the same moment.
    ///
    /// # Errors
    /// [`Error::UnknownFile`], [`Error::Invalid`] before all is there, [`Error::Corrupt`] if the checksum is another one.
    pub async fn finish_upload(&self, owner: Id, id: Id) -> Result<File> {
        let upload = self.upload_of(owner, id).await?;
        let length = read::number(&upload, "length");
        if read::number(&upload, "received") != length {
            return Err(Error::Invalid(format!("{} of {length} bytes are there", read::number(&upload, "received"))));
        }
        let found = self.checksum(id, length as u64).await?;
        if let Ok(expected) = upload.get_str("expected")
            && expected != found
        {
            return Err(Error::Corrupt { expected: expected.to_owned(), found });
        }
        let mut metadata = upload.get_document("metadata").cloned().unwrap_or_default();
        metadata.insert("sha256", found);
        let name = read::text(&upload, "filename");
        let document = doc! {
            "_id": id, "length": length, "chunkSize": FILE_CHUNK as i32, "uploadDate": Time::now(), "filename": &name,
            "metadata": metadata,
        };
        let network = self.clone();
        self.transact(move |session| {
            let (network, document, name) = (network.clone(), document.clone(), name.clone());
            Box::pin(async move {
                let files = network.collection(FILES);
                let open = doc! { "_id": id, "collected": { "$ne": true } };
                if network.collection(UPLOADS).delete_one(open, Some(&mut *session)).await? == 0 {
                    return Err(Error::UnknownFile(id.to_string()));
                }
                let older = doc! { "filename": name, "metadata.ownerId": owner };
                let page = Find { projection: Some(doc! { "_id": 1 }), ..Find::default() };
                for old in files.find(older, page, Some(&mut *session)).await? {
                    network.retire_file(read::id(&old, "_id"), session).await?;
                }
                files.insert_one(document.clone(), Some(session)).await?;
                Ok(file(&document))
            })
        })
        .await
    }

    /// The SHA-256 of what is stored, which must be whole.
    async fn checksum(&self, id: Id, length: u64) -> Result<String> {
        let mut sum = Sha256::new();
        for number in 0..length.div_ceil(FILE_CHUNK) {
            sum.update(self.chunk(id, length, number).await?);
        }
        Ok(hex::encode(sum.finalize()))
    }

    /// One chunk of a file, which must be as long as it ought to be.
    async fn chunk(&self, id: Id, length: u64, number: u64) -> Result<Vec<u8>> {
        let place = doc! { "files_id": id, "n": number as i32 };
        let chunk = self.collection(FILE_CHUNKS).find_one(place, None).await?;
        let chunk = chunk.ok_or_else(|| Error::UnknownFile(id.to_string()))?;
        let (bytes, expected) = (bytes_of(&chunk), chunk_length(length, number));
        if bytes.len() as u64 != expected {
            let found = format!("{} bytes in chunk {number}", bytes.len());
            return Err(Error::Corrupt { expected: format!("{expected} bytes"), found });
        }
        Ok(bytes.to_vec())
    }

    /// Takes a file away from its readers and leaves its chunks to be collected.
    pub(crate) async fn retire_file(&self, id: Id, session: &mut store::Session) -> Result<()> {
        self.collection(FILES).delete_one(doc! { "_id": id }, Some(&mut *session)).await?;
        let note = doc! { "_id": id, "collected": true, "touchedAt": Time::now() };
        self.collection(UPLOADS).insert_one(note, Some(session)).await?;
        Ok(())
    }

    /// Deletes a file of one's own.
    ///
    /// # Errors
    /// [`Error::UnknownFile`], [`Error::NotAllowed`].
    pub async fn delete_file(&self, owner: Id, id: Id) -> Result<()> {
        if self.file(owner, id).await?.owner != owner {
            return Err(Error::NotAllowed("delete the file of another user"));
        }
        let network = self.clone();
        self.transact(move |session| {
            let network = network.clone();
            Box::pin(async move { network.retire_file(id, session).await })
        })
        .await
    }

    /// A file, for somebody who may read it.
    ///
    /// # Errors
    /// [`Error::UnknownFile`].
    pub async fn file(&self, viewer: Id, id: Id) -> Result<File> {
        self.readable(viewer, doc! { "_id": id }, &id.to_string()).await
    }

    /// An owner's file of a name, for somebody who may read it.
    ///
    /// # Errors
    /// [`Error::UnknownFile`].
    pub async fn file_by_name(&self, viewer: Id, owner: Id, name: &str) -> Result<File> {
        self.readable(viewer, doc! { "filename": name, "metadata.ownerId": owner }, name).await
    }

    async fn readable(&self, viewer: Id, filter: Document, named: &str) -> Result<File> {
        let unknown = || Error::UnknownFile(named.to_owned());
        let found = self.collection(FILES).find_one(filter, None).await?.ok_or_else(unknown)?;
        let empty = Document::new();
        let metadata = found.get_document("metadata").unwrap_or(&empty);
        let owner = read::id(metadata, "ownerId");
        let may = owner == viewer
            || match metadata.get_str("access").unwrap_or_default() {
                "public" => self.blocked_of(viewer, &[owner]).await?.is_empty(),
                "conversation" => self.is_member(viewer, read::id(metadata, "conversationId")).await?,
                _ => false,
            };
        if may { Ok(file(&found)) } else { Err(unknown()) }
    }

    /// Some bytes of a file, which the caller has got from [`Network::file`]; fewer at the file's end.
    ///
    /// # Errors
    /// [`Error::UnknownFile`] once it has been collected, [`Error::Corrupt`].
    pub async fn read_file(&self, file: &File, range: Range<u64>) -> Result<Vec<u8>> {
        let end = range.end.min(file.length);
        let mut bytes = Vec::new();
        let mut at = range.start;
        while at < end {
            let number = at / FILE_CHUNK;
            let chunk = self.chunk(file.id, file.length, number).await?;
            let (from, to) = (at - number * FILE_CHUNK, (end - number * FILE_CHUNK).min(chunk.len() as u64));
            bytes.extend_from_slice(&chunk[from as usize..to as usize]);
            at = number * FILE_CHUNK + to;
        }
        Ok(bytes)
    }

    /// Deletes the chunks of uploads that nobody has gone on with, and of files that were replaced or deleted, for so long;
    /// gives how many uploads and files.
    ///
    /// # Errors
    /// A store that fails; call it again.
    pub async fn collect_files(&self, untouched: std::time::Duration) -> Result<u64> {
        let before = Time::from_timestamp_ms(Time::now().timestamp_ms() - untouched.as_millis() as i64);
        let uploads = self.collection(UPLOADS);
        let mut collected = 0;
        loop {
            let old = doc! { "touchedAt": { "$lte": before } };
            let mark = doc! { "$set": { "collected": true } };
            let Some(found) = uploads.find_one_and_update(old, mark, Default::default(), None).await? else {
                return Ok(collected);
            };
            let (id, chunks) = (read::id(&found, "_id"), self.collection(FILE_CHUNKS));
            loop {
                let page = Find { projection: Some(doc! { "_id": 1 }), limit: CHUNKS_PER_DELETE, ..Find::default() };
                let some = chunks.find(doc! { "files_id": id }, page, None).await?;
                let ids: Vec<_> = some.iter().filter_map(|chunk| chunk.get("_id").cloned()).collect();
                if ids.is_empty() {
                    break;
                }
                chunks.delete_many(doc! { "_id": { "$in": ids } }, None).await?;
            }
            uploads.delete_one(doc! { "_id": id }, None).await?;
            collected += 1;
        }
    }
}

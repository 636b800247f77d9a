//! Serving an archive over HTTP, read-only: GET and HEAD of files and of listings. What a request means
//! is in [`request`], how a directory looks in [`listing`]; this file accepts connections and answers.
//!
//! Content is read in threads of their own, one reader each, and sent in pieces, so that a large file is never
//! in memory as a whole and a slow client holds up nobody else.

mod listing;
mod request;

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, UNIX_EPOCH};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, mpsc};

use crate::archive::Archive;
use crate::entry::{Entry, Kind};
use crate::error::ArchiveError;
use crate::reader::Reader;
use crate::watch::Watch;
use request::{Conditions, Range, Validators, Verdict};

/// Connections at the same time; more have to wait.
const MOST_CONNECTIONS: usize = 256;

/// A client has so long to send the head of a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);

/// A client has so long to take a piece of an answer.
const PIECE_PATIENCE: Duration = Duration::from_secs(60);

/// How often is looked whether to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// Pieces of an answer that wait to be sent.
const WAITING_PIECES: usize = 4;

/// Content up to so many bytes is read as a whole, and its tag is the hash of it.
const SMALL_BYTES: u64 = 1024 * 1024;

/// A server that listens already, and answers as soon as it is run.
pub struct Server {
    listener: TcpListener,
    archive: Archive,
}

impl Server {
    /// Listens on an address; port 0 takes a free one.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn bind(archive: Archive, address: SocketAddr) -> Result<Self, ArchiveError> {
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = bound.map_err(|error| ArchiveError::BadSetting {
            what: format!("cannot listen on {address}"),
            reason: error.to_string(),
        })?;
        Ok(Self { listener, archive })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> Result<SocketAddr, ArchiveError> {
        self.listener
            .local_addr()
            .map_err(ArchiveError::io("listen for", self.archive.path()))
    }

    /// Answers until `watch` is stopped; it counts answers and their bytes.
    ///
    /// # Errors
    /// The system refuses threads or sockets.
    pub fn run(self, watch: &Arc<Watch>) -> Result<(), ArchiveError> {
        let path = self.archive.path().to_owned();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(MOST_CONNECTIONS)
            .build()
            .map_err(ArchiveError::io("start threads to serve", &path))?;
        let shared = Arc::new(Shared {
            archive: self.archive,
            readers: Mutex::new(Vec::new()),
            watch: Arc::clone(watch),
        });
        let listener = self.listener;
        let served = runtime.block_on(accept(listener, shared));
        runtime.shutdown_timeout(Duration::from_secs(1));
        served.map_err(ArchiveError::io("serve", &path))
    }
}

/// What all answers share.
struct Shared {
    archive: Archive,
    /// Readers that nobody uses at the moment.
    readers: Mutex<Vec<Reader>>,
    watch: Arc<Watch>,
}

impl Shared {
    fn with_reader<T>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        let idle = self
            .readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let reader = match idle {
            Some(reader) => reader,
            None => self.archive.reader()?,
        };
        let result = read(&reader);
        self.readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(reader);
        result
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    while shared.watch.check().is_ok() {
        let Ok(Ok(place)) =
            tokio::time::timeout(STOP_INTERVAL, Arc::clone(&places).acquire_owned()).await
        else {
            continue;
        };
        let stream = match tokio::time::timeout(STOP_INTERVAL, listener.accept()).await {
            Err(_) => continue,
            Ok(Ok((stream, _))) => stream,
            Ok(Err(_)) => {
                // Out of descriptors, or the client has gone: others may have better luck soon.
                tokio::time::sleep(STOP_INTERVAL).await;
                continue;
            }
        };
        // Small answers are not to wait for each other.
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&shared), request));
            // A client that breaks off, or talks nonsense, is its own loss.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_PATIENCE)
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(place);
        });
    }
    Ok(())
}

type Answer = Response<Pieces>;

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let head_only = request.method() == Method::HEAD;
    if !head_only && request.method() != Method::GET {
        let mut refused = text(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD are answered\n",
        );
        refused
            .headers_mut()
            .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(refused);
    }
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let conditions = Conditions::of(request.headers());
    let (head_sender, head) = tokio::sync::oneshot::channel();
    tokio::task::spawn_blocking(move || {
        let mut sender = Some(head_sender);
        let result = shared.with_reader(|reader| {
            respond(
                &shared,
                reader,
                &path,
                &query,
                &conditions,
                head_only,
                &mut sender,
            )
        });
        if let (Err(error), Some(sender)) = (result, sender.take()) {
            // Nobody is left to be told if the client has gone.
            let _ = sender.send(failure(&error));
        }
    });
    Ok(head
        .await
        .unwrap_or_else(|_| text(StatusCode::INTERNAL_SERVER_ERROR, "no answer\n")))
}

type HeadSender = Option<tokio::sync::oneshot::Sender<Answer>>;

/// Works in a thread that may block: sends the head of the answer, then its content piece by piece.
fn respond(
    shared: &Shared,
    reader: &Reader,
    path: &str,
    query: &str,
    conditions: &Conditions,
    head_only: bool,
    sender: &mut HeadSender,
) -> Result<(), ArchiveError> {
    let Some(name) = request::name_of(path) else {
        send(
            sender,
            text(StatusCode::BAD_REQUEST, "this path names nothing\n"),
        );
        return Ok(());
    };
    let entry = if name.is_empty() {
        None
    } else {
        reader.entry(&name)?
    };
    match entry {
        Some(entry) if entry.kind == Kind::File => {
            respond_file(shared, reader, &entry, conditions, head_only, sender)
        }
        _ => {
            let answer = match listing::page(reader, &name, path, query)? {
                listing::Page::Html(page) => {
                    shared.watch.done(1, page.len() as u64);
                    whole(StatusCode::OK, "text/html; charset=utf-8", page, head_only)
                }
                listing::Page::MovedTo(place) => moved(&place),
                listing::Page::Missing => text(StatusCode::NOT_FOUND, "there is no such entry\n"),
            };
            send(sender, answer);
            Ok(())
        }
    }
}

fn respond_file(
    shared: &Shared,
    reader: &Reader,
    entry: &Entry,
    conditions: &Conditions,
    head_only: bool,
    sender: &mut HeadSender,
) -> Result<(), ArchiveError> {
    let mut lookup = reader.lookup()?;
    let mut small = None;
    if entry.size <= SMALL_BYTES {
        let mut content = Vec::with_capacity(entry.size as usize);
        lookup.pour(entry, &mut |piece| {
            content.extend_from_slice(piece);
            Ok(())
        })?;
        small = Some(content);
    }
    let validators = Validators {
        tag: tag(&shared.archive, entry, small.as_deref()),
        modified: u64::try_from(entry.mtime)
            .ok()
            .map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds)),
    };
    let mut builder = Response::builder()
        .header(header::ETAG, &validators.tag)
        .header(header::ACCEPT_RANGES, "bytes")
        .header("X-Content-Type-Options", "nosniff");
    // HTTP's dates end with the year 9999.
    if let Some(modified) = validators
        .modified
        .filter(|_| entry.mtime < 253_402_300_800)
    {
        builder = builder.header(header::LAST_MODIFIED, httpdate::fmt_http_date(modified));
    }
    let (status, range) = match conditions.judge(&validators, entry.size, head_only) {
        Verdict::NotModified => return finish(sender, builder, StatusCode::NOT_MODIFIED),
        Verdict::Failed => return finish(sender, builder, StatusCode::PRECONDITION_FAILED),
        Verdict::Unsatisfiable => {
            let builder = builder.header(header::CONTENT_RANGE, format!("bytes */{}", entry.size));
            return finish(sender, builder, StatusCode::RANGE_NOT_SATISFIABLE);
        }
        Verdict::Whole => (
            StatusCode::OK,
            Range {
                begin: 0,
                end: entry.size,
            },
        ),
        Verdict::Part(range) => {
            let stated = format!("bytes {}-{}/{}", range.begin, range.end - 1, entry.size);
            builder = builder.header(header::CONTENT_RANGE, stated);
            (StatusCode::PARTIAL_CONTENT, range)
        }
    };
    let content_type = mime_guess::from_path(&entry.name).first_or_octet_stream();
    let length = range.end - range.begin;
    let builder = builder
        .status(status)
        .header(header::CONTENT_TYPE, content_type.as_ref())
        .header(header::CONTENT_LENGTH, length);
    if head_only {
        shared.watch.done(1, 0);
        return send_built(sender, builder.body(Pieces::none()));
    }
    shared.watch.done(1, length);
    if let Some(mut content) = small {
        // Both ends lie in content of at the most a megabyte.
        content.truncate(range.end as usize);
        let part = Bytes::from(content).slice(range.begin as usize..);
        return send_built(sender, builder.body(Pieces::whole(part)));
    }
    let (pieces, receiver) = mpsc::channel(WAITING_PIECES);
    send_built(sender, builder.body(Pieces::stream(receiver, length)))?;
    let poured = lookup.pour_range(entry, range.begin..range.end, &mut |piece| {
        hand_over(&pieces, Ok(Bytes::copy_from_slice(piece)))
    });
    if let Err(error) = poured {
        // The head is gone: breaking off is all that tells the client.
        let _ = hand_over(&pieces, Err(error));
    }
    Ok(())
}

/// Gives a piece to the connection, and waits while the client is slow, but not for ever.
fn hand_over(
    pieces: &mpsc::Sender<Result<Bytes, ArchiveError>>,
    piece: Result<Bytes, ArchiveError>,
) -> Result<(), ArchiveError> {
    let runtime = tokio::runtime::Handle::current();
    runtime
        .block_on(pieces.send_timeout(piece, PIECE_PATIENCE))
        .map_err(|_| ArchiveError::Interrupted)
}

/// What names this content and no other. Of small files it is a hash of the content, and so the same in
/// another archive; large ones are named by the archive's state and their row in it.
fn tag(archive: &Archive, entry: &Entry, content: Option<&[u8]>) -> String {
    let hash = match content {
        Some(content) => blake3::hash(content),
        None => {
            let mut hasher = blake3::Hasher::new();
            let metadata = archive.path().metadata().ok();
            let changed = metadata
                .as_ref()
                .and_then(|metadata| metadata.modified().ok());
            let changed = changed
                .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
                .unwrap_or_default();
            hasher.update(&changed.as_nanos().to_le_bytes());
            for number in [
                archive.bytes(),
                entry.row.cast_unsigned(),
                entry.size,
                entry.mtime.cast_unsigned(),
            ] {
                hasher.update(&number.to_le_bytes());
            }
            hasher.finalize()
        }
    };
    format!("\"{}\"", &hash.to_hex()[..32])
}

fn finish(
    sender: &mut HeadSender,
    builder: hyper::http::response::Builder,
    status: StatusCode,
) -> Result<(), ArchiveError> {
    send_built(sender, builder.status(status).body(Pieces::none()))
}

fn send_built(
    sender: &mut HeadSender,
    answer: Result<Answer, hyper::http::Error>,
) -> Result<(), ArchiveError> {
    let answer = answer.unwrap_or_else(|_| {
        text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "this cannot be said in HTTP\n",
        )
    });
    send(sender, answer);
    Ok(())
}

fn send(sender: &mut HeadSender, answer: Answer) {
    if let Some(sender) = sender.take() {
        // The client may have gone.
        let _ = sender.send(answer);
    }
}

fn failure(error: &ArchiveError) -> Answer {
    text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n"))
}

fn text(status: StatusCode, message: &str) -> Answer {
    whole(
        status,
        "text/plain; charset=utf-8",
        message.to_owned(),
        false,
    )
}

fn moved(place: &str) -> Answer {
    let mut answer = text(
        StatusCode::MOVED_PERMANENTLY,
        "a directory's address ends with a slash\n",
    );
    if let Ok(place) = HeaderValue::from_str(place) {
        answer.headers_mut().insert(header::LOCATION, place);
    }
    answer
}

fn whole(
    status: StatusCode,
    content_type: &'static str,
    content: String,
    head_only: bool,
) -> Answer {
    let length = content.len();
    let body = if head_only {
        Pieces::none()
    } else {
        Pieces::whole(Bytes::from(content))
    };
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
        .headers_mut()
        .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    // A page of names runs nothing, whatever the names are.
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
    answer
        .headers_mut()
        .insert(header::CONTENT_SECURITY_POLICY, policy);
    answer
}

/// The body of an answer: nothing, one piece, or pieces as they are read.
struct Pieces {
    whole: Option<Bytes>,
    stream: Option<mpsc::Receiver<Result<Bytes, ArchiveError>>>,
    left_bytes: u64,
}

impl Pieces {
    fn none() -> Self {
        Self {
            whole: None,
            stream: None,
            left_bytes: 0,
        }
    }

    fn whole(bytes: Bytes) -> Self {
        Self {
            left_bytes: bytes.len() as u64,
            whole: Some(bytes),
            stream: None,
        }
    }

    fn stream(receiver: mpsc::Receiver<Result<Bytes, ArchiveError>>, length: u64) -> Self {
        Self {
            whole: None,
            stream: Some(receiver),
            left_bytes: length,
        }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = ArchiveError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ArchiveError>>> {
        if let Some(bytes) = self.whole.take() {
            self.left_bytes = 0;
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        match std::task::ready!(stream.poll_recv(context)) {
            Some(Ok(bytes)) => {
                self.left_bytes = self.left_bytes.saturating_sub(bytes.len() as u64);
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left_bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left_bytes)
    }
}

//! A connection's bytes, whatever carries them: TCP, a Unix socket, or TLS over TCP.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// Where a connection's bytes come from and go to.
pub(crate) enum Stream {
    /// Plain TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// TLS over TCP.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Whether the peer has closed its side: nobody is there for a reply.
    pub(crate) fn is_deserted(&self) -> bool {
        let tcp = match self {
            Stream::Unix(stream) => return read_closed(stream.ready(Interest::READABLE)),
            Stream::Tcp(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        };
        read_closed(tcp.ready(Interest::READABLE))
    }

    /// Writes what the socket takes at once; none if that can't be told without waiting.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let written = match self {
            Stream::Tcp(stream) => stream.try_write(bytes),
            Stream::Unix(stream) => stream.try_write(bytes),
            Stream::Tls(_) => return Ok(None),
        };
        match written {
            Ok(written) => Ok(Some(written)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until a read may bring something, so that an idle connection needs no buffer. TLS can't tell: returns at once.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.readable().await,
            Stream::Unix(stream) => stream.readable().await,
            Stream::Tls(_) => Ok(()),
        }
    }
}

/// Whether what is known of a socket says that no more will come.
fn read_closed(ready: impl Future<Output = io::Result<Ready>>) -> bool {
    match pin!(ready).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(ready)) => ready.is_read_closed(),
        Poll::Ready(Err(_)) => true,
        Poll::Pending => false,
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

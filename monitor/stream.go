package monitor

import (
	"net"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
)

// Stream is the transport under a connection: bytes in order, both ways, on one scheduler. The engine of a scheduler
// makes Streams, and a filter such as TLS makes one over another. Programs use a listener.Conn instead. All methods belong
// to the scheduler's thread and none blocks.
//
// A Stream over another one that passes all bytes on unchanged and holds none back may have a method
//
//	Unwrap() Stream
//
// that returns the one below. A Conn then still finds its [CloseNotifier], [FileSender], [SharedSender] and [OutputLender] there.
type Stream interface {
	// Lend receives from 1 to most bytes and lends them until the turn ends. The memory never overlaps another loan of
	// the same turn. ErrWouldBlock means that nothing has arrived yet; io.EOF that the peer has sent everything, and
	// that nothing sent to it so far has failed.
	Lend(most int) ([]byte, error)
	// Receive receives into p, which must not be empty, and returns how many bytes. The errors are as for Lend.
	Receive(p []byte) (int, error)

	// Send takes all of head, and as much of p as can be sent at once or queued within high bytes in all. It returns
	// how much of p it took; that is sent without further calls. After an error, which may come from bytes that were
	// queued earlier, nothing was taken and nothing more will be.
	//
	// With nothing to send, even after CloseWrite, it tries once more to send queued bytes: kernels report room late
	// (Linux when a third of the send buffer is free, which may be a megabyte), and a caller may want to see how far a
	// slow peer is. It loses no wake-up, and does nothing when nothing is queued.
	Send(head, p []byte, high int) (int, error)
	// Queued returns how many bytes Send has taken and the kernel has not, and the error that Send would return now.
	Queued() (int, error)

	// AwaitInput keeps w, in place of an earlier one, and wakes it when Lend may no longer return ErrWouldBlock: at
	// once if that is so already. It also wakes w when sending has failed or the Stream is closed.
	AwaitInput(w act.Waker)
	// AwaitOutput keeps w, together with the Wakers of other tasks, and wakes it when at most low bytes are queued, and
	// when sending has failed or the Stream is closed. Tasks are woken in the order in which they began to wait. A
	// Stream may forget a Stale Waker, so that it keeps one for each waiting task and not one for each call.
	AwaitOutput(w act.Waker, low int)
	// Wake wakes all tasks that wait for the Stream, for a reason of the caller's, such as a deadline that has passed.
	Wake()

	// CloseWrite closes the sending side after the queued bytes; receiving goes on. Later Sends fail. A second
	// CloseWrite returns the outcome of the first.
	CloseWrite() error
	// Close closes the Stream and returns at once. Within linger, queued bytes are still sent, the sending side is
	// closed, and bytes of the peer are discarded until it closes too; for that long it keeps [act.Scheduler.Run] from
	// returning. (A plain close with unread input makes the kernel reset the connection and discard bytes that it has
	// not delivered yet: RFC 9112 section 9.6.)
	Close(linger time.Duration)
	// Abort closes the Stream at once and discards bytes that were not sent; the peer sees a reset.
	Abort()

	// LocalAddr returns the address of this end, or nil after Close or Abort, and when the kernel does not know it.
	LocalAddr() net.Addr
	// PeerAddr returns the address of the peer, or nil after Close or Abort, and when the kernel does not know it.
	PeerAddr() net.Addr
}

// CloseNotifier is a Stream that reports the end of the connection separately from its input, for listener.Conn.Ended.
type CloseNotifier interface {
	Stream
	// AwaitEnd reports whether the peer has closed its side (half; bytes sent before that may still be unread), and why
	// the Stream is broken, if it is: the error that Send would return without CloseWrite. It keeps w. AwaitEnd and
	// AwaitInput share one place: the later call replaces the Waker of the earlier one. AwaitEnd wakes w when the peer
	// closes its side, the Stream breaks, or the Stream is closed; never for bytes. After an error there is nothing
	// left to wait for, and w is not kept. Nothing is received.
	AwaitEnd(w act.Waker) (half bool, err error)
}

// IdleReporter is a Stream that knows since when it is idle, for listener.Conn.IdleSince. The Streams of the default
// engine and of TLS implement it.
type IdleReporter interface {
	Stream
	// IdleSince reports whether there is nothing to receive and neither side has ended, and since when no byte has gone
	// either way, to the millisecond on the scheduler's clock. Queued bytes do not count.
	IdleSince() (since time.Duration, idle bool)
}

// FileSender is a Stream that can send a file without reading it into memory, for listener.Conn.SendFile. A filter that
// changes the bytes is not a FileSender.
type FileSender interface {
	Stream
	// SendFile sends up to n > 0 bytes of f from offset on, and returns how many: at least one, or none and an error.
	//
	// ErrWouldBlock means that bytes are queued, which must not be overtaken, or that there is no room; AwaitOutput
	// with a low of 0 waits for both. errors.ErrUnsupported means that this file has to be read and given to Send,
	// io.ErrUnexpectedEOF that the file ends at or before offset. Any other error is either of the connection, and kept
	// like Send's errors, or an *fs.PathError of the file.
	SendFile(f *os.File, offset int64, n int) (int, error)
}

// SharedSender is a Stream that can queue bytes without a copy, for listener.Conn.PushShared. A filter that changes the
// bytes, such as TLS, is not a SharedSender.
type SharedSender interface {
	Stream
	// SendShared is Send of a p that must not be changed afterwards: queued bytes of it are referred to and not copied,
	// unless they are few.
	SendShared(head, p []byte, high int) (int, error)
}

// OutputLender is a Stream that can lend its sending side to another goroutine, which may then send without a turn of the
// scheduler. The http.Handlers of package nethttp send in this way.
type OutputLender interface {
	Stream
	// LendOutput lends the sending side. Until Return nothing else may be sent. It returns nil if bytes are queued, or
	// if nothing more can be sent.
	LendOutput() Output
}

// Output is the sending side of a Stream while it is lent. One goroutine at a time calls Send and SendFile, without a
// turn of the scheduler; Sent may be called on any goroutine. The other methods belong to the scheduler's thread.
// Closing the Stream ends the loan.
type Output interface {
	// Send sends head and then p, or as much of both as has room, in one system call. It does not wait, and returns how
	// many bytes it has taken. ErrWouldBlock means that there was no room for the rest. TLS may keep some of the taken
	// bytes: the next call sends them, even with empty arguments, and so does Return. net.ErrClosed means that the
	// Output was returned or the Stream closed. Any other error is one of the connection, and is final.
	Send(head, p []byte) (int, error)
	// SendFile sends up to n > 0 bytes of f from offset on, and returns how many. The errors are as for Send and [FileSender].
	SendFile(f *os.File, offset int64, n int) (int, error)
	// Sent returns how many bytes were sent since LendOutput. Any goroutine.
	Sent() uint64
	// Full reports, after ErrWouldBlock, whether the caller has to Await: no room has come since.
	Full() bool
	// Await keeps w and wakes it when there is room again.
	Await(w act.Waker)
	// Return gives the sending side back: the Output must not be used any more. It waits for a Send or SendFile that is
	// under way; a SendFile may wait for the disk.
	Return()
}

// As returns s as a T, or else the first T below Streams with a method Unwrap, and reports whether there is one. T is
// the type of a Stream, or an interface that some Streams implement. For a nil Stream it returns false.
func As[T any](s Stream) (T, bool) {
	for {
		if found, ok := s.(T); ok {
			return found, true
		}
		over, ok := s.(interface{ Unwrap() Stream })
		if !ok {
			var none T
			return none, false
		}
		s = over.Unwrap()
	}
}

package monitor

import (
	"net"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
)

// Stream is what lies under a connection: bytes in order, both ways, on one scheduler. An [Engine] makes Streams, and a
// filter such as TLS makes one over another. All methods belong to the scheduler's thread and none blocks.
//
// A Stream over another one that passes all bytes on unchanged and holds none back may have a method
//
//	Unwrap() Stream
//
// that returns the one below. A Conn then still finds its [CloseNotifier], [FileSender], [SharedSender] and [OutputLender] there.
type Stream interface {
	// Lend receives, and lends what came: from 1 to most bytes, valid until the turn ends and never overlapping another
	// loan of the same turn. ErrWouldBlock: nothing is there yet. io.EOF: the peer has sent everything, and nothing that
	// was sent to it so far has failed.
	Lend(most int) ([]byte, error)
	// Receive is Lend into p, which must not be empty.
	Receive(p []byte) (int, error)

	// Send takes all of head, and of p what goes out at once and as much more as may be queued before more than high
	// bytes are. It returns how much of p it took, which is sent without further calls. After an error, which may come
	// from bytes that were queued earlier, nothing was taken and nothing more will be.
	//
	// With nothing to send, also after CloseWrite, it tries once more to send what is queued: systems report room late
	// (Linux when a third of the send buffer is free, which may be a megabyte), and a caller may want to see how far a
	// slow peer is. It loses no wake-up, and does nothing when nothing is queued.
	Send(head, p []byte, high int) (int, error)
	// Queued returns how many bytes were taken and not yet sent. The error is the one that Send would return.
	Queued() (int, error)

	// AwaitInput keeps w, in place of an earlier one, and wakes it when Lend may do better than ErrWouldBlock: at once if
	// it may already, and also when sending has failed or the Stream is given up.
	AwaitInput(w act.Waker)
	// AwaitOutput keeps w, beside those of other tasks, and wakes it when at most low bytes are queued, and also when
	// sending has failed or the Stream is given up. Those that waited first are woken first. A Stream may forget a Waker
	// that is Stale: so it keeps one for each task that waits, and not one for each call.
	AwaitOutput(w act.Waker, low int)
	// Wake wakes all of them for a reason of the caller's, such as a deadline.
	Wake()

	// CloseWrite ends this side's bytes after those that are queued; receiving goes on. Later Sends fail. A second
	// CloseWrite returns the outcome of the first.
	CloseWrite() error
	// Close gives the Stream up. What is queued is still sent, the write side is closed, and what the peer sends is
	// discarded until it closes too, all without the caller and within linger; for that long it keeps
	// [act.Scheduler.Run] from returning. (A plain close with unread input makes the kernel reset the connection and
	// destroy what it had not delivered yet: RFC 9112 section 9.6.)
	Close(linger time.Duration)
	// Abort gives the Stream up and throws away what was not sent; the peer sees a reset.
	Abort()

	// LocalAddr and PeerAddr return nil after Close or Abort, and when the system does not know.
	LocalAddr() net.Addr
	PeerAddr() net.Addr
}

// CloseNotifier is a Stream that reports the end of the connection apart from its input.
type CloseNotifier interface {
	Stream
	// AwaitEnd reports whether the peer has closed its side (half; bytes sent before that may still be unread), and why
	// the Stream is broken, if it is: the error that Send would return without CloseWrite. It keeps w. AwaitEnd
	// and AwaitInput share one place: the later call replaces the Waker of the earlier one. AwaitEnd wakes w when the
	// peer closes its side or the Stream breaks, and when the Stream is given up; never for bytes. After an error there
	// is nothing left to wait for, and w is not kept. Nothing is received.
	AwaitEnd(w act.Waker) (half bool, err error)
}

// IdleReporter is a Stream that knows since when it is idle. Those of the readiness engine and of TLS do.
type IdleReporter interface {
	Stream
	// IdleSince reports whether nothing is there to be received and neither side has ended, and since when no byte has gone
	// either way, to the millisecond on the scheduler's clock. What is queued does not count.
	IdleSince() (since time.Duration, idle bool)
}

// FileSender is a Stream that can send the bytes of a file without their passing through memory. A filter that has to
// see the bytes that it sends is not a FileSender.
type FileSender interface {
	Stream
	// SendFile sends up to n > 0 bytes of f from offset on, and returns how many: at least one without an error, and
	// none with one.
	//
	// ErrWouldBlock: something is queued, which must not be overtaken, or there is no room; AwaitOutput with a low of 0
	// waits for both. errors.ErrUnsupported: this file has to be read and given to Send. io.ErrUnexpectedEOF: the file
	// does not reach beyond offset. Any other error is either the connection's, and kept as Send's are, or an
	// *fs.PathError, after which only the file is to blame.
	SendFile(f *os.File, offset int64, n int) (int, error)
}

// SharedSender is a Stream that can queue bytes without a copy. A filter that sends other bytes, such as TLS, is none.
type SharedSender interface {
	Stream
	// SendShared is Send of a p that nobody changes any more: what is queued of it is referred to and not copied, unless it
	// is short.
	SendShared(head, p []byte, high int) (int, error)
}

// OutputLender is a Stream that lets a goroutine send for it.
type OutputLender interface {
	Stream
	// LendOutput lends the sending side. Until Return nothing else may be sent. It returns nil if something is queued, or if
	// nothing can be sent any more.
	LendOutput() Output
}

// Output is the sending side of a Stream while it is lent. One goroutine at a time calls Send and SendFile, without a turn of
// the scheduler; Sent may be called on any. The other methods belong to the scheduler's thread. A Stream that is closed ends
// the loan.
type Output interface {
	// Send sends some of head and then p in one call of the system, and does not wait. ErrWouldBlock: no more than the
	// returned number of bytes had room. TLS may hold some of these: they are sent by the next call, which may have nothing
	// else to send, or by Return. net.ErrClosed: the loan has ended. Any other error is the connection's, and stays.
	Send(head, p []byte) (int, error)
	// SendFile sends up to n > 0 bytes of f. The errors are those of Send and of [FileSender].
	SendFile(f *os.File, offset int64, n int) (int, error)
	// Sent returns how many bytes were sent.
	Sent() uint64
	// Full reports whether there has been no room since the latest call. Await then wakes w when there is some.
	Full() bool
	Await(w act.Waker)
	// Return ends the loan. It waits for a call that is under way: that of SendFile may wait for the disk.
	Return()
}

// As returns the T that s is, or that it finds below Streams with a method Unwrap. T is the type of a Stream, or an interface that
// some of them have. A nil Stream is none.
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

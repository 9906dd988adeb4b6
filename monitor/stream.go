package monitor

import (
	"net"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
)

// Stream is the seam under a connection: bytes in order, both ways, on one scheduler. The readiness
// engine is one, a filter over another Stream (TLS) is one, an engine of completions can be. Nothing
// above knows which. All methods belong to the scheduler's thread and none blocks.
type Stream interface {
	// Lend receives and lends what came: at least a byte and at most so many, valid until the turn ends and
	// never overlapping another loan of the same turn. ErrWouldBlock: nothing is there yet; io.EOF: nothing
	// will be, and everything sent so far has not failed.
	Lend(most int) ([]byte, error)
	// Receive is Lend into the caller's own p, which must not be empty.
	Receive(p []byte) (int, error)

	// Send takes head whole, and of p what goes out at once and as much more as may be queued before more
	// than high bytes are. It returns how much of p was taken. What is taken is sent without further calls.
	// An error, also a late one of what was queued, says that nothing was taken and nothing more will be.
	//
	// With nothing to send, also after CloseWrite, it tries once more to send what is queued, for who wants to
	// see how far a slow peer is: systems tell of room late (Linux when a third of the send buffer is free, which
	// may be a megabyte). It loses no wake-up, and does nothing when nothing is queued.
	Send(head, p []byte, high int) (int, error)
	// Queued is how many bytes were taken and not yet sent. The error is the one that Send would return.
	Queued() (int, error)

	// AwaitInput keeps w, in place of an earlier one, and wakes it when Lend may do better than
	// ErrWouldBlock: at once if it may already, and also when sending has failed or the Stream is given up.
	AwaitInput(w act.Waker)
	// AwaitOutput keeps w, in place of an earlier one, and wakes it when at most low bytes are queued, and
	// also when sending has failed or the Stream is given up.
	AwaitOutput(w act.Waker, low int)
	// Wake wakes both of them for a reason of the caller's, such as a deadline.
	Wake()

	// CloseWrite ends this side's bytes after those queued; receiving goes on. Later Sends fail. A second
	// CloseWrite says what has become of the first.
	CloseWrite() error
	// Close gives the Stream up. What is queued is still sent, the write side is closed, what the peer still
	// sends is discarded until it closes too, all without the caller and within linger; it holds Run for
	// that long. (A plain close with unread input makes the kernel reset the connection and destroy what it
	// had not delivered yet: RFC 9112 section 9.6.)
	Close(linger time.Duration)
	// Abort gives the Stream up and throws away what was not sent; the peer sees a reset.
	Abort()

	LocalAddr() net.Addr
	PeerAddr() net.Addr
}

// Ender is a Stream that tells of its end apart from its input.
type Ender interface {
	Stream
	// AwaitEnd says whether the peer has closed its side (half; bytes of it may still be unread before that),
	// and why the Stream is broken, if it is: the error that Send would return but for CloseWrite. It keeps w, in
	// place of an earlier one and of that of AwaitInput, which in turn replaces it, and wakes it when one of the
	// two becomes true that was not, and when the Stream is given up; never for bytes. With an error nothing is
	// left to wait for, and w is not kept. Nothing is received.
	AwaitEnd(w act.Waker) (half bool, err error)
}

// FileSender is a Stream that has a shorter way for the bytes of a file than through memory. Not every Stream
// can be one: a filter has to see what it sends.
type FileSender interface {
	Stream
	// SendFile sends up to n bytes of f from offset on, n being more than 0, and returns how many: at least one
	// without an error, and none with one. ErrWouldBlock: something is queued, which must not be overtaken, or
	// there is no room; AwaitOutput with a low of 0 then waits for both. errors.ErrUnsupported: this file has to
	// be read and given to Send. io.ErrUnexpectedEOF: the file does not reach beyond offset. Any other error is
	// either the connection's, and kept as Send's are, or an *fs.PathError, after which only the file is to blame.
	SendFile(f *os.File, offset int64, n int) (int, error)
}

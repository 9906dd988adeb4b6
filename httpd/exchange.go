package httpd

import (
	"math"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
)

// exchange is the transport under a Request, its Body and its Response: one request with its answer, on a connection of HTTP/1
// ([http1Exchange]) or on a [stream] of HTTP/2. A Response gathers, counts and decides what has a length. The exchange
// turns that into bytes of its protocol, and keeps the bytes that do not fit yet.
//
// Beside these methods an implementation
//
//   - fills in the Request before the handler is called: began, version and head, and the length of its Body. It adds the
//     trailers to the Body before peek returns io.EOF;
//   - calls the handler from the action of the connection or of the stream, and gives turns to the handler's action. Meanwhile
//     it looks at the Response's last and timeout, and at complete, which says that the handler need not go on. Then it calls
//     Response.finish;
//   - says by Response.fail why nothing more can be sent;
//   - calls Server.OnResponse at the end, and leaves the progress of the Response at over.
//
// Only some exchanges can send files, lend their sending side, or leave their connection to another protocol: the others
// return errors.ErrUnsupported and ErrNoUpgrade.
type exchange interface {
	link() *link // of its connection

	// The request: see Request.Ended and Body.
	ended(t *act.Task) bool
	peek() ([]byte, error)
	discard(n int)
	read(p []byte) (int, error)
	setTimeout(d time.Duration)

	// The answer, in this order.
	inform(status int, fields []Field) // an interim response, if the client knows any
	begin(length int64)                // the head. length is that of the content, or -1 if it is unknown
	send(p []byte)                     // content; what there is no room for is kept
	offer(p []byte) int                // content, of which it sends as much as there is room for
	sendFile(f *os.File, offset, n int64) (int64, error)
	lend() (*Sender, error)
	end() // what follows the content, after all of that

	room() int    // how much content is sent for certain, and not kept; unlimited while the handler is called
	ready() error // why there is no room: an act.Blocked, or why there never will be

	// leave returns the status that gives the connection to the protocol, or why it cannot be given to it, or to any if that
	// is "".
	leave(protocol string) (status int, err error)
}

// unlimited is the room for writes before a handler returns: it cannot wait.
const unlimited = math.MaxInt

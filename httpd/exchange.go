package httpd

import (
	"iter"
	"net"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// exchange is what a Request, its Body and its Response stand on: one request with its response, whatever carries it.
// With HTTP/1 ([http1Exchange]) a connection has one exchange after the other; with HTTP/2 it would have many at a time.
//
// A Response gathers, counts and decides what has a length. The exchange turns that into bytes of its protocol, and keeps
// those that the connection has no room for. If it can send no more, it says why to Response.fail.
type exchange interface {
	scheduler() *act.Scheduler
	proto() string
	conn() *listener.Conn
	remoteAddr() net.Addr
	began() time.Duration   // see Request.Began
	ended(t *act.Task) bool // see Request.Ended

	// The content of the request: see Body.
	peek() ([]byte, error)
	discard(n int)
	waitForBody(d time.Duration) // see Body.SetTimeout
	read(p []byte) (int, error)
	trailers() iter.Seq2[[]byte, []byte]

	inform(status int, fields []Field) // sends an interim response, if the client knows any
	begin(length int64)                // sends the head of the response. length is that of the content, or -1 if it is unknown
	send(p []byte)                     // content; what there is no room for is kept
	offer(p []byte) int                // content, of which it sends as much as there is room for
	sendFile(f *os.File, offset, n int64) (int64, error)
	lend() (*Sender, error)
	end()         // sends what follows the content, behind all of that
	room() int    // how many bytes of content are sent for certain, and not kept
	ready() error // why there is no room: an act.Blocked, or why there never will be

	// upgrades returns nil if SwitchProtocols may switch to the protocol.
	upgrades(protocol string) error
}

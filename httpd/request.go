package httpd

import (
	"iter"
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/route"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/listener"
)

// Request is what a client asks for. The bytes that its methods return are lent until the turn ends; an action may call
// the methods again in each of its turns.
type Request struct {
	// Body is the content of the request. Without content its Peek returns io.EOF.
	Body Body

	head   *syntax.Head // whose text is lent by the connection, or kept
	memory []byte       // for a text that is kept
	values route.Values
	asked
}

// asked is the part of a Request that is new each time.
type asked struct {
	began   time.Duration // 0: not yet
	version version
	kept    bool // the text of the head is
}

// version is a version of HTTP.
type version uint8

const (
	http10 version = iota
	http11
	http20
)

func (r *Request) reset() {
	r.Body.length, r.Body.trailers, r.asked = 0, nil, asked{}
	r.values.Reset()
	if cap(r.memory) > gathered {
		r.memory = nil
	}
}

// Method returns the method, such as "GET", lent until the turn ends. It is case-sensitive (RFC 9110 9.1).
func (r *Request) Method() []byte { return r.head.Method.Of(r.head.Text) }

// Target returns the request target as it came, lent until the turn ends: printable ASCII without space, ", <, > and #, and
// bytes above 0x7F. The latter need not be UTF-8, and may contain escape sequences of a terminal: a log quotes them.
func (r *Request) Target() []byte { return r.head.Target.Of(r.head.Text) }

// Path returns the path of the target as it came, with its escapes, lent until the turn ends. It begins with "/", or it is "*"
// (with OPTIONS only). A target without a path has "/".
func (r *Request) Path() []byte {
	if p := r.head.Path; p.From < p.To {
		return p.Of(r.head.Text)
	}
	return slash // of "http://host"
}

var slash = []byte{'/'}

// Query returns the query of the target, after the first "?", as it came, with its escapes, lent until the turn ends. It is
// empty if there is none.
func (r *Request) Query() []byte { return r.head.Query.Of(r.head.Text) }

// Host returns the host that the request is for, "host" or "host:port": the authority of an absolute target, otherwise
// the Host field. It is lent until the turn ends. It may be empty. In HTTP/1.0 it may be missing, and then it is nil.
func (r *Request) Host() []byte {
	if r.head.Authority.To == 0 {
		return nil
	}
	return r.head.Authority.Of(r.head.Text)
}

// Proto returns the version of HTTP that the request is served with: "HTTP/1.0"; "HTTP/1.1", even for higher minor
// versions; or "HTTP/2.0".
func (r *Request) Proto() string { return [...]string{"HTTP/1.0", "HTTP/1.1", "HTTP/2.0"}[r.version] }

// Header returns the value of the first header field with this name, without regard to case, or nil if there is none. It is
// lent until the turn ends.
func (r *Request) Header(name string) []byte { return syntax.Get(r.head.Fields, r.head.Text, name) }

// Values returns the values of all header fields with this name, without regard to case, in the order in which they came.
// They are lent until the turn ends.
func (r *Request) Values(name string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for n, v := range r.Fields() {
			if syntax.EqualFold(n, name) && !yield(v) {
				return
			}
		}
	}
}

// Fields returns the names and values of all header fields, in the order in which they came. They are lent until the turn ends.
func (r *Request) Fields() iter.Seq2[[]byte, []byte] {
	return syntax.Each(r.head.Fields, r.head.Text)
}

// RemoteAddr returns the address of the client, or one of network "unknown" if the kernel no longer knows it. It costs a
// system call, the first time on a connection.
func (r *Request) RemoteAddr() net.Addr {
	l := r.Body.x.link()
	if l.peer == nil {
		l.peer = l.conn.RemoteAddr()
	}
	if l.peer == nil {
		return unknown{}
	}
	return l.peer
}

// Upgrades reports whether the client asks to switch to a protocol, such as "websocket": see Response.SwitchProtocols.
func (r *Request) Upgrades(protocol string) bool {
	_, err := r.Body.x.leave(protocol)
	return err != ErrNoUpgrade
}

// Began returns when the first byte of the request was found, on the clock of its scheduler: see act.Scheduler.Now. For a
// pipelined request it returns when the request before it was over.
func (r *Request) Began() time.Duration { return r.began }

// Conn returns the connection that the request came on, to inspect what carries it: secure.State returns what TLS
// has negotiated. It must not be read, written or closed.
func (r *Request) Conn() *listener.Conn { return r.Body.x.link().conn }

// unknown is the address of a client that has gone.
type unknown struct{}

func (unknown) Network() string { return "unknown" }
func (unknown) String() string  { return "unknown" }

// Ended reports whether the client has closed its side of the connection: it will send nothing more, but it may still
// read. Its requests are answered, over HTTP/2 as well, where net/http and nginx cancel them. Otherwise t, the task of the
// handler's action, gets a turn when the client does. An action that streams to clients that only listen calls Ended in each
// turn, before Body.Peek if it waits for the body as well. The action of a client that has reset the connection is closed,
// without a call of Ended.
func (r *Request) Ended(t *act.Task) bool { return r.Body.x.ended(t) }

// Scheduler returns the scheduler on which the request is handled. A handler spawns tasks there, and reads the clock.
func (r *Request) Scheduler() *act.Scheduler { return r.Conn().Scheduler() }

// keep copies the head, which the connection has lent for this turn.
func (r *Request) keep() {
	r.kept = true
	r.memory = append(r.memory[:0], r.head.Text...)
	r.head.Text = r.memory
}

package httpd

import (
	"bytes"
	"iter"
	"net"

	"github.com/daimon-go/daimon/act"
)

// Request is what a client asks for. What its methods lend is valid until the turn ends; where a handler returns an
// action, they may be called again in each of its turns.
type Request struct {
	// Body is the content that comes with the request.
	Body Body

	head       head
	octets     []byte // the head's: the connection's loan, or kept
	kept       bool
	authority  []byte
	path       span
	query      span
	persistent bool
	pattern    string // of the Mux
	values     values
}

func (r *Request) reset() {
	r.head.reset()
	r.octets, r.kept, r.authority, r.path, r.query, r.pattern = nil, false, nil, span{}, span{}, ""
	r.values.names = nil
	r.Body.reset()
}

// Method is the method, to be compared with regard to case (RFC 9110 9.1).
func (r *Request) Method() []byte { return r.head.method.of(r.octets) }

// Target is the request target as it came.
func (r *Request) Target() []byte { return r.head.target.of(r.octets) }

// Path is the path of the target as it came, with its escapes: it begins with "/", or it is "*" (OPTIONS only).
func (r *Request) Path() []byte {
	if r.path.from == r.path.to {
		return slash // of "http://host"
	}
	return r.path.of(r.octets)
}

var slash = []byte{'/'}

// Query is what comes behind the target's first "?", as it came.
func (r *Request) Query() []byte { return r.query.of(r.octets) }

// Host is whom the client wants to speak to, "host" or "host:port": the authority of an absolute target, otherwise
// the Host field. Only in HTTP/1.0 may it be missing; it may be empty.
func (r *Request) Host() []byte { return r.authority }

// Proto returns the version of HTTP that the request is served with: "HTTP/1.0", or "HTTP/1.1" also for higher minor
// versions.
func (r *Request) Proto() string {
	if r.head.minor == 0 {
		return "HTTP/1.0"
	}
	return "HTTP/1.1"
}

// Header is the value of the first field with this name, without regard to case; nil if there is none.
func (r *Request) Header(name string) []byte {
	for i := range r.head.fields {
		if f := &r.head.fields[i]; equalFold(f.name.of(r.octets), name) {
			return f.value.of(r.octets)
		}
	}
	return nil
}

// Values are the values of all fields with this name, in order.
func (r *Request) Values(name string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for n, v := range r.Fields() {
			if equalFold(n, name) && !yield(v) {
				return
			}
		}
	}
}

// Fields are the names and values of all fields, in order.
func (r *Request) Fields() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := range r.head.fields {
			f := &r.head.fields[i]
			if !yield(f.name.of(r.octets), f.value.of(r.octets)) {
				return
			}
		}
	}
}

// RemoteAddr is the address of the client, or one of network "unknown" when the system no longer knows. It costs a system
// call.
func (r *Request) RemoteAddr() net.Addr {
	if a := r.Body.e.x.conn.RemoteAddr(); a != nil {
		return a
	}
	return unknown{}
}

// unknown is the address of a client that has gone.
type unknown struct{}

func (unknown) Network() string { return "unknown" }
func (unknown) String() string  { return "unknown" }

// Ended tells whether the client has closed its side of the connection: it will send nothing more, but it may still
// read. If it has not, t, the task of the handler's action, is given a turn when it does. Who streams to clients that
// only listen asks in each turn. It must be asked before Body.Peek in a turn that waits for the body as well. A client
// that has reset the connection need not be asked for: the action is closed then.
func (r *Request) Ended(t *act.Task) bool {
	half, err := r.Body.e.x.conn.Ended(t)
	return half || err != nil
}

// Scheduler is where the request is handled.
func (r *Request) Scheduler() *act.Scheduler { return r.Body.e.x.home.s }

// understand is called when the head has ended; octets begin with it.
func (r *Request) understand() error {
	h, octets := &r.head, r.octets[:r.head.length:r.head.length]
	r.octets = octets
	framing, err := h.framing(octets)
	if err != nil {
		return err
	}
	if r.authority, err = h.place(octets); err != nil {
		return err
	}
	r.persistent = h.minor > 0
	if h.special[connection] > 0 {
		r.persistent = h.persists(octets)
	}
	r.split()
	return r.Body.begin(h, octets, framing)
}

// split finds path and query in the target.
func (r *Request) split() {
	from, to := r.head.target.from, r.head.target.to
	target := r.head.target.of(r.octets)
	if target[0] != '/' && target[0] != '*' { // absolute-form: the path comes behind the authority
		skip := bytes.Index(target, []byte("://")) + len("://")
		if i := bytes.IndexAny(target[skip:], "/?"); i >= 0 {
			skip += i
		} else {
			skip = len(target)
		}
		from += uint32(skip)
		target = target[skip:]
	}
	r.path, r.query = span{from, to}, span{to, to}
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		r.path.to = from + uint32(i)
		r.query.from = r.path.to + 1
	}
}

// keep makes the head the exchange's own, for the turns to come, if it has ended.
func (r *Request) keep() {
	if r.kept || r.head.length == 0 {
		return
	}
	r.kept = true
	r.octets = bytes.Clone(r.octets)
	r.authority, _ = r.head.place(r.octets) // it was valid before
	r.values.moved(r.Path())
}

// persists says whether the connection goes on after this request (RFC 9112 9.3): "close" wins.
func (h *head) persists(octets []byte) bool {
	closes, keeps := false, h.minor > 0
	h.each(octets, connection, func(value []byte) bool {
		for rest, more := value, true; more; {
			var option []byte
			option, rest, more = bytes.Cut(rest, []byte{','})
			option = bytes.Trim(option, white)
			closes = closes || equalFold(option, "close")
			keeps = keeps || equalFold(option, "keep-alive")
		}
		return true
	})
	return keeps && !closes
}

package secure

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// ErrTooMany is the failure of a handshake that was given up for a newer one: see [Handshakes.Waiting].
var ErrTooMany = errors.New("secure: too many handshakes are under way")

// errNotTLS is the failure of a server's handshake with a peer whose first bytes are not of TLS. One that speaks HTTP gets
// a response of status 400 that says so.
var errNotTLS = errors.New("secure: the peer does not speak TLS")

// Server returns a filter for accepted connections. The config is used as it is, by all connections, so that sessions are
// resumed on any scheduler; it must have a certificate (Certificates, GetCertificate or GetConfigForClient), and may be
// shared with other servers. Its functions are called on other goroutines, several at the same time. A nil h stands for
// bounds that all such filters share: see Handshakes.
//
// FilterTimeout of the service bounds the time of the handshake: 10 s by default. It fails with an error of crypto/tls or of the
// connection, with [ErrTooMany], or because the peer does not speak TLS. Then the peer is sent an alert, and the service logs the
// error at debug level. If the handshake is given up, the context of its ClientHelloInfo ends. A panic in a function of the
// config ends this connection alone, and is an error in the log.
func Server(config *tls.Config, h *Handshakes) listener.Filter {
	if config == nil || len(config.Certificates) == 0 && config.GetCertificate == nil && config.GetConfigForClient == nil {
		panic("secure: Server without a certificate")
	}
	return filter(h, config, true)
}

// Client returns a filter for connections that were dialled: see [listener.Connect]. The config must name the server
// (ServerName), unless InsecureSkipVerify is set, and must not allow Renegotiation. Otherwise config and h are as
// with Server. With TLS 1.3 sessions come after the handshake: Put of the config's ClientSessionCache is called on
// the scheduler's thread, and must not block.
func Client(config *tls.Config, h *Handshakes) listener.Filter {
	if config == nil || config.ServerName == "" && !config.InsecureSkipVerify {
		panic("secure: Client without a ServerName")
	}
	if config.Renegotiation != tls.RenegotiateNever {
		panic("secure: Client with Renegotiation, which would wait in the middle of a Read")
	}
	return filter(h, config, false)
}

func filter(h *Handshakes, config *tls.Config, server bool) listener.Filter {
	if h == nil {
		h = &shared
	}
	return func(c *listener.Conn) act.Action {
		x := &handshake{conn: c, of: h, server: server, stream: &stream{}, local: c.LocalAddr(), peer: c.RemoteAddr()}
		x.stream.shake = x
		x.ctx, x.cancel = context.WithCancel(context.Background())
		x.driver = h.driver(x)
		if server {
			x.stream.secret = tls.Server((*wire)(x.stream), config)
		} else {
			x.stream.secret = tls.Client((*wire)(x.stream), config)
		}
		return x
	}
}

// handshake is the action of a filter. crypto/tls makes the handshake in steps: a step ends where it reads, and nothing
// has arrived. A driver makes the steps, and in between the action carries bytes.
type handshake struct {
	conn   *listener.Conn
	stream *stream
	of     *Handshakes
	server bool
	driver driver
	pause  func() error // of the driver: called in a step, it ends the step, and returns in the next one

	queue *queue        // of a server, once it has had a turn
	place *list.Element // in queue; nil while it computes
	waker act.Waker

	begun    bool // the first step was made
	stepping bool
	over     bool // with err
	err      error
	finished error // why nothing more comes
	crowded  bool  // given up for another one
	left     bool  // it does not count any more
	held     listener.Meter

	ctx    context.Context // of the functions of the config
	cancel context.CancelFunc

	local, peer net.Addr
}

func (x *handshake) Act(t *act.Task) act.Directive {
	d := x.goOn(t)
	if !x.stepping {
		x.count(d)
	}
	return d
}

// underWay is about how much memory a handshake takes that has begun, beside its input.
const underWay = 24 << 10

// count counts its memory.
func (x *handshake) count(d act.Directive) {
	n := 0
	if !d.Finished() && (x.begun || x.stream.in != nil) {
		n = underWay + cap(x.stream.in)
	}
	x.held.Set(x.conn, n)
}

func (x *handshake) goOn(t *act.Task) act.Directive {
	x.waker = t.Waker()
	if x.server && x.queue == nil {
		x.enter(t.Scheduler())
	}
	for {
		switch {
		case x.crowded:
			_ = x.conn.Internals().CloseWithin(0) // an error means that it has gone; it is told nothing, and not waited for
			return t.Fail(ErrTooMany)
		case x.stepping:
			if d := x.driver.step(t); d != act.Done {
				return d
			}
			x.wait()
			if x.stepping = false; !x.over {
				x.stream.records.whole, x.stream.records.foreign = 0, false // the step has seen them
			}
		case len(x.stream.out) > 0:
			n, err := x.conn.Write(x.stream.out)
			x.stream.out = x.stream.out[n:]
			switch {
			case err == nil:
			case x.err != nil:
				x.stream.out = nil // the alert is lost
			default:
				return listener.Next(t, err)
			}
		case x.over && x.err != nil:
			x.note(x.err)
			return t.Fail(x.err)
		case x.over:
			return x.wrap(t)
		case x.ready():
			x.begun, x.stepping = true, true
			x.compute()
		default:
			if d := x.receive(t); d != act.Yield {
				return d
			}
		}
	}
}

// ready reports whether a step can get anywhere. A record that has not arrived in whole costs no step.
func (x *handshake) ready() bool {
	r := &x.stream.records
	return !x.begun && !x.server || r.whole > 0 || r.spoiled() || x.finished != nil
}

// receive takes what has arrived.
func (x *handshake) receive(t *act.Task) act.Directive {
	in, err := x.conn.Peek(1)
	switch _, blocked := err.(act.Blocked); {
	case blocked:
		return listener.Next(t, err)
	case err != nil && !x.begun:
		return t.Fail(err) // the peer has sent nothing
	case err != nil:
		x.finished = err
	case x.Silent() && in[0] != handshakeRecord:
		x.refuse(in[0])
	default:
		x.stream.in = append(x.stream.in, in...)
		x.stream.records.pass(in)
		x.conn.Discard(len(in))
	}
	return act.Yield
}

// handshakeRecord is the type of the first record (RFC 8446, section 5.1).
const handshakeRecord = 22

// notTLS is the answer to a peer that speaks HTTP.
const notTLS = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 57\r\n\r\n" +
	"This port speaks TLS: use https:// in place of http://.\r\n"

// refuse turns away a peer that does not speak TLS. The methods of HTTP begin with a capital letter.
func (x *handshake) refuse(first byte) {
	if 'A' <= first && first <= 'Z' {
		_, _ = x.conn.WriteString(notTLS) // a fresh connection has room
	}
	x.over, x.err = true, errNotTLS
}

// Silent reports whether the client has sent nothing yet: then a shutdown ends the handshake, see [listener.Filter].
func (x *handshake) Silent() bool { return x.server && !x.begun && x.stream.in == nil }

// IdleSince lets a service at MaxConns give up a handshake whose peer is silent.
func (x *handshake) IdleSince() (since time.Duration, idle bool) {
	if x.stepping {
		return 0, false
	}
	return x.conn.IdleSince()
}

// wrap puts TLS under the connection.
func (x *handshake) wrap(t *act.Task) act.Directive {
	err := x.conn.Wrap(func(below monitor.Stream) monitor.Stream {
		x.stream.over(below, x.conn)
		return x.stream
	})
	if err != nil {
		return t.Fail(err)
	}
	return act.Done
}

// run makes the handshake, in the steps of the driver.
func (x *handshake) run() {
	x.err = x.stream.secret.HandshakeContext(x.ctx)
	x.over = true
}

// await is called in a step when nothing is left to read.
func (x *handshake) await() error {
	if x.finished != nil {
		return x.finished
	}
	return x.pause()
}

// Close gives the handshake up, if it is not over.
func (x *handshake) Close() error {
	x.leave()
	if x.stepping || !x.over { // a step under way may be writing over
		_ = x.conn.Internals().CloseWithin(0)
	}
	err := x.driver.Close()
	x.cancel() // after that: what is stopped need not be told
	return err
}

func (x *handshake) Describe(d *act.Description) {
	if x.stepping {
		x.driver.Describe(d)
	} else {
		d.Of(x.conn)
	}
}

func (x *handshake) String() string { return "TLS handshake" }

package secure

import (
	"crypto/tls"
	"errors"
	"io"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// State returns what the TLS connection that carries c has negotiated: version, cipher suite, server name, application
// protocol, the peer's certificates. It returns false if c is not carried by TLS, and after Close. It allocates.
func State(c *listener.Conn) (tls.ConnectionState, bool) {
	s, ok := listener.As[*stream](c)
	if !ok {
		return tls.ConnectionState{}, false
	}
	return s.secret.ConnectionState(), true
}

const (
	// part is how much plaintext is encrypted before it is sent: its records fit into one packet of the loopback device, and a
	// fourth one would begin another.
	part = 48 << 10
	// ahead is how many bytes may be queued beyond the high mark before nothing is decrypted any more. What is written to
	// the Stream takes less, so only the answers of crypto/tls itself get there.
	ahead = 16 << 10
)

// stream is TLS over another Stream. Its tls.Conn reads and writes through the wire, which never blocks: Read returns
// errNotYet, after which crypto/tls goes on where it was, and Write takes everything. So a stream decides before it calls
// crypto/tls whether there is room.
type stream struct {
	monitor.Stream // below; nil during the handshake
	secret         *tls.Conn
	cache          *cache     // nil during the handshake
	shake          *handshake // nil after it

	in      []byte  // received and not yet read by secret
	out     []byte  // written by secret and not yet sent; nil at rest
	lent    *output // nil: only the scheduler's thread sends
	records records
	conn    *listener.Conn
	held    listener.Meter
	high    int   // Limits.High
	err     error // of TLS: nothing can be read or sent any more
	broken  error // of the Stream below, as it was received

	finished bool // the peer sends nothing more
	notified bool // close_notify was sent
}

// cache is what all connections of a scheduler share.
type cache struct {
	s         *act.Scheduler
	loans     budget.Loans
	simulated bool   // the world has no goroutines: see package sim
	out       []byte // memory for the next output: what a turn gathers and a part, with what TLS adds
}

var caches = act.NewLocal(func(s *act.Scheduler) *cache {
	_, simulated := s.Internals().Reserve(1).(interface{ Wait(until func() bool) }) // as package sim has it, for want of goroutines
	return &cache{s: s, simulated: simulated}
})

// errWriteClosed is the error of a Send after CloseWrite. It wraps nothing: it is a bug of the caller.
var errWriteClosed = errors.New("secure: the write side was closed")

// NegotiatedProtocol returns what was agreed on by ALPN, or "".
func (s *stream) NegotiatedProtocol() string { return s.secret.ConnectionState().NegotiatedProtocol }

// Taken reports whether the kernel has ever taken all that was queued.
func (s *stream) Taken() bool {
	below, ok := monitor.As[budget.Holder](s.Stream)
	return ok && below.Taken()
}

// over puts s on the Stream below, after the handshake.
func (s *stream) over(below monitor.Stream, c *listener.Conn) {
	s.Stream, s.cache, s.shake, s.conn, s.high = below, caches.Get(c.Scheduler()), nil, c, c.Internals().Limits().High
	s.out = nil
}

// count counts the memory of input that has passed by and was not taken.
func (s *stream) count() {
	n := s.records.held()
	if s.lent != nil {
		n += s.lent.held
	}
	s.held.Set(s.conn, n)
}

// HeldFor says for whom the bytes are held that are queued below, and returns how much memory they take.
func (s *stream) HeldFor(o budget.Owner) (bytes int) {
	if below, ok := monitor.As[budget.Holder](s.Stream); ok {
		return below.HeldFor(o)
	}
	return 0
}

func (s *stream) Lend(most int) ([]byte, error) {
	p := s.cache.loans.Room(s.cache.s)
	n, err := s.Receive(p[:min(most, len(p))])
	if err != nil {
		return nil, err
	}
	return s.cache.loans.Lend(n), nil
}

func (s *stream) Receive(p []byte) (int, error) {
	switch {
	case s.err != nil: // crypto/tls would go on after some errors
		return 0, s.err
	case s.heldUp():
		return 0, monitor.ErrWouldBlock
	}
	n, err := s.secret.Read(p)
	_ = s.flush() // the answers of crypto/tls; an error is the next Send's
	defer s.count()
	switch {
	case n > 0: // crypto/tls returns the error again
		if n < len(p) { // otherwise more of its record may be left
			s.records.whole--
		}
		return n, nil
	case err == errNotYet:
		s.records.whole = 0
		return 0, monitor.ErrWouldBlock
	case s.broken != nil && s.broken != io.EOF:
		return 0, s.broken // crypto/tls may wrap it
	case err == io.EOF:
		s.finished = true
		if _, failed := s.Stream.Queued(); failed != nil {
			return 0, failed // of what was sent; see monitor.Stream
		}
	default:
		err = s.fail(err)
	}
	return 0, err
}

// fail notes that TLS has failed, which is the peer's fault. Whatever is armed is woken: the next call returns the error.
func (s *stream) fail(err error) error {
	s.finished, s.err = true, &listener.PeerError{Err: err}
	s.Wake()
	return s.err
}

// heldUp reports whether nothing may be decrypted, since too much is queued.
func (s *stream) heldUp() bool {
	queued, err := s.Stream.Queued()
	return err == nil && queued > s.high+ahead
}

func (s *stream) AwaitInput(w act.Waker) {
	switch {
	case s.heldUp():
		s.Stream.AwaitOutput(w, s.high)
	case s.finished || s.records.whole > 0:
		s.Stream.AwaitInput(w) // it takes the place of an earlier one
		w.Wake()
	default:
		s.Stream.AwaitInput(w)
	}
}

func (s *stream) Send(head, p []byte, high int) (int, error) {
	if len(head)+len(p) == 0 {
		return s.Stream.Send(nil, nil, high)
	}
	queued, err := s.Queued()
	if err != nil {
		return 0, err
	}
	if err := s.encrypt(head); err != nil { // nothing is sent yet, so queued holds
		return 0, err
	}
	taken, certain := 0, high-queued // Conn.Room has promised so much, whatever TLS adds
	for taken < len(p) {
		n := min(max(high-queued, certain-taken), len(p)-taken, part)
		if n <= 0 {
			break
		}
		if err := s.encrypt(p[taken : taken+n]); err != nil {
			return 0, err
		}
		taken += n
		if err := s.flush(); err != nil {
			return 0, err
		}
		if queued, err = s.Stream.Queued(); err != nil {
			return 0, err
		}
	}
	return taken, s.flush()
}

// encrypt appends the records of p to out.
func (s *stream) encrypt(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if _, err := s.secret.Write(p); err != nil {
		return s.fail(err)
	}
	return nil
}

// flush gives out to the Stream below, which takes everything.
func (s *stream) flush() error {
	if len(s.out) == 0 {
		return nil
	}
	_, err := s.Stream.Send(s.out, nil, 0)
	s.cache.out, s.out = s.out[:0], nil
	return err
}

func (s *stream) Queued() (int, error) {
	queued, err := s.Stream.Queued()
	switch {
	case err != nil:
	case s.err != nil:
		err = s.err
	case s.notified:
		err = errWriteClosed
	}
	return queued, err
}

func (s *stream) CloseWrite() error {
	if _, err := s.Queued(); err != nil && err != errWriteClosed {
		return err
	}
	return s.notify()
}

// notify sends the alert close_notify. crypto/tls makes one only.
func (s *stream) notify() error {
	s.notified = true
	if err := s.secret.CloseWrite(); err != nil {
		return err
	}
	return s.flush()
}

func (s *stream) Close(linger time.Duration) {
	if s.lent != nil {
		s.lent.Return()
	}
	if s.err == nil {
		_ = s.notify() // an error means that the peer has gone
	}
	if queued, err := s.Stream.Queued(); s.finished && s.err == nil && err == nil && queued == 0 {
		linger = 0 // nothing comes that could spoil the last bytes, and the peer may close when it likes
	}
	s.Stream.Close(linger)
}

// AwaitEnd implements monitor.CloseNotifier for the transport.
func (s *stream) AwaitEnd(w act.Waker) (half bool, err error) {
	if s.err != nil {
		return false, s.err
	}
	if below, ok := monitor.As[monitor.CloseNotifier](s.Stream); ok {
		return below.AwaitEnd(w)
	}
	return false, nil
}

// EndsInBand tells listener.Conn that close_notify is seen when it is received.
func (s *stream) EndsInBand() {}

// IdleSince implements monitor.IdleReporter.
func (s *stream) IdleSince() (since time.Duration, idle bool) {
	if below, ok := monitor.As[monitor.IdleReporter](s.Stream); ok {
		since, idle = below.IdleSince()
	}
	return since, idle && s.records.atRest()
}

// Below returns the Stream that carries the encrypted bytes. Package proxyproto looks there for a header.
func (s *stream) Below() monitor.Stream { return s.Stream }

// Describe describes the Stream below.
func (s *stream) Describe(d *act.Description) {
	if below, ok := monitor.As[act.Describer](s.Stream); ok {
		below.Describe(d)
	}
}

// Descriptor returns that of the socket, -1 if there is none.
func (s *stream) Descriptor() int {
	if below, ok := monitor.As[interface{ Descriptor() int }](s.Stream); ok {
		return below.Descriptor()
	}
	return -1
}

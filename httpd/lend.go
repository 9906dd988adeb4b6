package httpd

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Sender sends the content of a response from a goroutine, without turns of the scheduler: see [Response.Lend].
type Sender struct {
	e  *http1Exchange
	to monitor.Output

	mu      sync.Mutex
	over    bool
	chunked bool
	frame   []byte // what goes first: framing, and small content
	left    int    // of the chunk that was begun
	held    bool   // the connection may hold bytes that it has taken: it wants another call
	most    int64  // how much content the head has left, -1: not said
	taken   int64  // content
	whole   bool   // a call has sent all since the latest Ready
	noted   uint64 // bytes sent, as the pace has them
}

// Lend has another goroutine send the content from here on, with the methods of Sender: for large content that such a goroutine
// has, each Write is then one system call and no work for the scheduler. The head, and what was written before, is sent first.
// The loan ends with the next call that writes to the Response, or when the handler has finished.
//
// With TLS the goroutine encrypts, too. The error is that of Write. It is errors.ErrUnsupported for HEAD, and if the connection
// cannot be lent.
func (w *Response) Lend() (*Sender, error) {
	if err := w.Flush(); err != nil {
		return nil, err
	}
	switch {
	case w.mute:
		return nil, errors.ErrUnsupported
	case w.lent != nil:
		return w.lent, nil
	}
	s, err := w.x.lend()
	if err != nil {
		return nil, err
	}
	s.most, w.lent = w.left, s
	return s, nil
}

// recall ends the loan, if there is one.
func (w *Response) recall() {
	if w.lent != nil {
		w.takeBack(w.lent)
	}
}

func (w *Response) takeBack(s *Sender) {
	w.lent = nil
	s.to.Return() // before the lock: nothing is sent any more
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.note()
	w.count(s.taken)
	if s.e.pending = s.frame; s.left == 0 {
		return
	}
	if _, err := s.e.session.conn.Write(nil); err != nil && !isBlocked(err) {
		_ = s.e.lose(err)
	}
	w.fail(errPart) // if that is not why
}

var errPart = errors.New("httpd: a part of the content is missing")

// lend lends the sending side of the connection, when it has taken everything.
func (e *http1Exchange) lend() (*Sender, error) {
	if err := e.push(); err != nil {
		return nil, err
	}
	if err := e.session.conn.Sent(); err != nil {
		return nil, e.blocked(err)
	}
	e.session.pace = nil
	if l, ok := listener.As[monitor.OutputLender](e.session.conn); ok && e.coding != byNothing {
		if to := l.LendOutput(); to != nil {
			return &Sender{e: e, to: to, chunked: e.coding == byChunks}, nil
		}
	}
	return nil, errors.ErrUnsupported
}

// Write sends p, or as much of it as the kernel takes at once, and returns how much. One goroutine at a time may call it. If p
// was not sent as a whole, the error is monitor.ErrWouldBlock: the scheduler waits for room with Ready, then Write is called
// again with the rest, even if that is empty. It is net.ErrClosed when the loan has ended, the error of the connection, or one
// for more content than was announced.
func (s *Sender) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return 0, net.ErrClosed
	case s.most >= 0 && int64(len(p)) > s.most-s.taken:
		return 0, errLength
	case s.chunked && s.left == 0 && len(p) > 0:
		s.left = len(p)
		s.frame = append(strconv.AppendInt(s.frame, int64(len(p)), 16), "\r\n"...)
	}
	if len(p)+len(s.frame) <= gathered { // nearly always one call
		s.frame = append(s.frame, p...)
		n = len(p)
		s.take(n)
	}
	for first := true; first && (s.held || len(s.frame) > 0) || n < len(p); first = false {
		k, err := s.to.Send(s.frame, p[n:min(len(p), n+sendCall)])
		framing := min(k, len(s.frame))
		s.frame = s.frame[:copy(s.frame, s.frame[framing:])]
		n += k - framing
		s.held = err == monitor.ErrWouldBlock
		if s.take(k - framing); err != nil {
			return n, err
		}
	}
	s.whole = true
	return n, nil
}

// sendCall is how much one system call is given at most: an end of the loan waits for it.
const sendCall = 512 << 10

// take notes content. The end of a chunk goes out with what follows.
func (s *Sender) take(n int) {
	s.taken += int64(n)
	if s.chunked && n > 0 {
		if s.left -= n; s.left == 0 {
			s.frame = append(s.frame, "\r\n"...)
		}
	}
}

// SendFile is Write of n bytes of f from offset on. It is errors.ErrUnsupported if the bytes have to be read and written
// instead: for files that sendfile(2) does not take, and for content that is sent in chunks. See listener.Conn.SendFile.
func (s *Sender) SendFile(f *os.File, offset, n int64) (sent int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return 0, net.ErrClosed
	case s.chunked:
		return 0, errors.ErrUnsupported
	case s.most >= 0 && n > s.most-s.taken:
		return 0, errLength
	}
	for sent < n && err == nil {
		var k int
		k, err = s.to.SendFile(f, offset+sent, int(min(n-sent, sendCall)))
		sent += int64(k)
	}
	s.taken += sent
	s.whole = s.whole || err == nil
	return sent, err
}

// Ready returns nil if Write may be called again after monitor.ErrWouldBlock. It is an act.Blocked while there is no room, or
// another error of Response.Write. It is called on the scheduler's thread.
func (s *Sender) Ready() error {
	e := s.e
	switch {
	case e.out.err != nil:
		return e.out.err
	case e.out.lent != s:
		return net.ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole {
		s.whole, e.session.pace = false, nil
	}
	if s.note(); s.to.Full() {
		return e.blocked((*blockedSender)(s))
	}
	return nil
}

// note tells the pace how much was sent.
func (s *Sender) note() {
	sent := s.to.Sent()
	s.e.session.given(int64(sent - s.noted))
	s.noted = sent
}

// blockedSender is a Sender as the error that the client has to take more first.
type blockedSender Sender

func (*blockedSender) Error() string {
	return "httpd: the client has not taken enough of the content yet"
}

// Arm has the task woken when there is room.
func (b *blockedSender) Arm(t *act.Task) { b.to.Await(t.Waker()) }

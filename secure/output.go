package secure

import (
	"errors"
	"net"
	"os"
	"sync"

	"github.com/daimon-go/daimon/monitor"
)

// output is the sending side of a stream while a goroutine has it. That goroutine encrypts, too. On the scheduler's thread
// crypto/tls goes on reading, and may answer. The answers are sent by the next Send, or by Return: a KeyUpdate has to come
// before the next data (RFC 8446, section 4.6.3).
type output struct {
	monitor.Output // of the Stream below
	s              *stream

	held int // bytes of memory that count for the connection: the scheduler's thread alone looks at it

	calls sync.Mutex // one Send at a time; Return waits for it
	over  bool

	mu   sync.Mutex // beside that: answers come meanwhile
	out  *[]byte    // encrypted, of outputs; nil: nothing
	sent int        // of it
}

// mostHeld bounds the bytes that are encrypted and not sent: a peer could ask for answers without end (KeyUpdate).
const mostHeld = 2 * part

// outputs is memory for the records of a Send.
var outputs = sync.Pool{New: func() any {
	p := make([]byte, 0, part+8<<10)
	return &p
}}

var errAnswers = errors.New("secure: the peer has asked for too many answers")

// LendOutput implements monitor.OutputLender.
func (s *stream) LendOutput() monitor.Output {
	below, ok := monitor.As[monitor.OutputLender](s.Stream)
	if _, err := s.Queued(); !ok || err != nil || s.lent != nil {
		return nil
	}
	to := below.LendOutput()
	if to == nil {
		return nil
	}
	s.lent = &output{Output: to, s: s}
	return s.lent
}

// Send encrypts a part, and sends it with one system call. Bytes that the kernel does not take are held, and the
// next Send begins with it.
func (o *output) Send(head, p []byte) (n int, err error) {
	o.calls.Lock()
	defer o.calls.Unlock()
	if o.over {
		return 0, net.ErrClosed
	}
	if err := o.flush(); err != nil {
		return 0, err
	}
	for _, p := range [][]byte{head, p[:min(len(p), part)]} {
		k, err := o.s.secret.Write(p)
		if n += k; err != nil {
			return n, err
		}
	}
	return n, o.flush()
}

// SendFile has the file read, since its bytes have to be encrypted.
func (o *output) SendFile(*os.File, int64, int) (int, error) { return 0, errors.ErrUnsupported }

// write is that of the wire.
func (o *output) write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.out == nil {
		o.out = outputs.Get().(*[]byte)
	}
	if len(*o.out)-o.sent+len(p) > mostHeld {
		return 0, errAnswers
	}
	*o.out = append(*o.out, p...)
	return len(p), nil
}

func (o *output) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.out == nil {
		return nil
	}
	n, err := o.Output.Send(nil, (*o.out)[o.sent:])
	if o.sent += n; err == nil {
		o.free()
	}
	return err
}

// free gives back the memory.
func (o *output) free() {
	*o.out = (*o.out)[:0]
	outputs.Put(o.out)
	o.out, o.sent = nil, 0
}

// Full also counts held bytes. No Send is under way.
func (o *output) Full() bool {
	full := o.Output.Full()
	o.held = 0
	if full && o.out != nil {
		o.held = cap(*o.out)
	}
	o.s.count()
	return full
}

// Return queues the bytes that are not sent.
func (o *output) Return() {
	o.calls.Lock()
	o.over = true
	o.calls.Unlock()
	if o.Output.Return(); o.s.lent != o {
		return
	}
	if o.s.lent = nil; o.out != nil {
		_, _ = o.s.Stream.Send((*o.out)[o.sent:], nil, 0) // an error is the next call's
		o.free()
	}
	o.s.count()
}

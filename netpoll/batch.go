package netpoll

import "io"

// Batch makes receives and sends on many stream sockets with one system call, which saves an entry into the kernel for each of
// them. All have ended when Do returns: nothing is under way afterwards, so a descriptor may be closed at any time. It is
// io_uring(7), on Linux 5.18 or later.
//
// A Batch pays for small messages. To receive or send 16 KiB on each of many sockets takes half again as much time as one
// after the other, since the bytes have left the cache when they are used.
type Batch struct{ ring }

// Call is a receive or a send of a [Batch].
type Call struct {
	FD   int    // a stream socket
	Send bool   // P is sent, otherwise received into
	P    []byte // not empty
	N    int    // set by Do: the bytes that were received or sent; 0 without Err is the end of the stream
	Err  error  // set by Do, as System.Receive and System.Send return it
}

// Make makes the call by itself, with the calls of [System] or others like them.
func (c *Call) Make(sys interface {
	Receive(fd int, p []byte) (int, error)
	Send(fd int, head, p []byte) (int, error)
}) {
	if c.Send {
		c.N, c.Err = sys.Send(c.FD, nil, c.P)
	} else if c.N, c.Err = sys.Receive(c.FD, c.P); c.Err == io.EOF {
		c.Err = nil
	}
}

// OpenBatch returns a new Batch. n, a power of two, is how many calls one system call makes. It takes one descriptor. The
// error says why this system refuses io_uring.
func (System) OpenBatch(n int) (*Batch, error) {
	b := new(Batch)
	if err := b.open(n); err != nil {
		return nil, err
	}
	return b, nil
}

// Do makes the calls, in any order. None waits: one that would has the error EAGAIN. Do may be called on any goroutine, one at a
// time.
func (b *Batch) Do(calls []Call) {
	for len(calls) > 0 {
		n := min(len(calls), b.room())
		b.do(calls[:n])
		calls = calls[n:]
	}
}

// Close closes the Batch, which must not be used any more.
func (b *Batch) Close() error { return b.close() }

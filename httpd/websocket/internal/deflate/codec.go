package deflate

const (
	// sent is how many sent bytes are of use to the compressor.
	sent = 8 << 10
	// received is how far back a peer may refer (RFC 1951 2).
	received = 32 << 10
)

// Codec compresses and inflates the messages of a connection. Without context takeover it has no memory, and is the same
// for all connections.
type Codec struct {
	terms          Terms
	sent, received []byte // the end of the messages that were compressed, at most so much
}

var stateless Codec

// New returns a Codec for a connection with these terms.
func New(terms Terms) *Codec {
	if terms == (Terms{}) {
		return &stateless
	}
	return &Codec{terms: terms}
}

// Compress appends p, compressed, to to. ok is false if that would not be smaller than p. Then to is returned as it was, and
// the message has to be sent as it is.
func (c *Codec) Compress(to, p []byte) (packed []byte, ok bool) {
	packed = Compress(to, p, c.sent)
	if len(packed)-len(to) >= len(p) {
		return packed[:len(to)], false
	}
	c.Sent(p)
	return packed, true
}

// Sent notes that p was sent in a form that another Codec has compressed: later messages may refer to it.
func (c *Codec) Sent(p []byte) {
	if c.terms.Sends {
		c.sent = slide(c.sent, p, sent)
	}
}

// Inflate appends the message that was compressed as packed to to. It fails with ErrData, or with ErrSize if the message has
// more than most bytes, which is found out before it has taken more memory than that.
func (c *Codec) Inflate(to, packed []byte, most int64) ([]byte, error) {
	x := inflaters.Get().(*inflater)
	p, err := x.inflate(to, packed, c.received, most)
	x.rest = nil
	inflaters.Put(x)
	if err == nil && c.terms.Receives {
		c.received = slide(c.received, p[len(to):], received)
	}
	return p, err
}

// slide returns the end of window followed by p, at most so many bytes. It changes window.
func slide(window, p []byte, most int) []byte {
	p = p[max(0, len(p)-most):]
	if over := len(window) + len(p) - most; over > 0 {
		window = window[:copy(window, window[over:])]
	}
	if n := len(window) + len(p); n > cap(window) {
		window = append(make([]byte, 0, min(most, max(n, 2*cap(window)))), window...)
	}
	return append(window, p...)
}

// Packed returns how many bytes a message of n bytes may take when it is compressed. A peer that needs more of them has sent
// useless ones: a byte takes at most 9 bits (RFC 1951 3.2.6), beside some for blocks.
func Packed(n int64) int64 {
	if n > 1<<60 {
		return n
	}
	return n + n/8 + 64
}

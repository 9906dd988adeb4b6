package http2

// Buffers keeps buffers that are in no use. The zero value is empty.
type Buffers struct {
	free [][]byte
	held int // bytes
}

// The bounds of what Buffers keeps: bytes in all, and of each.
const (
	keepBytes  = 2 << 20
	keepLength = 128 << 10
)

// Get returns a buffer without content, or nil.
func (p *Buffers) Get() (b []byte) {
	if n := len(p.free); n > 0 {
		b, p.free = p.free[n-1], p.free[:n-1]
		p.held -= cap(b)
	}
	return b
}

// Put keeps b, if there is room. The caller must not use it any more.
func (p *Buffers) Put(b []byte) {
	if cap(b) <= keepLength && p.held+cap(b) <= keepBytes {
		p.free = append(p.free, b[:0])
		p.held += cap(b)
	}
}

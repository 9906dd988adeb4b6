package listener

import (
	"fmt"
	"unsafe"

	"github.com/daimon-go/daimon/act"
)

// Sound reports memory that two of conns, or one and the cache of s, hold at the same time.
func Sound(s *act.Scheduler, conns []*Conn) error {
	h, parts, owner := caches.Get(s), map[*buffers]string{}, map[*byte]string{}
	part := func(b *buffers, who string) error {
		if parts[b] != "" {
			return fmt.Errorf("the buffers of %s are those of %s", parts[b], who)
		}
		parts[b] = who
		return nil
	}
	memory := func(p []byte, who string) error {
		at := unsafe.SliceData(p[:cap(p)])
		if cap(p) == 0 {
			return nil
		}
		if owner[at] != "" {
			return fmt.Errorf("memory of %s and of %s", owner[at], who)
		}
		owner[at] = who
		return nil
	}
	var errs []error
	for _, b := range h.idle {
		errs = append(errs, part(b, "the cache"), memory(b.gather, "an idle part"), memory(b.buffer, "an idle part's unread"))
	}
	for _, b := range h.small {
		errs = append(errs, memory(b, "the cache"))
	}
	for i, c := range conns {
		if b := c.buffers; b != nil {
			who := fmt.Sprint("connection ", i)
			errs = append(errs, part(b, who), memory(b.gather, who), memory(b.buffer, who))
			switch {
			case c.stream == nil && (b.c != nil || b.cache != nil || b.own != nil || b.lent != nil):
				errs = append(errs, fmt.Errorf("%s keeps more than a count and a peer after its end", who))
			case c.stream != nil && b.c != c:
				errs = append(errs, fmt.Errorf("the buffers of %s are another's", who))
			}
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

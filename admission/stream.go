package admission

import (
	"time"

	"github.com/daimon-go/daimon/monitor"
)

// stream is the Stream of a connection that counts for a source. It changes nothing but the end.
type stream struct {
	monitor.Stream
	source *source
}

// Unwrap returns the Stream below.
func (s *stream) Unwrap() monitor.Stream { return s.Stream }

func (s *stream) Close(linger time.Duration) {
	s.source.of.release(s.source)
	s.Stream.Close(linger)
}

func (s *stream) Abort() {
	s.source.of.release(s.source)
	s.Stream.Abort()
}

package httpd

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/listener"
)

// loose returns a stream without a scheduler, whose client leaves it a window.
func loose() *stream {
	x := &http2Conn{link: link{conn: &listener.Conn{}}, cache: &cache{}}
	s := &stream{conn: x, course: course{id: 1, state: http2.Open}}
	s.inflow = http2.NewInflow(http2.DefaultWindow)
	x.outflow.Add(http2.MaxWindow)
	s.outflow.Add(http2.MaxWindow)
	return s
}

func TestAnAnswerWhoseEndIsNeverReachedTakesNoMoreMemoryThanWhatWaits(t *testing.T) {
	s := loose()
	s.send(make([]byte, 100))
	for range 1000 {
		s.send(make([]byte, 10000))
		s.sendData(10000) // 100 bytes are always left
		s.conn.out = s.conn.out[:0]
	}
	require.Equal(t, 100, s.pending())
	require.Less(t, cap(s.queue), 64<<10)
}

func TestContentIsLentUntilTheTurnEndsEvenIfItIsDiscarded(t *testing.T) {
	s := loose()
	s.inflow.Receive(10000)
	s.take(bytes.Repeat([]byte("r"), 10000))
	in, err := s.peek()
	require.NoError(t, err)
	s.discard(len(in))
	s.send(bytes.Repeat([]byte("w"), 10000))
	require.Equal(t, bytes.Repeat([]byte("r"), 10000), in)
	s.rest()
	require.Nil(t, s.body)
	require.NotNil(t, s.conn.cache.content.Get())
}

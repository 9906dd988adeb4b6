package inspect

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// newWatched returns a watched with two kinds, of these numbers.
func newWatched(name string) *watched {
	w := &watched{name: name}
	w.kindNumber("zero")
	w.kindNumber("one")
	return w
}

const zero, one = 1, 2

// The id, the descriptor and the kind of each turn agree, so a mixture of two turns would be seen.
func TestASightingIsNeverOfTwoTurns(t *testing.T) {
	w := newWatched("")
	var enough atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := uint32(0); !enough.Load(); i = (i + 1) % (1 << 20) {
			w.turn(zero+i%2, i, int32(i))
			if i%64 == 63 {
				w.pass(0)
				runtime.Gosched()
			}
		}
	})
	defer writer.Wait()
	defer enough.Store(true)
	for turns := 0; turns < 10_000; {
		if x := w.sight(); x.state() == turn {
			turns++
			require.Equal(t, int32(x.id), x.fd)
			require.Equal(t, []string{"zero", "one"}[x.id%2], x.kind)
		}
	}
}

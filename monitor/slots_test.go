package monitor

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/netpoll"
)

// deaf is a watcher that is not a socket.
type deaf struct{ n int }

func (*deaf) event(netpoll.Ready) {}
func (*deaf) Abort()              {}

// An event finds its watcher in each chunk, and nobody once the slot is free or has another watcher.
func TestSlots(t *testing.T) {
	x := slots{others: map[uint32]watcher{}}
	const n = 3*slotChunk + 1
	all := make([]watcher, n)
	tags := make([]uint64, n)
	for i := range all {
		all[i] = &deaf{i}
		if i%2 == 0 {
			all[i] = &socket{}
		}
		require.EqualValues(t, i, x.take(all[i]), "slots are used in order")
		tags[i] = x.tag(uint32(i))
	}
	for i, w := range all {
		require.Same(t, w, x.find(tags[i]))
	}
	require.Len(t, slices.Collect(x.sockets(0, x.len())), (n+1)/2)
	for i := range all {
		x.free(uint32(i))
		require.Nil(t, x.find(tags[i]))
		require.EqualValues(t, i, x.take(all[n-1-i]), "the last freed first")
		require.Nil(t, x.find(tags[i]), "the event of an earlier watcher")
		require.Same(t, all[n-1-i], x.find(x.tag(uint32(i))))
	}
}

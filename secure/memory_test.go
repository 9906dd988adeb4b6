package secure_test

import (
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/secure"
)

// inUse returns the memory of the heap and of stacks, after a collection.
func inUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// What a peer costs that stops in the middle of its handshake is bounded, however much it has sent.
func TestTheMemoryOfHandshakesThatStop(t *testing.T) {
	tier.Measure(t, "memory")
	server, client := identities(t)
	record := func(n int, body string) string { return "\x16\x03\x01" + string([]byte{byte(n >> 8), byte(n)}) + body }
	// A ClientHello of 64 KiB in four records, of which the last byte is missing.
	message := "\x01\x00\xff\xf0" + strings.Repeat("x", 0xfff0)
	parts := record(16<<10, message[:16<<10]) + record(16<<10, message[16<<10:32<<10]) + record(16<<10, message[32<<10:48<<10])
	for _, row := range []struct {
		name  string
		sends string
		part  int // or that part of a real one
		most  int // KiB of each
	}{
		{"a half of a ClientHello", "", 50, 16},
		{"a whole one", "", 100, 32},
		{"the longest record but its last byte", record(18<<10, strings.Repeat("x", 18<<10-1)), 0, 32},
		{"the longest message but its last byte", parts + record(len(message)-(48<<10), message[48<<10:len(message)-1]), 0, 128},
	} {
		for _, h := range []*secure.Handshakes{nil, {OnReactor: true}} {
			const peers = 300
			tcp := overTLS(server)
			tcp.Filters[0], tcp.FilterTimeout = secure.Server(server, h), time.Minute
			s := serve(t, tcp)
			before := inUse()
			var all []net.Conn
			if row.sends == "" {
				all = s.stalls(peers, row.part, client)
			}
			for len(all) < peers {
				c := servertest.Dial(t, s.Addr())
				servertest.Send(t, c, row.sends)
				all = append(all, c)
			}
			require.Eventually(t, func() bool { return s.Open() == peers }, servertest.Timeout, time.Millisecond)
			time.Sleep(200 * time.Millisecond) // what has come is taken
			each := (inUse() - before) / peers
			t.Logf("%s, on the reactor %v: %d bytes each", row.name, h != nil, each)
			require.Less(t, each, row.most<<10)
			for _, c := range all {
				_ = c.Close()
			}
			s.drain()
			_ = s.Group.Close()
			require.Less(t, inUse()-before, 3<<20, "it came back, but for stacks that the runtime keeps")
		}
	}
}

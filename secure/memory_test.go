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
func TestMeasureHandshakesThatStop(t *testing.T) {
	tier.Measure(t, "memory")
	server, client := identities(t)
	record := func(n int, body string) string { return "\x16\x03\x01" + string([]byte{byte(n >> 8), byte(n)}) + body }
	// A ClientHello of 64 KiB in four records, of which the last byte is missing.
	message := "\x01\x00\xff\xf0" + strings.Repeat("x", 0xfff0)
	parts := record(16<<10, message[:16<<10]) + record(16<<10, message[16<<10:32<<10]) + record(16<<10, message[32<<10:48<<10])
	says := func(text string) func(net.Conn) { return func(c net.Conn) { servertest.Send(t, c, text) } }
	for _, row := range []struct {
		name  string
		sends func(net.Conn)
		most  int // KiB of each
	}{
		{"a half of a ClientHello", func(c net.Conn) { stall(t, c, 50, client) }, 16},
		{"a whole one", func(c net.Conn) { stall(t, c, 100, client) }, 32},
		{"the longest record but its last byte", says(record(18<<10, strings.Repeat("x", 18<<10-1))), 32},
		{"the longest message but its last byte", says(parts + record(len(message)-(48<<10), message[48<<10:len(message)-1])), 128},
	} {
		for _, h := range []*secure.Handshakes{nil, {OnReactor: true}} {
			const peers = 300
			tcp := overTLS(server)
			tcp.Filters[0], tcp.FilterTimeout = secure.Server(server, h), time.Minute
			s := serve(t, tcp)
			before := inUse()
			var all []net.Conn
			for range peers {
				c := servertest.Dial(t, s.Addr())
				row.sends(c)
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

package httpd_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// A connection between two requests costs what the packages below keep for it, and a session. Here the latter is
// measured, with its Task and its Conn.
func TestCostOfAConnectionAtRest(t *testing.T) {
	const n = 10_000
	m, d := make([]mill, n), newDesk(t)
	web := &httpd.Server{Handler: hello}
	request := []byte(raw(get + "\n"))
	before := heap()
	for i := range m {
		m[i].request, m[i].there = request, true
		d.s.Spawn(web.Serve(listener.NewConn(d.s, &m[i], listener.Limits{})))
		d.settle()
		require.NotZero(t, m[i].sent)
	}
	each := int(heap()-before) / n
	// To this come, measured where they are: the stream, its slot among the events, and the session of the service.
	const below = 48 + 49 + 32
	t.Logf("%d B of heap, %d B with what lies below", each, each+below)
	require.LessOrEqual(t, each+below, 384)
	runtime.KeepAlive(m)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one has put off
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkPipelined(b *testing.B) {
	var site httpd.Mux
	site.Handle("GET /{$}", hello)
	site.Handle("GET /files/{path...}", hello)
	site.Handle("POST /echo", echo)
	request := raw("GET / HTTP/1.1\nHost: 127.0.0.1:8080\n\n")
	for _, depth := range []int{1, 16} {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			_, once := grinding(b, site.Serve, []byte(strings.Repeat(request, depth)))
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*depth), "ns/request")
		})
	}
}

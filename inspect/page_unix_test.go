//go:build unix

package inspect

import (
	"bufio"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/cputime"
)

// BenchmarkPage has an idle server of two schedulers inspected, and nobody looks, or a page is open. An operation takes a second.
// The metric is the CPU time of the process in a second, which includes that of the viewer.
func BenchmarkPage(b *testing.B) {
	sleep := func(*bufio.Reader) { time.Sleep(time.Second) }
	read := func(page *bufio.Reader) {
		for range 2 { // an event and the empty line behind it
			_, err := page.ReadString('\n')
			require.NoError(b, err)
		}
	}
	for _, row := range []struct {
		name, path string
		second     func(page *bufio.Reader)
	}{
		{"nobody looks", "/", sleep},
		{"a page is open", "/events", read},
	} {
		b.Run(row.name, func(b *testing.B) {
			_, at := visited(b)
			a, err := http.Get(at + row.path + "?token=secret")
			require.NoError(b, err)
			defer a.Body.Close()
			page := bufio.NewReader(a.Body)
			row.second(page)
			before, seconds := cputime.Used(b), 0
			for b.Loop() {
				row.second(page)
				seconds++
			}
			used := cputime.Used(b) - before
			b.ReportMetric(float64(used.Microseconds())/1000/float64(seconds), "cpu-ms/s")
		})
	}
}

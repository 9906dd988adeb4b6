package http1

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/tier"
)

// browser is what a browser sends, small what a client of a benchmark sends.
const (
	browser = "../../testdata/browser.txt"
	small   = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"
)

func BenchmarkHead(b *testing.B) {
	text, err := os.ReadFile(browser)
	require.NoError(b, err)
	benchmarkHead(b, text)
}

func BenchmarkSmallHead(b *testing.B) { benchmarkHead(b, []byte(small)) }

func benchmarkHead(b *testing.B, text []byte) {
	var p Parser
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if !understood(&p, text) {
			b.Fatal("not understood")
		}
	}
}

// understood does everything between the first byte of a request and its handler.
func understood(p *Parser, text []byte) bool {
	p.Reset()
	if ended, err := p.Read(text); !ended || err != nil {
		return false
	}
	_, err := p.Framing(text)
	return err == nil
}

func TestTheRequestOfABrowser(t *testing.T) {
	text, err := os.ReadFile(browser)
	require.NoError(t, err)
	require.Len(t, text, 620)
	var p Parser
	require.True(t, understood(&p, text))
	require.Len(t, p.Fields, 12)
	require.Equal(t, len(text), p.Length)
	require.Zero(t, testing.AllocsPerRun(100, func() { understood(&p, text) }))
}

// Other programs on the machine only make a run longer, so the shortest of many runs counts.
func TestCostOfAHead(t *testing.T) {
	tier.Measure(t, "measures time")
	if testing.CoverMode() != "" {
		t.Skip("the counters change the price")
	}
	const most, runs, n = 400 * time.Nanosecond, 200, 1000
	text, err := os.ReadFile(browser)
	require.NoError(t, err)
	var p Parser
	best := time.Hour
	for i := 0; i < runs || best > most*n && i < 10*runs; i++ {
		began := time.Now()
		for range n {
			understood(&p, text)
		}
		best = min(best, time.Since(began))
	}
	t.Logf("%v a head, at most %v", best/n, most)
	require.LessOrEqual(t, best/n, most)
}

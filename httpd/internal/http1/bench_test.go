package http1

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// browser is what a browser sends.
const browser = "../../testdata/browser.txt"

// understood does everything between the first byte of a request and its handler.
func understood(p *Parser, text []byte) bool {
	p.Reset()
	if ended, err := p.Read(text); !ended || err != nil {
		return false
	}
	var f Framing
	return p.Framing(text, &f) == nil
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

func TestMeasureAHead(t *testing.T) {
	tier.Measure(t, "time of a head")
	text, err := os.ReadFile(browser)
	require.NoError(t, err)
	var p Parser
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	price.Require(t, 400, func(n int) {
		for range n {
			understood(&p, text)
		}
	})
}

package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
)

// handlers uses the page of examples/nethttp, whose clock is a stream of events.
func handlers(t *testing.T, p *tab) {
	behind := exectest.Start(t, exectest.Of("../../examples/httpd").Command(t, "-addr", "127.0.0.1:0"))
	behind.Listens(t, behind.Said)
	flags, scheme := []string{"-addr", "127.0.0.1:0", "-upstream", "http://" + behind.Addr}, "http"
	if strings.Contains(t.Name(), strings.ReplaceAll(overTLS, " ", "_")) {
		flags, scheme = append(flags, "-tls-self"), "https"
	}
	s := &server{exectest.Start(t, exectest.Of("../../examples/nethttp").Command(t, flags...)), scheme}
	s.Listens(t, s.Said)
	require.EqualValues(t, 200, p.visit(t, s.url("/")))

	seen := map[string]bool{}
	eventually(t, "the clock to go", func() bool {
		seen[run[string](t, p, `() => document.getElementById("clock").dateTime`)] = true
		return len(seen) > 3 // the first is empty
	})
	eventually(t, "what the server knows", func() bool {
		return strings.Contains(run[string](t, p, `() => document.getElementById("me").innerText`), "127.0.0.1")
	})
	run[any](t, p, `() => { document.getElementById("ask").click() }`)
	eventually(t, "the answer of the other server", func() bool {
		return run[string](t, p, `() => document.getElementById("answer").textContent`) == "Hello, World!"
	})
	sum := run[string](t, p, `async () => {
		const content = new Uint8Array(10 << 20).map((_, i) => i * i >> 3);
		const files = new DataTransfer();
		files.items.add(new File([content], "large.bin"));
		const input = document.getElementById("file");
		input.files = files.files;
		input.dispatchEvent(new Event("change"));
		return hash(content);
	}`)
	eventually(t, "the digest", func() bool {
		return run[string](t, p, `() => document.getElementById("digest").textContent`) == sum
	})
	require.Equal(t, []string{s.url("")}, run[[]string](t, p, `() => [...new Set(performance.getEntriesByType("resource").map(
		e => new URL(e.name).origin))]`), "nothing is fetched from elsewhere")

	backgrounds := map[string]bool{}
	for _, colors := range []string{"light", "dark"} {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colors}}}
		_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media)
		require.NoError(t, err)
		backgrounds[run[string](t, p, `() => getComputedStyle(document.body).backgroundColor`)] = true
	}
	require.Len(t, backgrounds, 2)
	narrow := emulation.SetDeviceMetricsOverrideParams{Width: 320, Height: 640, DeviceScaleFactor: 1, Mobile: true}
	_, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, narrow)
	require.NoError(t, err)
	require.Equal(t, []int{320, 320}, run[[]int](t, p, `() => [innerWidth, document.documentElement.scrollWidth]`))

	s.terminate(t)
	eventually(t, "the end of the stream", func() bool {
		return run[string](t, p, `() => document.getElementById("stream").textContent`) == "The server ends."
	})
	s.ends(t, closed)
	behind.Stop(t)
}

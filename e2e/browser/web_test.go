package browser

import (
	"strings"
	"testing"

	"github.com/daimon-go/daimon/internal/tier"
)

// TestWeb starts one browser, which takes two seconds, and has each part use a tab and a server of its own: first without
// TLS, then, in the tier long, with it.
func TestWeb(t *testing.T) {
	browser := launch(t)
	parts := []struct {
		name string
		test func(*testing.T, *tab)
	}{
		{"a browser that reaches nothing else", nothingElse},
		{"a page of many files, interrupt", page("-idle", "interrupt")},
		{"a page of many files, busy", page("-idle", "busy", "-reactors", "1")}, // the browser needs a CPU, too
		{"many files at once, exactly", exactly},
		{"a reload", reload},
		{"a page that is not there", missing},
		{"names of files", names},
		{"HEAD", head},
		{"uploads", uploads},
		{"ranges", ranges},
		{"a sound that is skipped through", sound},
		{"downloads that are aborted", aborted},
		{"a site with a router of chi", handlers},
		{"a chat in two windows", func(t *testing.T, p *tab) { chatting(t, p, open(t, browser)) }},
		{"a queue of jobs", queued},
		{"what a server is doing", inspected},
		{"a stall", stalled},
		{"thousands of connections", crowded},
		{"messages that are compressed", messages},
		{"an end with idle connections", endIdle},
		{"an end in the middle of a download", endBusy},
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) { part.test(t, open(t, browser)) })
	}
	t.Run(overTLS, func(t *testing.T) {
		tier.Need(t, tier.Long, "the same once more, over TLS")
		for _, part := range parts {
			if !strings.Contains(withoutTLS, part.name) {
				t.Run(part.name, func(t *testing.T) { part.test(t, open(t, browser)) })
			}
		}
	})
}

// overTLS is the part of TestWeb in which servers speak TLS.
const overTLS = "over TLS"

// withoutTLS are the parts that need a server without TLS, or show nothing else over TLS. A page of https may not ask for one of
// http. The browser keeps no answer of a server whose certificate nobody vouches for. Over TLS it sometimes takes all of a download
// that nobody reads. A stall has a server of its own, and thousands of silent connections would be thousands of handshakes that
// time out. The pages of inspect are never encrypted, the page of jobs is no other one, and how a server waits is not TLS's matter.
const withoutTLS = "a browser that reaches nothing else, a reload, an end in the middle of a download, a stall, " +
	"thousands of connections, what a server is doing, a queue of jobs, a page of many files, busy"

package browser

import (
	"strings"
	"testing"
)

// TestWeb starts one browser, which takes two seconds, and has each part use a tab and a server of its own.
func TestWeb(t *testing.T) {
	browser := launch(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *tab)
	}{
		{"a page of many files", loaded},
		{"a page of many files, " + overTLS, loaded},
		{"a chat in two windows", func(t *testing.T, p *tab) { chatting(t, p, open(t, browser)) }},
		{"a queue of jobs", queued},
		{"what a server is doing", inspected},
		{"a stall", stalled},
		{"messages that are compressed, " + overTLS, messages},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.test(t, open(t, browser))
		})
	}
}

// overTLS is in the names of the parts in which servers speak TLS.
const overTLS = "over TLS"

// scheme returns the scheme of the test's servers, and the flag for it.
func scheme(t *testing.T) (scheme string, flags []string) {
	if strings.HasSuffix(t.Name(), strings.ReplaceAll(overTLS, " ", "_")) {
		return "https", []string{"-tls-self"}
	}
	return "http", nil
}

package browser

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// A tab shows one page at a time, and notes what the network did for it. Its cache and its connections are its own.
type tab struct {
	ctx context.Context

	mu    sync.Mutex
	noted []*exchange
	wire  map[network.RequestID][]*network.EventResponseReceivedExtraInfo // that no exchange has got yet
}

// An exchange is a request, as the browser's network events have it.
type exchange struct {
	id       network.RequestID
	url      string
	status   int64           // as it came over the wire, so also 304; 0 for none
	header   network.Headers // as it came over the wire
	conn     int64           // the connection, 0 for none
	failed   string          // why, or empty
	cached   bool            // the server was not asked
	finished bool
	hidden   bool // status and header are still to be told
}

// open opens an empty tab for the length of the test.
func open(t *testing.T, browser context.Context) *tab {
	t.Helper()
	p := &tab{wire: map[network.RequestID][]*network.EventResponseReceivedExtraInfo{}}
	var cancel func()
	p.ctx, cancel = chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.note))
	t.Cleanup(func() {
		require.NoError(t, chromedp.Cancel(p.ctx))
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range p.noted {
			if t.Failed() {
				t.Logf("%+v", *e)
			}
		}
	})
	// Without a limit the events have all of a body in them that is sent, which takes seconds for megabytes.
	limit := int64(1)
	_, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{MaxPostDataSize: &limit})
	require.NoError(t, err)
	return p
}

// note is called with each event of the tab, one after the other.
func (p *tab) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		if e := p.find(event.RequestID); e != nil && event.RedirectResponse != nil {
			e.answer(event.RedirectResponse, event.RedirectHasExtraInfo)
			e.finished = true
		}
		if strings.HasPrefix(event.Request.URL, "http") { // and not data:
			p.noted = append(p.noted, &exchange{id: event.RequestID, url: event.Request.URL})
		}
	case *network.EventRequestServedFromCache:
		if e := p.find(event.RequestID); e != nil {
			e.cached = true
		}
	case *network.EventResponseReceived:
		if e := p.find(event.RequestID); e != nil {
			e.answer(event.Response, event.HasExtraInfo)
		}
	case *network.EventResponseReceivedExtraInfo: // of another process: it comes also before the request, or after its end
		p.wire[event.RequestID] = append(p.wire[event.RequestID], event)
	case *network.EventLoadingFinished:
		if e := p.find(event.RequestID); e != nil {
			e.finished = true
		}
	case *network.EventLoadingFailed:
		if e := p.find(event.RequestID); e != nil {
			e.finished, e.failed = true, event.ErrorText
		}
	}
}

// find is the last exchange of the id; those before it were redirected.
func (p *tab) find(id network.RequestID) *exchange {
	for _, e := range slices.Backward(p.noted) {
		if e.id == id {
			return e
		}
	}
	return nil
}

func (e *exchange) answer(r *network.Response, more bool) {
	if !e.cached { // or both would be those of the response that is in the cache
		e.conn, e.hidden = int64(r.ConnectionID), more
	}
}

// reveal has the exchanges get what came over the wire, if it is known. Of one id there are several after a redirection.
func (p *tab) reveal() {
	for _, e := range p.noted {
		if known := p.wire[e.id]; e.hidden && len(known) > 0 {
			e.status, e.header, e.hidden = known[0].StatusCode, known[0].Headers, false
			p.wire[e.id] = known[1:]
		}
	}
}

// exchanges waits for the end of all that was begun, and returns and forgets it.
func (p *tab) exchanges(t *testing.T) (all []*exchange) {
	t.Helper()
	eventually(t, "the end of all requests", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reveal()
		if slices.ContainsFunc(p.noted, func(e *exchange) bool { return !e.finished || e.hidden }) {
			return false
		}
		all, p.noted = p.noted, nil
		return true
	})
	return all
}

// conns are the connections that the exchanges used, each once.
func conns(all []*exchange) (ids []int64) {
	for _, e := range all {
		if e.conn != 0 && !slices.Contains(ids, e.conn) {
			ids = append(ids, e.conn)
		}
	}
	return ids
}

// start serves the files of root, and shows an empty page from there, for scripts that fetch.
func start(t *testing.T, p *tab, root string) *server {
	t.Helper()
	put(t, root, "empty.html", []byte(`<link rel=icon href="data:,">`)) // or the browser would ask for /favicon.ico
	s := serve(t, root)
	require.EqualValues(t, 200, p.visit(t, s.url("/files/empty.html")))
	p.exchanges(t)
	return s
}

// visit goes to a page, and returns when all that belongs to it is loaded.
func (p *tab) visit(t *testing.T, url string) (status int64) {
	t.Helper()
	ctx, stop := context.WithTimeout(p.ctx, patience)
	defer stop()
	response, err := chromedp.Run(ctx, chromedp.NavigateResponse(url))
	require.NoError(t, err)
	return response.Status
}

// reload does what the button does.
func (p *tab) reload(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithTimeout(p.ctx, patience)
	defer stop()
	require.NoError(t, chromedp.Do(ctx, chromedp.Reload()))
}

// prelude is what scripts may use.
const prelude = `
	const hash = async content => {
		const sum = await crypto.subtle.digest("SHA-256", content);
		return [...new Uint8Array(sum)].map(b => b.toString(16).padStart(2, "0")).join("");
	};
	const get = (url, options) => fetch(url, {cache: "no-store", ...options});
`

// run calls a function in the page, and returns what it returns or its promise resolves to.
func run[T any](t *testing.T, p *tab, function string, arguments ...any) T {
	t.Helper()
	list, err := json.Marshal(append([]any{}, arguments...)) // also of none a list
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(p.ctx, patience)
	defer stop()
	script := "(async () => {" + prelude + "return await (" + function + ")(..." + string(list) + ")})()"
	result, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return result
}

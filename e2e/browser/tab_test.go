package browser

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// A tab shows one page at a time. Its cache and its connections are its own.
type tab struct{ ctx context.Context }

// open opens an empty tab for the length of the test.
func open(t *testing.T, browser context.Context) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		require.NoError(t, chromedp.Cancel(ctx))
		cancel()
	})
	require.NoError(t, chromedp.Do(ctx)) // the tab is there as long as the context of the first call for it
	return &tab{ctx}
}

// staysAt requires that the page has asked no other server than its own for anything.
func (p *tab) staysAt(t *testing.T, url string) {
	t.Helper()
	require.Equal(t, []string{url}, run[[]string](t, p, `() => [...new Set(performance.getEntriesByType("resource").map(
		e => new URL(e.name).origin))]`), "nothing is fetched from elsewhere")
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

// run calls a function in the page, and returns what it returns or its promise resolves to.
func run[T any](t *testing.T, p *tab, function string, arguments ...any) T {
	t.Helper()
	list, err := json.Marshal(append([]any{}, arguments...)) // also of none a list
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(p.ctx, patience)
	defer stop()
	script := "(" + function + ")(..." + string(list) + ")"
	result, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return result
}

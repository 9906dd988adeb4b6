package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// launch starts Chromium for the length of the test. The context is for tabs of it.
func launch(t *testing.T) context.Context {
	t.Helper()
	tier.Need(t, tier.Full, "uses the web server with a browser")
	path := tier.Tool(t, "chromium")
	home, said := t.TempDir(), &exectest.Log{}
	allocator, free := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.CombinedOutput(said),
		// The environment of the test, such as http_proxy, does not get in, and nothing gets out.
		chromedp.NoInheritEnv,
		chromedp.Env("PATH="+os.Getenv("PATH"), "HOME="+home, "TMPDIR="+home),
		chromedp.UserDataDir(home+"/profile"),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("ignore-certificate-errors", true), // of -tls-self
	)...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		in, stop := context.WithTimeout(ctx, patience)
		err := chromedp.Cancel(in)
		stop()
		cancel()
		free()
		if t.Failed() {
			t.Logf("%s said:\n%s", path, said)
		}
		require.NoError(t, err, "the browser does not end")
		// Zygotes and crash handlers end by themselves after the browser, as orphans.
		eventually(t, "the end of the last process of the browser", func() bool {
			_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			return err == unix.ECHILD
		})
	})
	require.NoError(t, chromedp.Do(ctx), "the browser does not start")
	return ctx
}

// TestMain makes this process the parent of all that its children leave behind (prctl(2)): so it can see whether they
// have, and no zombies stay where process 1 waits for no child, as in many containers.
func TestMain(m *testing.M) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "prctl(PR_SET_CHILD_SUBREAPER):", err)
		os.Exit(1)
	}
	exectest.Main(m)
}

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

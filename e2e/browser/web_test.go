package browser

import "testing"

// TestWeb starts one browser, which takes two seconds, and has each part use a tab and a server of its own.
func TestWeb(t *testing.T) {
	browser := launch(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *tab)
	}{
		{"a browser that reaches nothing else", nothingElse},
		{"a page of many files, interrupt", page("-idle", "interrupt")},
		{"a page of many files, poll", page("-idle", "poll")},
		{"a page of many files, hybrid", page("-idle", "hybrid")},
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
		{"an end with idle connections", endIdle},
		{"an end in the middle of a download", endBusy},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, open(t, browser)) })
	}
}

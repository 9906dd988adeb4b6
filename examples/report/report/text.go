package report

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// maxTop is how many words a report names.
const maxTop = 10

// buildReport is the processor of the second stage. It reads what the first stage stored, not the file, which may have
// changed.
func (w *Work) buildReport(ctx context.Context, t *stage.Task) (stage.Commit, error) {
	c, err := w.Reports.count(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for line := range strings.Lines(c.report(string(t.Data))) {
		text.WriteString(line)
		if err := w.rest(ctx); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, tx stage.Tx) error {
		return w.Reports.insertReport(ctx, tx, t.ID, text.String())
	}, nil
}

// report returns the text of a report.
func (c *count) report(path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nas it was on %s\n\n", path, c.changed.UTC().Format(time.DateTime+" MST"))
	fmt.Fprintf(&b, "%10d bytes\n%10d lines\n%10d words\n%10d different words\n", c.bytes, c.lines, c.words, c.different)
	if c.rest > 0 {
		fmt.Fprintf(&b, "%10d words were not told apart: too long, or too many different ones before\n", c.rest)
	}
	if len(c.top) > 0 {
		b.WriteString("\nThe most frequent words:\n\n")
	}
	for _, f := range c.top {
		fmt.Fprintf(&b, "%10d %5.1f %%  %s\n", f.n, 100*float64(f.n)/float64(c.words), f.word)
	}
	return b.String()
}

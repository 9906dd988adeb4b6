package inspect

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// table is rows as people read them: the same on the page and as text.
type table struct {
	Name  string     `json:"name"`
	Heads []string   `json:"heads"`
	Rows  [][]string `json:"rows"`
	Notes []string   `json:"notes"` // below the rows
}

func newTable(name string, heads ...string) *table {
	return &table{name, heads, [][]string{}, []string{}} // in JSON [], and not null
}

func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	t.Rows = append(t.Rows, row)
}

func (t *table) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// writeTo writes t as text, below an empty line. If there is nothing to say it writes nothing.
func (t *table) writeTo(out io.Writer) {
	if len(t.Rows)+len(t.Notes) == 0 {
		return
	}
	fmt.Fprintln(out)
	lines := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.Heads}, t.Rows...) {
		fmt.Fprintln(lines, strings.Join(row, "\t"))
	}
	_ = lines.Flush()
	for _, note := range t.Notes {
		fmt.Fprintln(out, note)
	}
}

// page is what the page shows, and the text has.
type page struct {
	Title    string   `json:"title,omitempty"`
	Findings []string `json:"findings"` // what needs attention, in sentences
	Tables   []*table `json:"tables"`
}

func (p *page) writeTo(out io.Writer) {
	if p.Title != "" {
		fmt.Fprintln(out, p.Title)
	}
	for _, f := range p.Findings {
		fmt.Fprintf(out, "! %s\n", f)
	}
	for _, t := range p.Tables {
		t.writeTo(out)
	}
}

// valid returns the bytes of a text as UTF-8, for Prometheus drops a page that is not: what an action or a peer says of
// itself may have others.
func valid(text []byte) []byte { return bytes.ToValidUTF8(text, []byte("\uFFFD")) }

// round leaves two or three digits of d.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// quantile returns a duration as text, a dash if there is none.
func quantile(h *histogram, q float64) string {
	if h.count() == 0 {
		return "-"
	}
	return fmt.Sprint(round(h.quantile(q)))
}

// rate returns how often something has happened in a second, a dash if no time has passed.
func rate(now, before uint64, passed time.Duration) string {
	if passed <= 0 || now < before {
		return "-"
	}
	n := float64(now-before) / passed.Seconds()
	if n > 0 && n < 10 {
		return fmt.Sprintf("%.2g", n)
	}
	return fmt.Sprintf("%.0f", n)
}

func percent(part, of time.Duration) string {
	if of <= 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", max(0, 100*part/of))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

package browser

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// queued works with the page of examples/jobs, from no task to two hundred, and keeps it open while the program is killed.
func queued(t *testing.T, p *tab) {
	db := filepath.Join(t.TempDir(), "jobs.db")
	start := func(addr string, flags ...string) *server {
		return listen(t, "jobs", append([]string{"-addr", addr, "-db", db, "-pace", "100ms", "-report", "0"}, flags...)...)
	}
	s := start("127.0.0.1:0")
	require.EqualValues(t, 200, p.visit(t, s.url("/")))
	p.shows(t, "state", "Live")
	p.shows(t, "none", "No tasks.")
	p.pictured(t, "jobs-empty")

	run[any](t, p, `() => { document.getElementById("n").value = 10000; document.getElementById("n").focus() }`)
	p.types(t, kb.Enter)
	p.shows(t, "said", "10,000 tasks are added.")
	p.shows(t, "sum", "at work")
	p.shows(t, "sum", "finished")
	p.choose(t, "which", "at work")
	p.rows(t, "at work")
	p.pictured(t, "jobs-work")

	p.clicks(t, "Pause mail")
	p.has(t, "Resume mail")
	eventually(t, "the end of the mails at work", func() bool { return p.label(t, "mail, at work") == "mail, at work: 0" })
	waiting := p.label(t, "mail, waiting")
	require.NotEqual(t, "mail, waiting: 0", waiting)

	// The newest mails wait now, and stay where they are.
	p.clicks(t, waiting)
	p.rows(t, "waiting")
	id := run[string](t, p, `() => document.querySelector("#tasks tbody button").textContent`)
	p.clicks(t, "Suspend task "+id)
	p.lacks(t, "Suspend task "+id)
	p.choose(t, "which", "suspended")
	p.clicks(t, "Resume task "+id)
	p.lacks(t, "Resume task "+id)
	p.choose(t, "which", "waiting")
	p.clicks(t, "Cancel task "+id)
	p.lacks(t, "Cancel task "+id)
	p.choose(t, "which", "cancelled")
	p.clicks(t, "Open task "+id)
	p.shows(t, "h-opened", "Task "+id+": mail, cancelled")
	p.types(t, kb.Escape)
	eventually(t, "the dialog to close", func() bool { return !run[bool](t, p, `() => document.getElementById("opened").open`) })
	require.Equal(t, "Open task "+id, run[string](t, p, `() => document.activeElement.ariaLabel`), "the focus is where it was")

	for _, kind := range []string{"picture", "invoice", "report"} { // no further task fails, so the list stays as it is
		p.clicks(t, "Pause "+kind)
		p.has(t, "Resume "+kind)
		atWork := kind + ", at work"
		eventually(t, "the end of those at work", func() bool { return p.label(t, atWork) == atWork+": 0" })
	}
	p.choose(t, "kind", "")
	p.choose(t, "which", "failed")
	p.rows(t, "failed")
	run[any](t, p, `() => { document.querySelector("#tasks tbody button").click() }`)
	eventually(t, "an error", func() bool { return run[bool](t, p, `() => document.querySelector("#errors pre") !== null`) })
	require.Regexp(t, `no luck this time|cannot be done`, p.text(t, "errors"))
	p.pictured(t, "jobs-error")
	p.types(t, kb.Escape)
	retry := p.tabsTo(t, "which", "Retry task ")
	p.types(t, kb.Enter)
	p.shows(t, "said", strings.Replace(retry, "Retry t", "T", 1)+": retry was asked for.")

	p.choose(t, "which", "")
	p.clicks(t, "Older")
	p.has(t, "Open task 9950")
	p.clicks(t, "Newest")
	p.has(t, "Open task 10000")

	before := p.label(t, "picture, waiting")
	s.Signal(t, syscall.SIGKILL)
	p.shows(t, "state", "Not connected")
	s = start(s.Addr)
	p.shows(t, "state", "Live")
	p.clicks(t, "Resume picture")
	p.has(t, "Pause picture")
	eventually(t, "the work to go on", func() bool { return p.label(t, "picture, waiting") != before })
	s.terminate(t)
	s.ends(t)
	p.shows(t, "state", "Not connected")

	p.staysAt(t, s.url(""))
}

// types presses a key.
func (p *tab) types(t *testing.T, key string) {
	t.Helper()
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(key)))
}

// tabsTo presses Tab, from the element with an id to the first button whose label begins so, and returns that label.
func (p *tab) tabsTo(t *testing.T, from, begin string) (label string) {
	t.Helper()
	run[any](t, p, `id => document.getElementById(id).focus()`, from)
	for range 40 {
		p.types(t, kb.Tab)
		if label = run[string](t, p, `() => document.activeElement.ariaLabel ?? ""`); strings.HasPrefix(label, begin) {
			return label
		}
	}
	require.FailNow(t, "no Tab reaches "+begin)
	return ""
}

// clicks clicks the button with a label or a text, once it is there.
func (p *tab) clicks(t *testing.T, label string) {
	t.Helper()
	eventually(t, "the button "+label, func() bool {
		return run[bool](t, p, `label => {
			const all = [...document.querySelectorAll("button")].filter(e => !e.hidden && !e.disabled);
			const e = all.find(e => (e.ariaLabel ?? e.textContent) === label);
			e?.focus();
			e?.click();
			return e !== undefined;
		}`, label)
	})
}

const labelled = `label => [...document.querySelectorAll("button")].some(e => !e.hidden && e.ariaLabel === label)`

// has waits for a button.
func (p *tab) has(t *testing.T, label string) {
	t.Helper()
	eventually(t, "a button "+label, func() bool { return run[bool](t, p, labelled, label) })
}

// lacks waits until there is no such button.
func (p *tab) lacks(t *testing.T, label string) {
	t.Helper()
	eventually(t, "no button "+label, func() bool { return !run[bool](t, p, labelled, label) })
}

// label returns the label of the button whose label begins with this.
func (p *tab) label(t *testing.T, begin string) string {
	t.Helper()
	return run[string](t, p, `begin => [...document.querySelectorAll("button")].find(e => e.ariaLabel?.startsWith(begin + ":"))?.ariaLabel ?? ""`,
		begin)
}

// choose chooses an option, as a person does.
func (p *tab) choose(t *testing.T, id, value string) {
	t.Helper()
	run[any](t, p, `(id, value) => {
		const e = document.getElementById(id);
		e.value = value;
		e.dispatchEvent(new Event("change"));
	}`, id, value)
}

// rows waits until there are tasks, all of one state.
func (p *tab) rows(t *testing.T, state string) {
	t.Helper()
	eventually(t, "tasks that are "+state, func() bool {
		states := run[[]string](t, p, `() => [...document.querySelectorAll("#tasks tbody tr")].map(e => e.dataset.state)`)
		return len(states) > 0 && strings.ReplaceAll(strings.Join(states, ""), state, "") == ""
	})
}

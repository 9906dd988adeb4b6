package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	runtimetrace "runtime/trace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/pool"
)

// kindLabel is the key of the label that says of what kind the action is whose turn it is, while a CPU profile is taken.
const kindLabel = "kind"

// profiling is set while turns are labelled.
var profiling atomic.Bool

func init() {
	pool.Unlabel = func() { pprof.SetGoroutineLabels(context.Background()) }
}

// labelTurns begins or ends to label turns, in all schedulers that are inspected, and their coroutines.
func labelTurns(on bool) { profiling.Store(on) }

// resumed gives a coroutine the labels of the present turn.
func (p *probe) resumed() {
	if p.labelled != nil && profiling.Load() {
		pprof.SetGoroutineLabels(p.labelled.labels)
	}
}

// label gives the scheduler's goroutine the label of a kind while turns are labelled. nil takes it away, and leaves that of the
// scheduler. It is called in a turn only while turns are labelled, or if the goroutine has such a label.
func (p *probe) label(k *kind) {
	if !profiling.Load() {
		k = nil
	}
	switch {
	case k == p.labelled, p.labels == nil:
		return
	case k == nil:
		pprof.SetGoroutineLabels(p.labels)
	default:
		if k.labels == nil {
			k.labels = pprof.WithLabels(p.labels, pprof.Labels(kindLabel, k.name))
		}
		pprof.SetGoroutineLabels(k.labels)
	}
	p.labelled = k
}

// What can be asked for at /debug/pprof/, with the parameters seconds, for the first two, or debug.
var profiles = []struct{ name, what string }{
	{"profile", "where the CPUs are used, for so many seconds (30): turns have the label kind"},
	{"trace", "what the Go runtime does, for so many seconds (1): for go tool trace"},
	{"heap", "memory that is in use; ?gc=1 collects garbage before"},
	{"allocs", "all memory that was allocated"},
	{"goroutine", "the stacks of all goroutines; ?debug=2 as text"},
	{"threadcreate", "what has started threads"},
	{"block", "where goroutines have waited, if the program has called runtime.SetBlockProfileRate"},
	{"mutex", "where locks were held, if the program has called runtime.SetMutexProfileFraction"},
}

const (
	profileDefault, profileMost = 30, 120 // seconds
	traceDefault, traceMost     = 1, 10   // seconds
	traceBytes                  = 64 << 20
)

// profileList says what there is.
func profileList(w *httpd.Response, _ *httpd.Request) act.Action {
	w.Add("Content-Type", plainText)
	var out strings.Builder
	out.WriteString("go tool pprof 'http://HOST/debug/pprof/NAME?token=TOKEN', where NAME is one of\n")
	rows := table(&out, "NAME", "WHAT")
	for _, p := range profiles {
		rows.add(p.name, p.what)
	}
	rows.end()
	_, _ = w.WriteString(out.String())
	return nil
}

// profile answers with a profile, or an execution trace.
func (v *site) profile(w *httpd.Response, r *httpd.Request) act.Action {
	name := string(r.Value("name"))
	seconds, debug := parameter(r, "seconds"), parameter(r, "debug")
	var take func(gone <-chan struct{}) ([]byte, error)
	switch known := pprof.Lookup(name); {
	case name == "profile" || name == "trace":
		n, most := profileDefault, profileMost
		if name == "trace" {
			n, most = traceDefault, traceMost
		}
		if seconds != "" {
			var err error
			if n, err = strconv.Atoi(seconds); err != nil || n < 1 || n > most {
				return refuse(w, 400, fmt.Sprintf("The seconds have to be a number from 1 to %d.\n", most))
			}
		}
		start, stop := startProfile, stopProfile
		if name == "trace" {
			start, stop = startTrace, runtimetrace.Stop
		}
		take = func(gone <-chan struct{}) ([]byte, error) {
			return takeFor(start, stop, time.Duration(n)*time.Second, gone)
		}
	case known == nil:
		return refuse(w, 404, "There is no such profile.\n")
	case seconds != "":
		return refuse(w, 400, "Only profile and trace take seconds.\n")
	default:
		level, err := strconv.Atoi(debug)
		if debug != "" && err != nil {
			return refuse(w, 400, "Debug has to be a number.\n")
		}
		collect := name == "heap" && parameter(r, "gc") != ""
		take = func(<-chan struct{}) ([]byte, error) {
			if collect {
				runtime.GC()
			}
			var out bytes.Buffer
			err := known.WriteTo(&out, level)
			return out.Bytes(), err
		}
	}
	kind := "application/octet-stream"
	if debug != "" && debug != "0" {
		kind = plainText
	}
	return v.taking(w, r, kind, take)
}

// taking returns an action that answers with what take returns, which may take long.
func (v *site) taking(w *httpd.Response, r *httpd.Request, kind string, take func(gone <-chan struct{}) ([]byte, error)) act.Action {
	x := &taking{w: w, r: r, kind: kind, gone: make(chan struct{})}
	x.ask.F = func() (taken, error) {
		defer v.underway.Done()
		body, err := take(x.gone)
		return taken{body, err}, nil
	}
	x.begin = func() { v.underway.Add(1) }
	return x
}

// taking is the action that waits for a profile, or for the second of two Reports.
type taking struct {
	w     *httpd.Response
	r     *httpd.Request
	begin func()
	ask   act.Call[taken]
	kind  string        // of content
	gone  chan struct{} // closed when nobody waits any more
}

type taken struct {
	body []byte
	err  error
}

func (x *taking) Act(t *act.Task) act.Directive {
	if x.r.Ended(t) {
		return act.Done
	}
	if x.begin != nil {
		x.begin()
		x.begin = nil
	}
	if d := x.ask.Act(t); d != act.Done {
		return d
	}
	if err := x.ask.Value.err; err != nil {
		refuse(x.w, 503, err.Error()+"\n")
		return act.Done
	}
	x.w.Add("Content-Type", x.kind)
	x.w.SetBody(x.ask.Value.body)
	return act.Done
}

// Close ends the profile if it is still taken.
func (x *taking) Close() error {
	close(x.gone)
	return x.ask.Close()
}

// exclusive is held while a profile or a trace is taken, of which there is one at a time.
var exclusive sync.Mutex

var errBusy = errors.New("another profile or trace is being taken")

// takeFor has something run for a time, less if gone is closed, and returns what it has written.
func takeFor(start func(*bounded) error, stop func(), d time.Duration, gone <-chan struct{}) ([]byte, error) {
	if !exclusive.TryLock() {
		return nil, errBusy
	}
	defer exclusive.Unlock()
	var out bounded
	if err := start(&out); err != nil {
		return nil, err
	}
	waitFor(d, gone)
	if stop(); out.full.Load() {
		return nil, fmt.Errorf("what was taken in %v is larger than %d MiB", d, traceBytes>>20)
	}
	return out.Bytes(), nil
}

// waitFor returns after a time, or when gone is closed.
func waitFor(d time.Duration, gone <-chan struct{}) {
	end := time.NewTimer(d)
	defer end.Stop()
	select {
	case <-end.C:
	case <-gone:
	}
}

func startProfile(out *bounded) error {
	if err := pprof.StartCPUProfile(out); err != nil {
		return err // the program takes one itself
	}
	labelTurns(true)
	return nil
}

func stopProfile() {
	labelTurns(false)
	pprof.StopCPUProfile()
}

func startTrace(out *bounded) error { return runtimetrace.Start(out) }

// bounded keeps at most traceBytes.
type bounded struct {
	bytes.Buffer
	full atomic.Bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > traceBytes {
		b.full.Store(true)
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

package process_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/process"
)

// Also a Watch of a process that has ended.
func TestEachWatchSendsOneNotice(t *testing.T) {
	x := newStepped(t, 2)
	ref := x.spawn(process.Options{})
	before := process.Ended(ref)
	require.Same(t, before, process.Ended(ref), "each call returns the same future")
	early := x.watcher(ref, ref, ref)
	x.do(ref, fails)
	want := process.Notice{Of: ref, Reason: process.Failed, Err: errFailed}
	require.Equal(t, []process.Notice{want, want, want}, early.heard())
	require.Equal(t, []process.Notice{want, want}, x.watcher(ref, ref).heard())
	for _, f := range []*future.Future[process.Notice]{before, process.Ended(ref)} {
		n, err := f.Value()
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
}

func TestNoticesArriveInTheOrderOfTheWatches(t *testing.T) {
	x := newStepped(t, 1)
	ref := x.spawn(process.Options{})
	log := ""
	x.do(x.spawn(process.Options{}), func(p *jobSelf) {
		for _, name := range []string{"a", "b", "c", "d"} {
			w := process.Watch(p, ref, func(process.Notice) job { return func(*jobSelf) { log += name } })
			if name == "b" {
				require.True(t, w.Cancel())
			}
		}
	})
	x.do(ref, exits)
	require.Equal(t, "acd", log)
}

// Else a thief could end a linked process, and notify of that, in between.
func TestNoticesComeBeforeLinksAreObeyed(t *testing.T) {
	x := newStepped(t, 1)
	first, second, third := x.spawn(process.Options{}), x.spawn(process.Options{}), x.spawn(process.Options{})
	process.Link(third, second, false)
	process.Link(first, second, false)
	var order []process.AnyRef
	x.do(x.spawn(process.Options{}), func(p *jobSelf) {
		for i, of := range []process.Ref[job]{first, second, third} {
			process.Watch(p, of, func(n process.Notice) job {
				if i == 0 {
					require.True(t, second.Kill(), "it was not killed before")
				}
				return func(*jobSelf) { order = append(order, n.Of) }
			})
		}
	})
	x.do(first, fails)
	require.Equal(t, []process.AnyRef{first, second, third}, order)
}

func TestCancelOfAWatch(t *testing.T) {
	x := newStepped(t, 2)
	ref, h := x.spawn(process.Options{}), x.spawn(process.Options{})
	heard := 0
	watch := func(p *jobSelf) process.Operation {
		return process.Watch(p, ref, func(process.Notice) job { return func(*jobSelf) { heard++ } })
	}
	var before, after process.Operation
	x.do(h, func(p *jobSelf) {
		before, after = watch(p), watch(p)
		require.True(t, before.Cancel())
		require.False(t, before.Cancel(), "a second call")
	})
	ref.Kill()
	x.all()
	require.Equal(t, 1, heard)
	require.False(t, after.Cancel(), "the Notice has arrived")
	x.do(h, func(p *jobSelf) { require.False(t, watch(p).Cancel(), "the Notice came at once") })
	require.Equal(t, 2, heard)
}

func TestLink(t *testing.T) {
	for _, row := range []struct {
		end      job
		reason   process.Reason
		abnormal bool
	}{
		{exits, process.Normal, false},
		{fails, process.Failed, true},
		{panics, process.Panicked, true},
		{func(p *jobSelf) { p.Kill() }, process.Killed, true},
		{func(p *jobSelf) { // through another process
			other := process.Spawn(p, runJobs, process.Options{})
			process.Link(p, other, false)
			other.Kill()
		}, process.Linked, true},
	} {
		first := "a has ended: " + row.reason.String()
		if row.reason == process.Linked {
			first = "has ended: killed" // the error is about the first end of the chain
		}
		for rule, carries := range map[bool]bool{false: row.abnormal, true: true} {
			for _, turned := range []bool{false, true} {
				for _, dead := range []bool{false, true} {
					name := fmt.Sprintf("%v, always %v, turned %v, already ended %v", row.reason, rule, turned, dead)
					t.Run(name, func(t *testing.T) {
						x := newStepped(t, 2)
						a, b := x.spawn(process.Options{Name: "a"}), x.spawn(process.Options{Name: "b"})
						link := func() {
							if turned {
								process.Link(b, a, rule)
							} else {
								process.Link(a, b, rule)
							}
						}
						ha, hb := x.watcher(a), x.watcher(b)
						if !dead {
							link()
						}
						x.do(a, row.end)
						if dead {
							require.Empty(t, hb.heard())
							link()
							x.all()
						}
						require.Equal(t, []process.Reason{row.reason}, ha.reasons())
						if !carries {
							require.Empty(t, hb.heard())
							return
						}
						n := onlyOne(t, hb.heard())
						require.Equal(t, process.Linked, n.Reason)
						require.ErrorContains(t, n.Err, first)
						if cause := onlyOne(t, ha.heard()).Err; cause != nil {
							require.ErrorIs(t, n.Err, cause)
						}
					})
				}
			}
		}
	}
}

func TestCancelOfLinks(t *testing.T) {
	x := newStepped(t, 2)
	a, b, c := x.spawn(process.Options{}), x.spawn(process.Options{}), x.spawn(process.Options{})
	h := x.watcher(a, b, c)
	require.True(t, process.Link(a, c, true).Cancel())
	require.False(t, process.Link(a, a, true).Cancel(), "a link to itself has no effect")
	links := []process.Operation{}
	for range 3 {
		links = append(links, process.Link(a, b, true), process.Link(b, a, true))
	}
	for _, link := range links[1:] {
		require.True(t, link.Cancel())
		require.False(t, link.Cancel())
	}
	a.Kill() // one link is left
	x.all()
	require.Equal(t, []process.Reason{process.Killed, process.Linked}, h.reasons())
	require.False(t, links[0].Cancel())
}

package process_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
)

func TestEachWatchSendsOneNotice(t *testing.T) {
	x := newStepped(t, 2)
	ref := x.spawn(process.Options{})
	once, scaled := x.watcher(ref), x.watcher(ref, ref, ref, ref, ref)
	x.do(ref, fails)
	want := process.Notice{Of: ref, Reason: process.Failed, Err: errFailed}
	require.Equal(t, []process.Notice{want}, once.heard())
	require.Equal(t, []process.Notice{want, want, want, want, want}, scaled.heard())
	require.False(t, ref.Kill())
	x.all()
	require.Len(t, scaled.heard(), 5)
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
					require.NotContains(t, x.sys.States(), "killed")
				}
				return func(*jobSelf) { order = append(order, n.Of) }
			})
		}
	})
	x.do(first, fails)
	require.Equal(t, []process.AnyRef{first, second, third}, order)
}

func TestWatchOfAnEndedProcess(t *testing.T) {
	x := newStepped(t, 1)
	ref := x.spawn(process.Options{})
	x.do(ref, panics)
	h := x.watcher(ref, ref)
	require.Equal(t, []process.Reason{process.Panicked, process.Panicked}, h.reasons())
	require.Equal(t, h.heard()[0], h.heard()[1])
}

func TestNoBoundRefusesANotice(t *testing.T) {
	for _, full := range []process.Overflow{process.Block, process.Drop, process.Reject} {
		x := newStepped(t, 1)
		log := ""
		note := func(text string) job { return func(*jobSelf) { log += text } }
		ref, h := x.spawn(process.Options{}), x.spawn(process.Options{Limit: 1, Overflow: full})
		x.do(h, func(p *jobSelf) {
			for range 3 {
				process.Watch(p, ref, func(process.Notice) job { return note("notice ") })
			}
		})
		require.NoError(t, h.Send(x.sys, note("message ")))
		ref.Kill()
		x.only(0)
		require.Equal(t, "message notice notice notice ", log)
		require.Zero(t, x.sys.Stats().Dropped)
	}
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

// Watches of processes that have ended leave no memory with the process that they watched.
func TestEndedWatchersAreForgotten(t *testing.T) {
	x := newStepped(t, 1)
	target := process.Spawn(x.sys, runJobs, process.Options{Limit: process.Unbounded})
	parent := x.spawn(process.Options{})
	watchers := func(n int) {
		x.do(parent, func(p *jobSelf) {
			for range n {
				ref := process.Spawn(p, process.Func[job](func(p *jobSelf) act.Directive {
					process.Watch(p, target, func(process.Notice) job { t.Error("the watcher has ended"); return exits })
					return act.Done
				}), process.Options{})
				if n%100 == 0 {
					process.Link(ref, target, false)
				}
			}
		})
	}
	watchers(1000)
	before := heapInUse()
	for range 100 {
		watchers(1000)
	}
	require.Less(t, heapInUse()-before, int64(1<<20))
	x.do(target, exits)
	require.EqualValues(t, 1, x.sys.Stats().Alive)
}

func TestAPanicInAsOfWatchAffectsNoOtherProcess(t *testing.T) {
	x := newStepped(t, 1)
	ref, h := x.spawn(process.Options{Name: "bob"}), x.spawn(process.Options{})
	x.do(h, func(p *jobSelf) { process.Watch(p, ref, func(process.Notice) job { panic("burst") }) })
	other := x.watcher(ref)
	x.do(ref, exits)
	require.Equal(t, []process.Reason{process.Normal}, other.reasons())
	entry := onlyOne(t, x.logs.All())
	require.Equal(t, "the end of a process has panicked", entry.Message)
	require.Equal(t, "bob", entry.ContextMap()["process"])
	alive := false
	x.do(h, func(*jobSelf) { alive = true })
	require.True(t, alive)
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

func TestSeveralLinksBetweenTheSameTwo(t *testing.T) {
	x := newStepped(t, 2)
	a, b := x.spawn(process.Options{}), x.spawn(process.Options{})
	h := x.watcher(a, b)
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

func TestCancelOfALink(t *testing.T) {
	x := newStepped(t, 2)
	a, b := x.spawn(process.Options{}), x.spawn(process.Options{})
	h := x.watcher(b)
	require.True(t, process.Link(a, b, true).Cancel())
	a.Kill()
	x.all()
	require.Empty(t, h.heard())
}

func TestALinkOfAProcessToItselfHasNoEffect(t *testing.T) {
	x := newStepped(t, 1)
	a := x.spawn(process.Options{})
	h := x.watcher(a)
	require.False(t, process.Link(a, a, true).Cancel())
	x.do(a, exits)
	require.Equal(t, []process.Reason{process.Normal}, h.reasons())
}

func TestLinksInACircle(t *testing.T) {
	for _, rule := range []bool{false, true} {
		x := newStepped(t, 2)
		all := []process.AnyRef{}
		for range 100 {
			all = append(all, x.spawn(process.Options{}))
		}
		for i := range all {
			process.Link(all[i], all[(i+1)%len(all)], rule)
			process.Link(all[i], all[(i*7+3)%len(all)], rule)
		}
		h := x.watcher(all...)
		all[50].Kill()
		x.all()
		require.Len(t, h.heard(), 100)
		require.EqualValues(t, 100, x.sys.Stats().Ended)
		require.Equal(t, process.Killed, h.reasons()[0])
		require.Equal(t, process.Linked, h.reasons()[99])
	}
}

// The memory that the notices take grows with the length of the chain, not with its square.
func TestALongChainOfLinksTakesLittleMemory(t *testing.T) {
	x := newStepped(t, 1)
	const length = 3000
	all := make([]process.Ref[job], length)
	for i := range all {
		all[i] = x.spawn(process.Options{})
		if i > 0 {
			process.Link(all[i-1], all[i], false)
		}
	}
	x.all()
	before := heapInUse()
	x.do(all[0], fails)
	require.EqualValues(t, length, x.sys.Stats().Ended)
	require.Less(t, heapInUse()-before, int64(length*1000), "bytes")
	require.ErrorIs(t, x.watcher(all[length-1]).heard()[0].Err, errFailed)
}

// Both ends of a link end on two schedulers at the same time, once each.
func TestLinkedProcessesEndAtTheSameTime(t *testing.T) {
	const batch = 200
	batches := scaled(100_000) / batch
	x := startLive(t, act.Config{Schedulers: 2})
	reasons := map[process.Reason]int{}
	h := &watcher{Ref: process.Spawn(x.sys, runJobs, process.Options{Limit: process.Unbounded})}
	for range batches {
		pairs := [batch][2]process.Ref[job]{}
		x.do(h.Ref, func(p *jobSelf) {
			for i := range pairs {
				a, b := process.Spawn(p, runJobs, process.Options{}), process.Spawn(p, runJobs, process.Options{})
				pairs[i] = [2]process.Ref[job]{a, b}
				process.Watch(p, a, h.take)
				process.Watch(p, b, h.take)
				process.Link(a, b, false)
			}
		})
		var both sync.WaitGroup
		for side := range 2 {
			both.Go(func() {
				for _, pair := range pairs {
					_ = pair[side].Send(x.sys, fails)
				}
			})
		}
		both.Wait()
		x.quiesce()
		require.Len(t, h.heard(), 2*batch)
		seen := map[uint64]bool{}
		for _, n := range h.heard() {
			require.False(t, seen[n.Of.ID()])
			seen[n.Of.ID()] = true
			reasons[n.Reason]++
			require.ErrorIs(t, n.Err, errFailed)
		}
		h.notices = nil
	}
	require.Equal(t, 2*batch*batches, reasons[process.Failed]+reasons[process.Linked])
	t.Log(reasons)
	x.do(h.Ref, exits)
	x.close()
}

func TestANoticeFindsAProcessThatHasMoved(t *testing.T) {
	x := newStepped(t, 2)
	ref, h := x.spawn(process.Options{}), &watcher{Ref: x.spawn(process.Options{})}
	x.on(0, h.Ref, func(p *jobSelf) { process.Watch(p, ref, h.take) })
	x.on(1, h.Ref, func(*jobSelf) {})
	x.on(0, ref, exits)
	x.only(1)
	x.clock.pass(time.Second)
	x.all()
	require.Equal(t, []process.Reason{process.Normal}, h.reasons())
}

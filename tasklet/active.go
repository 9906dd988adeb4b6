package tasklet

import (
	"hash/maphash"
	"sync"
)

// active holds the tasklets that are in a phase, of all runners: none is ever in two. They are few at any moment, so
// slices suffice, divided into shards so that runners seldom contend. The hash decides the shard.
var active shards

var seed = maphash.MakeSeed()

type shards [64]shard

type shard struct {
	mu sync.Mutex // taken under core.mu, never the other way round
	in []activePhase
	_  [32]byte // to a cache line
}

type activePhase struct {
	tasklet Tasklet
	retry   []*entry // continued when the phase has ended
}

// enter begins a phase of t and reports true, unless t is in one. Then retried, if it is not nil, is remembered, once.
// The core of retried is locked.
func (s *shards) enter(t Tasklet, hash uint64, retried *entry) bool {
	sh := &s[hash%uint64(len(s))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := range sh.in {
		if p := &sh.in[i]; p.tasklet == t {
			if retried != nil && !retried.retried {
				retried.retried = true
				p.retry = append(p.retry, retried)
			}
			return false
		}
	}
	sh.in = append(sh.in, activePhase{tasklet: t})
	return true
}

// leave ends the phase of t and returns the entries to be continued.
func (s *shards) leave(t Tasklet, hash uint64) []*entry {
	sh := &s[hash%uint64(len(s))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := range sh.in {
		if p := sh.in[i]; p.tasklet == t {
			last := len(sh.in) - 1
			sh.in[i], sh.in[last] = sh.in[last], activePhase{}
			sh.in = sh.in[:last]
			return p.retry
		}
	}
	panic("tasklet: a phase ended that never began; this is a bug of tasklet")
}

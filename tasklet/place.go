package tasklet

import (
	"hash/maphash"
	"sync"
)

// queue is a FIFO of entries that any of them may leave. The zero queue is empty.
type queue struct{ head, tail *entry }

func (q *queue) push(e *entry) {
	if e.prev = q.tail; e.prev == nil {
		q.head = e
	} else {
		e.prev.next = e
	}
	q.tail = e
}

func (q *queue) remove(e *entry) {
	if e.prev == nil {
		q.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		q.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

// occupied has the tasklets that are in a phase, of all schedulers: none is ever in two. Those are few at
// any moment, so a slice will do, and it is divided so that schedulers seldom meet. Which shard a tasklet is
// in is a matter of chance, and shows nowhere.
var occupied shards

var seed = maphash.MakeSeed()

type shards [64]shard

type shard struct {
	mu sync.Mutex // taken under core.mu, never the other way round
	in []occupant
	_  [32]byte // to a cache line
}

type occupant struct {
	tasklet  Tasklet
	patients []*entry // to be told when it leaves
}

func (s *shards) hash(t Tasklet) uint64 { return maphash.Comparable(seed, t) }

// enter has t in a phase, unless it is in one. Then patient, if it is not nil, is remembered, once; its core is
// locked.
func (s *shards) enter(t Tasklet, hash uint64, patient *entry) bool {
	sh := &s[hash%uint64(len(s))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := range sh.in {
		if o := &sh.in[i]; o.tasklet == t {
			if patient != nil && !patient.patient {
				patient.patient = true
				o.patients = append(o.patients, patient)
			}
			return false
		}
	}
	sh.in = append(sh.in, occupant{tasklet: t})
	return true
}

// leave takes it out again and returns who is to be told.
func (s *shards) leave(t Tasklet, hash uint64) []*entry {
	sh := &s[hash%uint64(len(s))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := range sh.in {
		if o := sh.in[i]; o.tasklet == t {
			last := len(sh.in) - 1
			sh.in[i], sh.in[last] = sh.in[last], occupant{}
			sh.in = sh.in[:last]
			return o.patients
		}
	}
	panic("tasklet: the end of a phase that never began; this is a bug of tasklet")
}

package inspect

import (
	"time"

	"github.com/daimon-go/daimon/act"
)

const (
	// ringSize is how many events of a scheduler are kept: a power of two. At 100,000 messages a second these are 10 ms.
	ringSize = 2048
	// within bounds the events that are kept of one turn, pass or sleep: one turn that wakes very many tasks must leave what
	// was before.
	within = 256
)

// event is something that has happened on a scheduler, in one word:
//
//	4 bits  what
//	1       changes whenever the ring begins anew
//	59      a time since the probe was made, in ns; or a number of events; or
//	        3   the directive of a turn
//	        23  the id of a task: its place, see act
//	        21  a descriptor and 1; 0: none, or too large
//	        12  the number of a kind
type event uint64

const (
	lapBit         event = 1 << 4
	countShift           = 5
	directiveShift       = 5
	idShift              = 8
	fdShift              = 31
	kindShift            = 52

	maxID   = 1<<(fdShift-idShift) - 1
	maxFD   = 1<<(kindShift-fdShift) - 2
	maxKind = 1<<(64-kindShift) - 1
)

// What has happened.
const (
	_ event = iota
	passBegan
	sleepBegan
	sleepEnded
	runEnded // or Step
	others   // so many events that had no place
	inTurn
	spawned
	woken
	told
	dropped
	failed   // outside of a turn
	panicked // outside of a turn
)

var eventNames = [...]string{
	passBegan: "pass", sleepBegan: "asleep", sleepEnded: "awake", runEnded: "Run or Step returned", others: "and more",
	inTurn: "turn", spawned: "spawned", woken: "woken", told: "told of a shutdown", dropped: "dropped", failed: "failed",
	panicked: "panicked",
}

// directive is a Directive, or one of the constants below for turns that end without one.
type directive = act.Directive

const (
	unended      directive = 0
	byPanic      directive = 6
	maxDirective directive = 7
)

func eventOf(what event, kind, id uint32) event {
	return what | event(min(id, maxID))<<idShift | event(kind)<<kindShift
}

func timed(what event, at time.Duration) event { return what | event(at)<<countShift }

func withDirective(v directive) event { return event(min(v, maxDirective)) << directiveShift }

func withFD(fd int32) event {
	if fd < 0 || fd > maxFD {
		return 0
	}
	return event(fd+1) << fdShift
}

// lap is the lapBit of the event with this number.
func lap(number uint64) event { return event(number/ringSize&1) * lapBit }

func (e event) what() event          { return e & (lapBit - 1) }
func (e event) directive() directive { return directive(e >> directiveShift & 7) }
func (e event) id() uint32           { return uint32(e >> idShift & maxID) }
func (e event) fd() int32            { return int32(e>>fdShift&(maxFD+1)) - 1 }
func (e event) kind() uint32         { return uint32(e >> kindShift) }
func (e event) count() uint64        { return uint64(e >> countShift) }

// time is that of a pass, or of the begin or the end of a sleep.
func (e event) time() time.Duration { return time.Duration(e >> countShift) }

func (e event) isTimed() bool { return e.what() <= sleepEnded }

// Package loan has the memory that the streams of a scheduler lend: see monitor.Stream.
package loan

import "github.com/daimon-go/daimon/internal/hook"

const (
	// size is what one loan can be at most, and what all loans of a turn share.
	size = 64 << 10
	// least is the least that is offered; below it fresh memory is made.
	least = 4 << 10
)

// Memory is lent until the turn ends, and then again. The zero Memory has nothing yet.
type Memory struct {
	bytes []byte
	lent  int    // until the turn ends
	turn  uint64 // the turn of lent
}

// Room returns memory for a loan of the present turn of s, at least 4 KiB. What a turn was lent stays valid until all
// functions of AtTurnEnd have run.
func (m *Memory) Room(s any) []byte {
	if now := hook.TurnCount(s); m.turn != now {
		m.turn, m.lent = now, 0
	}
	if len(m.bytes)-m.lent < least {
		m.bytes, m.lent = make([]byte, size), 0 // the old one may be lent until the end of the turn; then it is the collector's
	}
	return m.bytes[m.lent:]
}

// Lend lends the first n bytes of the Room.
func (m *Memory) Lend(n int) []byte {
	p := m.bytes[m.lent : m.lent+n : m.lent+n]
	m.lent += n
	return p
}

// Lent returns how many bytes are lent in the turn of the latest Room.
func (m *Memory) Lent() int { return m.lent }

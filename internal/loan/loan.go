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
	blocks [][]byte // in the order in which a turn uses them
	used   int      // of blocks, before the present one
	bytes  []byte   // the present one
	lent   int      // of it, until the turn ends
	turn   uint64   // the turn of used and lent
}

// kept is how many blocks are kept for the next turns. What a turn is lent beyond them is the collector's.
const kept = 4

// Room returns memory for a loan of the present turn of s, at least 4 KiB. What a turn was lent stays valid until all
// functions of AtTurnEnd have run.
func (m *Memory) Room(s any) []byte {
	now := hook.TurnCount(s)
	switch {
	case m.turn != now && len(m.blocks) > 0:
		m.turn, m.used, m.lent, m.bytes = now, 0, 0, m.blocks[0]
	case len(m.bytes)-m.lent < least:
		m.turn, m.lent = now, 0
		m.bytes = m.next()
	}
	return m.bytes[m.lent:]
}

// next returns the next block.
func (m *Memory) next() []byte {
	if m.used++; m.used < len(m.blocks) {
		return m.blocks[m.used]
	}
	b := make([]byte, size)
	if len(m.blocks) < kept {
		m.used = len(m.blocks)
		m.blocks = append(m.blocks, b)
	}
	return b
}

// Lend lends the first n bytes of the Room.
func (m *Memory) Lend(n int) []byte {
	p := m.bytes[m.lent : m.lent+n : m.lent+n]
	m.lent += n
	return p
}

// Lent returns how many bytes are lent in the turn of the latest Room.
func (m *Memory) Lent() int { return m.lent }

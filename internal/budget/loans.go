package budget

import "github.com/daimon-go/daimon/act"

const (
	// loanBlock is what one loan can be at most, and what all loans of a turn share.
	loanBlock = 64 << 10
	// leastLoan is the least that is offered; below it fresh memory is made.
	leastLoan = 4 << 10
)

// Loans is the memory that streams lend until a turn ends: see monitor.Stream. The zero Loans has nothing yet.
type Loans struct {
	blocks [][]byte // in the order in which a turn uses them
	used   int      // of blocks, before the present one
	bytes  []byte   // the present one
	lent   int      // of it, until the turn ends
	turn   uint64   // the turn of used and lent
}

// keptBlocks is how many blocks are kept for the next turns. Further blocks are left to the garbage collector.
const keptBlocks = 4

// Room returns memory for a loan of the present turn of s, at least 4 KiB. Lent memory stays valid until all
// functions of AtTurnEnd have run.
func (m *Loans) Room(s *act.Scheduler) []byte {
	now := s.Internals().TurnCount()
	switch {
	case m.turn != now && len(m.blocks) > 0:
		m.turn, m.used, m.lent, m.bytes = now, 0, 0, m.blocks[0]
	case len(m.bytes)-m.lent < leastLoan:
		m.turn, m.lent = now, 0
		m.bytes = m.next()
	}
	return m.bytes[m.lent:]
}

// next returns the next block.
func (m *Loans) next() []byte {
	if m.used++; m.used < len(m.blocks) {
		return m.blocks[m.used]
	}
	b := make([]byte, loanBlock)
	if len(m.blocks) < keptBlocks {
		m.used = len(m.blocks)
		m.blocks = append(m.blocks, b)
	}
	return b
}

// Lend lends the first n bytes of the Room.
func (m *Loans) Lend(n int) []byte {
	p := m.bytes[m.lent : m.lent+n : m.lent+n]
	m.lent += n
	return p
}

// Lent returns how many bytes are lent in the turn of the latest Room.
func (m *Loans) Lent() int { return m.lent }

package load

import "bytes"

// Talk is what a client sends again and again, and the exact answer that it requires.
type Talk struct {
	Say, Hear []byte

	// Phases is the number of phases; 0 means 1. Messages and answers have Phases-1 further bytes. Each exchange begins
	// one byte later than the one before, and after Phases exchanges at the front again. So no answer is mistaken for
	// an older one.
	Phases int

	// Hole is a stretch of each Period of an answer in which any bytes will do. Period 0: there is none.
	Period, Hole, HoleLen int
}

// bytes that are under way at a time, in each direction.
func (t Talk) lens() (say, hear int) {
	return len(t.Say) - t.phases() + 1, len(t.Hear) - t.phases() + 1
}

func (t Talk) phases() int { return max(1, t.Phases) }

// Heard reports whether answer is the expected answer of the first phase.
func (t Talk) Heard(answer []byte) bool {
	_, n := t.lens()
	return len(answer) == n && bytes.Equal(t.filled(answer), t.filled(t.Hear[:n]))
}

// filled is a copy of an answer with nothing in its holes.
func (t Talk) filled(answer []byte) []byte {
	c := bytes.Clone(answer)
	for at := t.Hole; t.Period > 0 && at < len(c); at += t.Period {
		clear(c[at : at+t.HoleLen])
	}
	return c
}

package load

import "bytes"

// Talk is what a client says, and what it has to hear in answer, again and again, to the letter.
type Talk struct {
	Say, Hear []byte

	// Phases, 0 meaning 1: there are so many bytes, less one, behind what is said at a time and behind what
	// is heard; each exchange begins one byte later than the one before, and then from the front again. So
	// no answer is mistaken for an older one.
	Phases int

	// Hole is a stretch of each Period of an answer in which any bytes will do. Period 0: there is none.
	Period, Hole, HoleLen int
}

// bytes that are under way at a time, in each direction.
func (t Talk) lens() (say, hear int) {
	return len(t.Say) - t.phases() + 1, len(t.Hear) - t.phases() + 1
}

func (t Talk) phases() int { return max(1, t.Phases) }

// Heard tells whether answer is what is to be heard in the first phase.
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

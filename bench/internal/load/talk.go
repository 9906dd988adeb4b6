package load

import "bytes"

// Talk is what a client sends again and again, and the exact answer that it requires.
type Talk struct {
	Say, Hear []byte

	// Phases is the number of phases; 0 means 1. Messages and answers have Phases-1 further bytes. Each exchange begins
	// one byte later than the one before, and after Phases exchanges at the front again. So no answer is mistaken for
	// an older one.
	Phases int
	// Apart reports whether an exchange begins after the end of the one before, and not one byte later. Then Say and
	// Hear have the messages and the answers of all phases, one after the other.
	Apart bool

	// Opening is a request of HTTP that each connection begins with, if it is not empty. The answer is 101 (Switching
	// Protocols). Only c/load.c sends it.
	Opening []byte

	// Hole is a stretch of each Period of an answer in which any bytes will do. Period 0: there is none.
	Period, Hole, HoleLen int
}

// bytes that are under way at a time, in each direction.
func (t Talk) lens() (say, hear int) {
	if t.Apart {
		return len(t.Say) / t.phases(), len(t.Hear) / t.phases()
	}
	return len(t.Say) - t.phases() + 1, len(t.Hear) - t.phases() + 1
}

// start returns where a phase begins in Say or Hear, with messages of that size.
func (t Talk) start(phase, size int) int {
	if t.Apart {
		return phase * size
	}
	return phase
}

func (t Talk) phases() int { return max(1, t.Phases) }

// Count returns the number of phases.
func (t Talk) Count() int { return t.phases() }

// Message returns the message of a phase.
func (t Talk) Message(phase int) []byte {
	n, _ := t.lens()
	return t.Say[t.start(phase, n):][:n]
}

// Answer returns the answer of a phase.
func (t Talk) Answer(phase int) []byte {
	_, n := t.lens()
	return t.Hear[t.start(phase, n):][:n]
}

// Same reports whether two answers are equal but for their holes.
func (t Talk) Same(a, b []byte) bool {
	if t.Period == 0 {
		return bytes.Equal(a, b)
	}
	return len(a) == len(b) && bytes.Equal(t.filled(a), t.filled(b))
}

// Heard reports whether answer is the expected answer of the first phase.
func (t Talk) Heard(answer []byte) bool { return t.Same(answer, t.Answer(0)) }

// filled is a copy of an answer with nothing in its holes.
func (t Talk) filled(answer []byte) []byte {
	c := bytes.Clone(answer)
	for at := t.Hole; t.Period > 0 && at < len(c); at += t.Period {
		clear(c[at:min(at+t.HoleLen, len(c))])
	}
	return c
}

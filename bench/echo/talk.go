package main

import "github.com/daimon-go/daimon/bench/internal/load"

// phases is a prime, so that a neighbour's or an older message is not the one expected.
const phases = 251

// talk is a message of so many bytes and the same once more, different bytes each time.
func talk(size int) load.Talk {
	pattern := make([]byte, size+phases-1)
	x := uint32(1)
	for i := range pattern {
		x = x*1103515245 + 12345
		pattern[i] = byte(x >> 16)
	}
	return load.Talk{Say: pattern, Hear: pattern, Phases: phases}
}

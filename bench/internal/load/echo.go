package load

// echoPhases is a prime, so that a neighbour's or an older message is not the one expected.
const echoPhases = 251

// Echo is a message of so many bytes and the same once more, different bytes each time.
func Echo(size int) Talk {
	pattern := make([]byte, size+echoPhases-1)
	x := uint32(1)
	for i := range pattern {
		x = x*1103515245 + 12345
		pattern[i] = byte(x >> 16)
	}
	return Talk{Say: pattern, Hear: pattern, Phases: echoPhases}
}

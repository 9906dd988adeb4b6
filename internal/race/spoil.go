package race

// Spoil overwrites p, with the race detector, so that tests notice bytes that are used after they were given back.
func Spoil(p []byte) {
	if Enabled {
		for i := range p {
			p[i] = 0xDB
		}
	}
}

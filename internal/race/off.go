//go:build !race

// Package race has a constant that reports whether the program was built with the race detector. Checks that are too
// expensive for production, such as overwriting a lent buffer at the end of its turn, are made only then. It only adds
// checks: nothing may behave differently for its caller because of it, and nothing here hides an access from the detector.
package race

// Enabled is false: this build has no race detector.
const Enabled = false

// Package race has a constant that reports whether the program was built with the race detector. Checks that are too
// expensive for production, such as overwriting a lent buffer at the end of its turn, are made only then: the compiler
// removes what depends on race.Enabled.
//
// It only adds checks. Nothing may behave differently for its caller because of it, and nothing here hides an access from
// the detector.
package race

// Package race says whether this program was built with the race detector, so
// that a check too dear for production (a lent buffer poisoned at the end of
// its turn, a word touched to betray a foreign goroutine) costs nothing there:
// the compiler drops whatever stands under if race.Enabled.
//
// It only adds checks. Nothing may behave differently for its caller because of
// it, and nothing here hides an access from the detector.
package race

// Package fetch is the same small program four times: fetch two lists of lines at once, give them a second,
// merge them. docs/four-ways.md compares the four.
package fetch

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
)

// Patience is how long the two may take together.
const Patience = time.Second

// Form is one of the four ways. It sets off at once and calls report on the thread of s, once: with the lines
// of both, sorted, or with why there are none. The addresses are for listener.Connect; each sends its lines and
// closes.
type Form func(s *act.Scheduler, a, b string, report func(lines []string, err error))

// Forms are the four.
var Forms = map[string]Form{"action": Action, "coroutine": Coroutine, "future": Future, "tasklet": Tasklet}

// most is how much one list may have.
const most = 1 << 20

var errTooMuch = errors.New("more than a list may have")

// merge sorts the lines of both.
func merge(a, b []byte) []string {
	var lines []string
	for _, line := range bytes.Split(bytes.TrimSpace(slices.Concat(a, []byte("\n"), b)), []byte("\n")) {
		if len(line) > 0 {
			lines = append(lines, string(line))
		}
	}
	slices.Sort(lines)
	return lines
}

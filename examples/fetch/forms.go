package main

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
)

// patience bounds the time for both lists together.
const patience = 5 * time.Second

// form is one of the four ways. It starts to fetch and returns. Later it calls report once, on the thread of s, with the
// sorted lines of both lists or with an error. a and b are addresses for listener.Connect, whose servers send their lines
// and close.
type form func(s *act.Scheduler, a, b string, report func(lines []string, err error))

// forms are the four ways, by name.
var forms = map[string]form{"action": action, "coroutine": coroutine, "future": futures, "tasklet": tasklets}

// most bounds the bytes of a list.
const most = 1 << 20

var errTooMuch = errors.New("the list is too long")

// merge returns the lines of both lists, sorted.
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

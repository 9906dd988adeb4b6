package program

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/thread"
)

// cpus is the value of a flag: the CPUs to which the threads of reactors are bound.
type cpus struct{ config *act.Config }

func (c *cpus) String() string {
	switch {
	case c.config == nil || c.config.Threads != act.Bound: // package flag asks for the text of a zero value
		return ""
	case len(c.config.CPUs) == 0:
		return "auto"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(c.config.CPUs), " ", ","), "[]")
}

func (c *cpus) Set(text string) (err error) {
	threads, list := act.Bound, []int(nil)
	switch text {
	case "":
		threads = act.Locked
	case "auto":
	default:
		if list, err = parseCPUs(text); err != nil {
			return err
		}
	}
	c.config.Threads, c.config.CPUs = threads, list
	return nil
}

// parseCPUs reads a list in the format of cpuset(7).
func parseCPUs(text string) (list []int, err error) {
	usable := thread.CPUs()
	for part := range strings.SplitSeq(text, ",") {
		from, to, several := strings.Cut(part, "-")
		if !several {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 31)
		last, err2 := strconv.ParseUint(to, 10, 31)
		if err != nil || err2 != nil || last < first {
			return nil, errors.New("it is no list of CPUs, such as 0,2-5, and not auto")
		}
		for cpu := int(first); cpu <= int(last); cpu++ {
			if !slices.Contains(usable, cpu) {
				return nil, fmt.Errorf("the process may not use CPU %d", cpu)
			}
			list = append(list, cpu)
		}
	}
	return list, nil
}

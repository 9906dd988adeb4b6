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

// bind sets the threads and CPUs by the value of the flag -cpus.
func bind(cfg *act.Config, text string) (err error) {
	switch cfg.Threads, cfg.CPUs = act.Bound, nil; text {
	case "":
		cfg.Threads = act.Locked
	case "auto":
	default:
		cfg.CPUs, err = parseCPUs(text)
	}
	return err
}

// parseCPUs reads a list in the format of cpuset(7).
func parseCPUs(text string) (list []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, several := strings.Cut(part, "-")
		if !several {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 31)
		last, err2 := strconv.ParseUint(to, 10, 31)
		if err != nil || err2 != nil || last < first {
			return nil, errors.New("it is neither a list of CPUs, such as 0,2-5, nor auto")
		}
		for cpu := int(first); cpu <= int(last); cpu++ {
			if !slices.Contains(thread.CPUs(), cpu) {
				return nil, fmt.Errorf("the process may not use CPU %d", cpu)
			}
			list = append(list, cpu)
		}
	}
	return list, nil
}

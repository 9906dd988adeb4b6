package program

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/thread"
)

func TestCPUsOfTheReactors(t *testing.T) {
	first := thread.CPUs()[0]
	for text, want := range map[string]act.Config{
		"":                                   {},
		"auto":                               {Threads: act.Bound},
		fmt.Sprintf("%d,%[1]d-%[1]d", first): {Threads: act.Bound, CPUs: []int{first, first}},
	} {
		s := Server{Config: act.Config{Threads: act.Bound, CPUs: []int{5}}}
		_, err := parse(&s, "-cpus", text)
		require.NoError(t, err)
		require.Equal(t, want.Threads, s.Config.Threads)
		require.Equal(t, want.CPUs, s.Config.CPUs)
	}
	for text, says := range map[string]string{
		"0,x": "neither a list of CPUs, such as 0,2-5", "1-0": "neither a list", "-1": "neither a list", "0-": "neither a list", ",": "neither a list",
		fmt.Sprintf("%d,99999-2000000000", first): "the process may not use CPU 99999",
	} {
		_, err := parse(&Server{}, "-cpus", text)
		require.ErrorContains(t, err, says, text)
	}
}

package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tasks that differ in numbers alone wait for the same; of very many only the first are listed.
func TestAListingGroupsTasks(t *testing.T) {
	s := &Scheduler{}
	for i := range 2 * listed {
		what := fmt.Sprintf("input from 10.0.0.1:%d", i)
		s.Tasks = append(s.Tasks, Task{Kind: "tcp :80", State: "waiting", Waits: []string{what, "a timer due in 3s"}})
	}
	s.Tasks = append(s.Tasks, Task{Kind: "tcp :80", State: "ready"}, Task{Kind: "other", State: "waiting"})
	r := &Report{Schedulers: []*Scheduler{s}}
	l := r.listing("")
	require.Equal(t, 2*listed+2, l.Matching)
	require.Len(t, l.Tasks, listed)
	require.Equal(t, []waiting{
		{"tcp :80", 2*listed + 1, []waitedFor{{"input from …, a timer due in …", 2 * listed}, {"ready", 1}}},
		{"other", 1, []waitedFor{{"nothing that is known", 1}}},
	}, l.Tree)

	l = r.listing("10.0.0.1:77,")
	require.Equal(t, 2*listed+2, l.Total)
	require.Equal(t, 1, l.Matching)
}

// What was broken: processes that are not listed were in no number.
func TestAListingCountsAllProcesses(t *testing.T) {
	s := &Scheduler{}
	for i := range 2 * listed {
		s.Processes = append(s.Processes, Process{ID: uint64(i), Kind: "a"})
	}
	s.Processes = append(s.Processes, Process{ID: 7777, Kind: "b"})
	var out bytes.Buffer
	encode(&out, (&Report{Schedulers: []*Scheduler{s, {Processes: []Process{{Kind: "a"}}}}}).listing("a"))
	var l map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &l))
	require.EqualValues(t, 2*listed+2, l["total_processes"])
	require.EqualValues(t, 2*listed+1, l["matching_processes"])
	require.Len(t, l["processes"], listed)
}

// What was broken: a finding named a task or a process, and a search for that found nothing.
func TestWhatAFindingNamesIsFound(t *testing.T) {
	r := &Report{Schedulers: []*Scheduler{
		{Tasks: []Task{{ID: 111, Kind: "a"}, {ID: 2, Kind: "a"}}},
		{Tasks: []Task{{Scheduler: 1, ID: 111, Kind: "a"}}, Processes: []Process{{ID: 77, Kind: "b"}, {ID: 8, Kind: "b"}}},
	}}
	for find, want := range map[string]string{"0/111": "0/111", "process 77": "77"} {
		var out strings.Builder
		r.writeTasks(&out, find)
		require.Contains(t, out.String(), "\n"+want+" ", find)
		l := r.listing(find)
		require.Equal(t, 1, l.Matching+l.MatchingProcesses, find)
		require.Equal(t, 1, len(l.Tasks)+len(l.Processes), find)
	}
	require.Len(t, r.listing("77").Processes, 1)
}

// What was broken: the page took a list without rows, null in JSON, for one with rows, and showed nothing.
func TestAListingOfNothingHasListsInJSON(t *testing.T) {
	var out bytes.Buffer
	encode(&out, (&Report{Schedulers: []*Scheduler{{}}}).listing(""))
	require.JSONEq(t, `{"findings":null,"total":0,"matching":0,"tree":[],"tasks":[],
		"total_processes":0,"matching_processes":0,"processes":[]}`, out.String())
}

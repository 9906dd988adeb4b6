package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/internal/facts"
	"github.com/stretchr/testify/require"
)

// Tasks that differ in numbers alone wait for the same; of very many only the first are listed.
func TestAListingGroupsTasks(t *testing.T) {
	s := &scheduler{}
	for i := range 2 * listed {
		what := fmt.Sprintf("input from 10.0.0.1:%d", i)
		s.tasks = append(s.tasks, task{Kind: "tcp :80", State: "waiting", Waits: []string{what, "a timer due in 3s"}})
	}
	s.tasks = append(s.tasks, task{Kind: "tcp :80", State: "ready"}, task{Kind: "other", State: "waiting"})
	r := &report{Schedulers: []*scheduler{s}}
	l := r.listing("", listed)
	require.Equal(t, 2*listed+2, l.Matching)
	require.Len(t, l.Tasks, listed)
	require.Equal(t, []string{"1002 of 1002 tasks, the first 500 of them here"}, l.Tables[1].Notes)
	require.Equal(t, [][]string{
		{"tcp :80", "1001", "1000", "input from …, a timer due in …"}, {"", "", "1", "ready"},
		{"other", "1", "1", "nothing that is known"},
	}, l.Tables[0].Rows)

	l = r.listing("10.0.0.1:77,", listed)
	require.Equal(t, 2*listed+2, l.Total)
	require.Equal(t, 1, l.Matching)
}

// What was broken: processes that are not listed were in no number.
func TestAListingCountsAllProcesses(t *testing.T) {
	s := &scheduler{}
	for i := range 2 * listed {
		s.processes = append(s.processes, facts.Process{ID: uint64(i), Kind: "a"})
	}
	s.processes = append(s.processes, facts.Process{ID: 7777, Kind: "b"})
	text, err := json.Marshal((&report{Schedulers: []*scheduler{s, {processes: []facts.Process{{Kind: "a"}}}}}).listing("a", listed))
	require.NoError(t, err)
	var l map[string]any
	require.NoError(t, json.Unmarshal(text, &l))
	require.EqualValues(t, 2*listed+2, l["total_processes"])
	require.EqualValues(t, 2*listed+1, l["matching_processes"])
	require.Len(t, l["processes"], listed)
}

// What was broken: a finding named a task or a process, and a search for that found nothing.
func TestWhatAFindingNamesIsFound(t *testing.T) {
	r := &report{Schedulers: []*scheduler{
		{tasks: []task{{ID: 111, Kind: "a"}, {ID: 2, Kind: "a"}}},
		{tasks: []task{{Scheduler: 1, ID: 111, Kind: "a"}}, processes: []facts.Process{{ID: 77, Kind: "b"}, {ID: 8, Kind: "b"}}},
	}}
	for find, want := range map[string]string{"0/111": "0/111", "process 77": "77"} {
		var out strings.Builder
		l := r.listing(find, listed)
		l.writeTo(&out)
		require.Contains(t, out.String(), "\n"+want+" ", find)
		require.Equal(t, 1, l.Matching+l.MatchingProcesses, find)
		require.Equal(t, 1, len(l.Tasks)+len(l.Processes), find)
	}
	require.Len(t, r.listing("77", listed).Processes, 1)
}

// What was broken: the page took a list without rows, null in JSON, for one with rows, and showed nothing.
func TestAListingOfNothingHasListsInJSON(t *testing.T) {
	text, err := json.Marshal((&report{Schedulers: []*scheduler{{}}}).listing("", listed))
	require.NoError(t, err)
	require.Contains(t, string(text), `{"total":0,"matching":0,"tasks":[],"total_processes":0,"matching_processes":0,"processes":[],`)
	require.NotContains(t, strings.Replace(string(text), `"findings":null`, "", 1), "null")
}

// A scheduler that is stuck answers with an old count of what is open on all of them.
func TestSumHasTheLatestCountOfOpenConnections(t *testing.T) {
	r := &report{Schedulers: []*scheduler{
		{Late: 3 * time.Second, Services: []facts.Service{{Name: "tcp", Open: 5, Accepted: 5}}},
		{Services: []facts.Service{{Name: "tcp", Open: 10, Accepted: 6}}},
	}}
	sum := services.sum(r)
	require.Len(t, sum, 1)
	require.Equal(t, []any{uint64(10), uint64(0), uint64(11)}, sum[0].cells[:3], "open, at most, accepted")
}

// The JSON is what programs rely on, so its fields are documented.
func TestTheFieldsOfTheJSONAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/inspect.md")
	require.NoError(t, err)
	_, doc, _ = bytes.Cut(doc, []byte("\n## JSON\n"))
	doc, _, _ = bytes.Cut(doc, []byte("\n## "))
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllSubmatch(doc, -1) {
		documented[string(name[1])] = true
	}
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(x reflect.Type) {
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			look(x.Elem())
		case reflect.Struct:
			if seen[x] || x == reflect.TypeFor[time.Time]() {
				return
			}
			seen[x] = true
			for i := range x.NumField() {
				f := x.Field(i)
				if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && !f.Anonymous {
					require.True(t, documented[name], "%v.%s: %q", x, f.Name, name)
				}
				if f.IsExported() || f.Anonymous {
					look(f.Type)
				}
			}
		}
	}
	look(reflect.TypeFor[report]())
	look(reflect.TypeFor[listing]())
	require.True(t, seen[reflect.TypeFor[stall]()])
}

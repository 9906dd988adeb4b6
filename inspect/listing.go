package inspect

import (
	"cmp"
	"slices"
	"strings"
)

// listed bounds the tasks and the processes of a listing, for the sake of the browser.
const listed = 500

// listing is what the page shows of tasks and processes: those with a text in one of their columns, and what all of these tasks
// wait for.
type listing struct {
	Findings          []string  `json:"findings"`
	Total             int       `json:"total"`    // tasks
	Matching          int       `json:"matching"` // tasks, also those that are not listed
	Tree              []waiting `json:"tree"`
	Tasks             []Task    `json:"tasks"`
	TotalProcesses    int       `json:"total_processes"`
	MatchingProcesses int       `json:"matching_processes"`
	Processes         []Process `json:"processes"`
}

// waiting is what the tasks of a kind wait for.
type waiting struct {
	Kind  string      `json:"kind"`
	N     int         `json:"n"`
	Waits []waitedFor `json:"waits"` // the most frequent first
}

type waitedFor struct {
	What string `json:"what"`
	N    int    `json:"n"`
}

func (r *Report) listing(find string) *listing {
	l := &listing{Findings: r.Findings, Tree: []waiting{}, Tasks: []Task{}, Processes: []Process{}} // in JSON [], and not null
	tree := map[string]map[string]int{}
	for _, s := range r.Schedulers {
		l.Total += len(s.Tasks)
		for i := range s.Tasks {
			t := &s.Tasks[i]
			if !t.has(find) {
				continue
			}
			if l.Matching++; l.Matching <= listed {
				l.Tasks = append(l.Tasks, *t)
			}
			if tree[t.Kind] == nil {
				tree[t.Kind] = map[string]int{}
			}
			tree[t.Kind][t.reason()]++
		}
		l.TotalProcesses += len(s.Processes)
		for i := range s.Processes {
			p := &s.Processes[i]
			if !has(p, find) {
				continue
			}
			if l.MatchingProcesses++; l.MatchingProcesses <= listed {
				l.Processes = append(l.Processes, *p)
			}
		}
	}
	for kind, reasons := range tree {
		w := waiting{Kind: kind}
		for what, n := range reasons {
			w.N += n
			w.Waits = append(w.Waits, waitedFor{what, n})
		}
		slices.SortFunc(w.Waits, func(a, b waitedFor) int { return cmp.Or(b.N-a.N, strings.Compare(a.What, b.What)) })
		l.Tree = append(l.Tree, w)
	}
	slices.SortFunc(l.Tree, func(a, b waiting) int { return cmp.Or(b.N-a.N, strings.Compare(a.Kind, b.Kind)) })
	return l
}

// reason is what t waits for, or its state, without the numbers in which tasks of a kind differ.
func (t *Task) reason() string {
	if t.State != "waiting" {
		return t.state()
	}
	words := strings.Fields(t.waits())
	if t.Told {
		words = append([]string{"told", "to", "end,", "waits", "for"}, words...)
	}
	for i, w := range words {
		if strings.ContainsAny(w, "0123456789") {
			words[i] = "…"
			if strings.HasSuffix(w, ",") {
				words[i] = "…,"
			}
		}
	}
	return strings.Join(words, " ")
}

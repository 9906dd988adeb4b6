package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/internal/facts"
)

// listed bounds the tasks and the processes in JSON, for the sake of the browser.
const listed = 500

// listing has the tasks and processes that have a text in one of their columns, and what all of these tasks wait for.
type listing struct {
	Total             int             `json:"total"`    // tasks
	Matching          int             `json:"matching"` // tasks, including tasks that are not listed
	Tasks             []task          `json:"tasks"`
	TotalProcesses    int             `json:"total_processes"`
	MatchingProcesses int             `json:"matching_processes"`
	Processes         []facts.Process `json:"processes"`
	page
}

// listing returns at most so many tasks, and so many processes.
func (r *report) listing(find string, most int) *listing {
	l := &listing{Tasks: []task{}, Processes: []facts.Process{}} // in JSON [], and not null
	var matching []*task
	for _, s := range r.Schedulers {
		l.Total += len(s.tasks)
		for i := range s.tasks {
			t := &s.tasks[i]
			if !t.has(find) {
				continue
			}
			if l.Matching++; l.Matching <= most {
				l.Tasks = append(l.Tasks, *t)
			}
			matching = append(matching, t)
		}
		l.TotalProcesses += len(s.processes)
		for i := range s.processes {
			p := &s.processes[i]
			if number := fmt.Sprintf("process %d", p.ID); !contain(find, number, p.Name, p.Kind, p.State) { // as findings say it
				continue
			}
			if l.MatchingProcesses++; l.MatchingProcesses <= most {
				l.Processes = append(l.Processes, *p)
			}
		}
	}
	l.page = page{Findings: r.Findings, Tables: []*table{treeOf(matching), l.taskTable()}}
	if l.TotalProcesses > 0 {
		l.Tables = append(l.Tables, l.processTable())
	}
	return l
}

// treeOf groups tasks by their kind and by what they wait for, the most frequent first.
func treeOf(tasks []*task) *table {
	type group struct{ kind, reason string }
	ofKind, ofGroup := map[string]int{}, map[group]int{}
	for _, t := range tasks {
		ofKind[t.Kind]++
		ofGroup[group{t.Kind, t.reason()}]++
	}
	groups := slices.SortedFunc(maps.Keys(ofGroup), func(a, b group) int {
		return cmp.Or(ofKind[b.kind]-ofKind[a.kind], strings.Compare(a.kind, b.kind), ofGroup[b]-ofGroup[a], strings.Compare(a.reason, b.reason))
	})
	rows := newTable("tree", "KIND", "TASKS", "OF THESE", "WAIT FOR")
	for i, g := range groups {
		if i == 0 || g.kind != groups[i-1].kind {
			rows.add(g.kind, ofKind[g.kind], ofGroup[g], g.reason)
		} else {
			rows.add("", "", ofGroup[g], g.reason)
		}
	}
	return rows
}

func (l *listing) taskTable() *table {
	rows := newTable("tasks", "TASK", "STATE", "AGE", "LAST TURN", "KIND", "NAME", "PEER", "WAITS FOR")
	for _, t := range l.Tasks {
		rows.add(t.number(), t.state(), round(t.Age), round(t.Since), t.Kind, t.Name, t.Peer, t.waits())
	}
	rows.note("%s", listedOf(len(l.Tasks), l.Matching, l.Total, "tasks"))
	return rows
}

func (l *listing) processTable() *table {
	rows := newTable("processes", "PROCESS", "STATE", "MAILBOX", "LIMIT", "DROPPED", "TURN", "KIND", "NAME")
	for _, p := range l.Processes {
		rows.add(p.ID, p.State, p.Mailbox, p.Limit, p.Dropped, round(p.Turn), p.Kind, p.Name)
	}
	rows.note("%s", listedOf(len(l.Processes), l.MatchingProcesses, l.TotalProcesses, "processes"))
	return rows
}

func listedOf(listed, matching, total int, what string) string {
	text := fmt.Sprintf("%d of %d %s", matching, total, what)
	if matching > listed {
		text += fmt.Sprintf(", the first %d of them here", listed)
	}
	return text
}

// contain reports whether find is in one of the texts, or across two of them.
func contain(find string, texts ...string) bool {
	return strings.Contains(strings.Join(texts, " "), find)
}

func (t *task) has(find string) bool {
	return contain(find, t.number(), t.Name, t.Kind, t.state(), t.Peer, t.waits())
}

// state is the State, and whether the task knows that it is to end.
func (t *task) state() string {
	if t.Told {
		return t.State + ", told to end"
	}
	return t.State
}

// number is the name of the task in findings and tables.
func (t *task) number() string { return fmt.Sprintf("%d/%d", t.Scheduler, t.ID) }

func (t *task) waits() string {
	if t.State == "waiting" && len(t.Waits) == 0 {
		return "nothing that is known"
	}
	return strings.Join(t.Waits, ", ")
}

// reason is what t waits for, or its state, without the numbers in which tasks of a kind differ.
func (t *task) reason() string {
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
